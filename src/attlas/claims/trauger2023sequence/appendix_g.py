r"""Appendix G: cross-entropy behind a softmax is 2-Lipschitz in the largest score, and no less."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.generalisation.trauger2023_masked import (
    CROSS_ENTROPY_LIPSCHITZ,
    clipped_cross_entropy,
)
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "trauger2023sequence"
_WORDS = 5
_FAR = 1e6
"""A ceiling that no loss here reaches."""
# A logarithm of a sum of 5 exponentials and a difference of two losses.
_TERMS = 32


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Two score vectors; in every other pair they differ in the steepest direction."""
    rng = generator(key)
    size = 10.0 ** rng.uniform(-1, 1.2, (count, 1))
    a = size * rng.normal(size=(count, _WORDS))
    step = 10.0 ** rng.uniform(-3, 0.5, (count, 1))
    b = a + step * rng.normal(size=a.shape)
    steepest = np.where(np.arange(_WORDS) == 0, -1.0, 1.0)
    a[1::2, 0] -= 3 * size[1::2, 0]
    b[1::2] = a[1::2] + step[1::2] * steepest
    return {
        "a": jnp.asarray(a),
        "b": jnp.asarray(b),
        "ceiling": jnp.asarray(10.0 ** rng.uniform(-0.5, 1, count)),
    }


def _moved(instance: Instance, ceiling: Array | float) -> tuple[Array, Array, Array]:
    """Change of the loss, largest change of a score, and the size of what cancels."""
    a, b = instance["a"], instance["b"]
    losses = [clipped_cross_entropy(scores, 0, ceiling) for scores in (a, b)]
    scale = 1 + jnp.max(jnp.abs(a)) + jnp.max(jnp.abs(b))
    return jnp.abs(losses[0] - losses[1]), jnp.max(jnp.abs(a - b)), scale


def _lipschitz(instance: Instance, constant: float = CROSS_ENTROPY_LIPSCHITZ) -> Sides:
    change, reach, scale = _moved(instance, _FAR)
    return Sides(change, constant * reach, scale=scale)


def _clipped(instance: Instance, constant: float = 2.0, below: float = 1.0) -> Sides:
    ceiling = instance["ceiling"]
    change, reach, scale = _moved(instance, ceiling)
    loss = clipped_cross_entropy(instance["a"], 0, ceiling)
    left = jnp.stack([change, loss, -loss])
    right = jnp.stack([constant * reach, below * ceiling, jnp.zeros(())])
    return Sides(left, right, scale=scale)


def _gradient(instance: Instance, power: float = 1.0) -> Sides:
    """Sum of |derivatives| by automatic differentiation, and 2 (1 - p) from the softmax."""
    slope = jax.grad(lambda scores: clipped_cross_entropy(scores, 0, _FAR))(instance["a"])
    p = jax.nn.softmax(instance["a"])[0]
    found = jnp.stack([jnp.sum(jnp.abs(slope)), slope[0], jnp.sum(slope)])
    stated = jnp.stack([2 * (1 - p) ** power, p - 1, jnp.zeros(())])
    return Sides(found, stated, scale=jnp.ones(()))


def _euclidean(instance: Instance, square: float = 2.0) -> Sides:
    slope = jax.grad(lambda scores: clipped_cross_entropy(scores, 0, _FAR))(instance["a"])
    return Sides(jnp.sum(slope**2), jnp.asarray(square), scale=jnp.ones(()))


def _limits(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    return {"a": jnp.asarray(rng.normal(size=(count, _WORDS)))}


def _limit(instance: Instance, limit: float = 2.0) -> Sides:
    """The steepest slope as the true word's score falls to -12."""
    drops = jnp.asarray([3.0, 6.0, 12.0])

    def slope(drop: Array) -> Array:
        scores = instance["a"].at[0].add(-drop)
        return jnp.sum(jnp.abs(jax.grad(lambda each: clipped_cross_entropy(each, 0, _FAR))(scores)))

    found = jax.vmap(slope)(drops)
    return Sides(found, jnp.full_like(found, limit), scales=drops)


_COMMON: dict[str, Any] = {"paper": _PAPER, "terms": _TERMS}

LIPSCHITZ = Claim(
    name=f"{_PAPER}/appendix-g",
    locator="Appendix G and Theorem 5.1",
    statement=r"|\ell(a) - \ell(b)| \le 2 \|a-b\|_\infty, \quad \ell(x) = \ln \sum_t e^{x_t} - x_i",
    kind=Kind.INEQUALITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=_instances,
    sides=_lipschitz,
    free=("a", "b"),
    control=Control("1 in place of 2", sides=partial(_lipschitz, constant=1.0)),
    note="Five words. 2 is sharp: the ratio comes to 1 where the true word's weight vanishes.",
    **_COMMON,
)

GRADIENT = Claim(
    name=f"{_PAPER}/appendix-g-gradient",
    locator="Appendix G, the gradient",
    statement=(
        r"\|\nabla \ell(x)\|_1 = 2(1-p_i), \quad \partial_i \ell = p_i-1, \quad "
        r"\sum_j \partial_j \ell = 0, \quad p = {\rm softmax}(x)"
    ),
    kind=Kind.IDENTITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    instances=_instances,
    sides=_gradient,
    control=Control("the square of 1 - p", sides=partial(_gradient, power=2.0)),
    note="Automatic differentiation against the printed derivatives.",
    **_COMMON,
)

SHARP = Claim(
    name=f"{_PAPER}/appendix-g-sharp",
    locator="Appendix G, 2 is the least constant",
    statement=r"\lim_{x_i \to -\infty} \|\nabla \ell(x)\|_1 = 2",
    kind=Kind.LIMIT,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_limits,
    sides=_limit,
    control=Control("1 in place of 2", sides=partial(_limit, limit=1.0)),
    note="Approached and not attained; no constant below 2 holds for all scores.",
    **_COMMON,
)

EUCLIDEAN = Claim(
    name=f"{_PAPER}/appendix-g-euclidean",
    locator="Appendix G in the Euclidean norm",
    statement=r"\|\nabla \ell(x)\|_2 \le \sqrt 2",
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_euclidean,
    control=Control("1 in place of the square root of 2", sides=partial(_euclidean, square=1.0)),
    note="Used by the contraction that has all constants (theorem-5-1-contraction).",
    **_COMMON,
)

CLIPPED = Claim(
    name=f"{_PAPER}/section-5-clipped",
    locator="Section 5, clipped cross-entropy",
    statement=r"0 \le \ell_M \le M, \quad |\ell_M(a) - \ell_M(b)| \le 2 \|a-b\|_\infty",
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_clipped,
    control=(
        Control("1 in place of 2", sides=partial(_clipped, constant=1.0)),
        Control("half the ceiling", sides=partial(_clipped, below=0.5)),
    ),
    note="Cutting off keeps the constant and gives the loss the range that a gap needs.",
    **_COMMON,
)
