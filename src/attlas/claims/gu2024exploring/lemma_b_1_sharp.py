r"""Lemma B.1, parts 8, 9, 12 and 13 sharpened: no bound B on the weights is needed.

Symbols as in `lemma_b_1_instances`; R is of any size here.
"""

from functools import partial
from typing import Any

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from attlas.bounds.optimisation.gu2024_perturbation import gu2024_basic_bounds_sharp
from attlas.claims.gu2024exploring.instances import as_arrays, scaled_rounding, softmax_weights
from attlas.claims.gu2024exploring.lemma_b_1_instances import (
    drawn_pairs,
    pair,
    perturbed_networks,
)
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "gu2024exploring"
_ROUNDINGS = 64
_LARGEST = 3.0


def _challenged(key: PRNGKeyArray, count: int) -> Instance:
    return as_arrays(perturbed_networks(key, count, _LARGEST))


def _moved_within(instance: Instance) -> Instance:
    """Shorten inputs and steps where ||x_i|| <= 1 or ||w_r - w~_r|| <= R fails."""
    squares = jnp.sum(instance["X"] ** 2, axis=1, keepdims=True)
    X = instance["X"] / jnp.sqrt(jnp.maximum(squares, 1))
    step = instance["W_tilde"] - instance["W"]
    # The floor keeps the derivative of the root finite where a column has not moved.
    lengths = jnp.sqrt(jnp.maximum(jnp.sum(step**2, axis=0), instance["R"] ** 2))
    moved = instance["W"] + step * (instance["R"] / lengths)[None, :]
    return {**instance, "X": X, "W_tilde": moved}


_SHARP: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "count": 48,
    "terms": _ROUNDINGS,
    "status": Status.SHARPENED,
    "provenance": Provenance.DERIVED,
    "instances": partial(drawn_pairs, largest=_LARGEST),
}


def _relative_normaliser(instance: Instance, share: float = 1.0) -> Sides:
    p = pair(instance)
    ratio = p.alpha_moved / p.alpha
    left = jnp.maximum(ratio, 1 / ratio) - 1
    return Sides(left, gu2024_basic_bounds_sharp(share * p.R)[8], scale=p.rounding * (1 + left))


PART_8_SHARP = Claim(
    name=f"{_PAPER}/lemma-b-1-part-8-sharp",
    locator="Lemma B.1, Parts 8 and 9, sharpened",
    statement=r"e^{-R} \le \tilde{\alpha}_i / \alpha_i \le e^R \;\mathrm{for\ every}\; R, B",
    sides=_relative_normaliser,
    control=Control("e^(R/2)", sides=partial(_relative_normaliser, share=0.5)),
    note="Attained when all columns move by R along x_i. No bound on the weights is needed.",
    **_SHARP,
)


def _curved(instance: Instance, share: float = 1.0) -> Sides:
    p = pair(instance)
    right = p.S * (1 - p.S) * gu2024_basic_bounds_sharp(share * p.R)[12]
    return Sides(jnp.abs(p.S - p.S_moved), right, scale=p.rounding * jnp.maximum(p.S, p.S_moved))


PART_12_SHARP = Claim(
    name=f"{_PAPER}/lemma-b-1-part-12-sharp",
    locator="Lemma B.1, Part 12, sharpened",
    statement=(
        r"|S_{i,r} - \tilde{S}_{i,r}| \le S_{i,r} (1 - S_{i,r}) (e^{2R} - 1)"
        r"\;\mathrm{for\ every}\; R, B"
    ),
    sides=_curved,
    control=Control("e^R in place of e^(2R)", sides=partial(_curved, share=0.5)),
    note=(
        "Approached as S_ir tends to 0 with w_r moved up and the others down. On the event S <= "
        "e^(2B)/m, so that the bound is (2R/m) e^(2B) and less."
    ),
    **_SHARP,
)


def _total_variation(instance: Instance, share: float = 1.0) -> Sides:
    moved = softmax_weights(instance) - softmax_weights(instance, "W_tilde")
    left = jnp.sum(jnp.abs(moved), axis=1)
    right = gu2024_basic_bounds_sharp(share * instance["R"])[13]
    return Sides(left, right, scale=scaled_rounding(instance) + instance["R"])


PART_13_SHARP = Claim(
    name=f"{_PAPER}/lemma-b-1-part-13-sharp",
    locator="Lemma B.1, Part 13, sharpened",
    statement=(
        r"\max_{\|z\|_\infty \le 1} \langle z, S_i - \tilde{S}_i \rangle ="
        r"\|S_i - \tilde{S}_i\|_1 \le 2 \tanh(R/2) \le R \;\mathrm{for\ every}\; R, B"
    ),
    sides=_total_variation,
    free=("X", "W", "W_tilde"),
    domain=_moved_within,
    control=Control("R/4 in place of R/2", sides=partial(_total_variation, share=0.5)),
    note=(
        "Attained by two halves of equal weight that move by R against each other. The softmax is "
        "Lipschitz whatever the size of its logits: no e^(4B) enters."
    ),
    **{**_SHARP, "instances": _challenged},
)
