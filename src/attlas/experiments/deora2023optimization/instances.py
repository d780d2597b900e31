"""What experiments of this paper draw alike: samples of both phases, Gaussian starts."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.data.tokenized_mixture import (
    MixtureSamples,
    TokenizedMixture,
    make_tokenized_mixture,
    sample_mixture,
)
from attlas.models.attention.multi_head import MultiHead

NOISE = 0.02
"""Z_mu and Z_nu over S^2; ||z|| is at most a fifth of S."""


def draw_phases(
    settings: Mapping[str, Any], key: PRNGKeyArray
) -> tuple[TokenizedMixture, MixtureSamples, MixtureSamples]:
    """A mixture with the samples that are trained on, and those of the first phase.

    Args:
        settings: of a cell: d, M, S, zeta, T, and the sizes n and first.
        key: random key.

    Returns:
        The mixture, n samples, and samples of the first phase.
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


def gaussian_heads(shape: MultiHead, deviation: float, *seed: int) -> MultiHead:
    """Independent Gaussian entries in every U_h and W_h; one stream whatever the deviation.

    Args:
        shape: a model of the wanted sizes.
        deviation: of the entries.
        seed: integers of the stream.

    Returns:
        The model.
    """
    rng = np.random.default_rng(seed)
    U, W = (jnp.asarray(deviation * rng.normal(size=a.shape)) for a in (shape.U, shape.W))
    return MultiHead(U, W)
