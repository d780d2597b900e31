"""What experiments of this paper draw alike: mixture, samples of both phases, keys of a member."""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
from jaxtyping import PRNGKeyArray

from attlas.data.tokenized_mixture import (
    MixtureSamples,
    TokenizedMixture,
    make_tokenized_mixture,
    sample_mixture,
)

MIXTURE = {
    "T": 4, "d": 8, "M": 3, "S": 2.0, "zeta": 0.25, "Z": 3.0, "Z_mu": 0.5, "Z_nu": 0.5,
}  # fmt: skip
"""Settings of the mixture for `draw_mixture`."""
NOISE = 0.02
"""Z_mu and Z_nu over S^2; ||z|| is at most a fifth of S."""


def draw_mixture(
    settings: Mapping[str, Any], keys: Sequence[PRNGKeyArray], sizes: Sequence[int]
) -> tuple[TokenizedMixture, list[MixtureSamples]]:
    """A mixture and independent samples of it.

    Args:
        settings: settings of a cell, with those of `MIXTURE`.
        keys: one key for the mixture, then one for each set of samples.
    """
    bounds = {name: settings[name] for name in MIXTURE if name != "T"}
    mixture = make_tokenized_mixture(keys[0], **bounds)
    pairs = zip(keys[1 : 1 + len(sizes)], sizes, strict=True)
    return mixture, [sample_mixture(key, mixture, size, settings["T"]) for key, size in pairs]


def draw_phases(
    settings: Mapping[str, Any], key: PRNGKeyArray
) -> tuple[TokenizedMixture, MixtureSamples, MixtureSamples]:
    """A mixture with the samples that are trained on, and those of the first phase.

    Args:
        settings: settings of a cell: d, M, S, zeta, T, and the sizes n and first.
    """
    s, bound = settings, NOISE * settings["S"] ** 2
    mixture = make_tokenized_mixture(
        key, d=s["d"], M=s["M"], S=s["S"], zeta=s["zeta"], Z_mu=bound, Z_nu=bound, Z=0.2 * s["S"]
    )
    train, first = (
        sample_mixture(jax.random.fold_in(key, k), mixture, s[size], s["T"])
        for k, size in ((1, "n"), (2, "first"))
    )
    return mixture, train, first


def member_keys(member: int) -> tuple[PRNGKeyArray, PRNGKeyArray]:
    """Keys of a member's samples, and of the signs of its first step.

    Returns:
        Both keys, the same for every sparsity and number of heads.
    """
    key = jax.random.key(0)
    return jax.random.fold_in(key, member), jax.random.fold_in(key, 1000 + member)
