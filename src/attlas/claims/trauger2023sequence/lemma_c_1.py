r"""Lemma C.1: the softmax is Lipschitz from l_inf to l_1, with constant 1 where 2 is printed.

a and b are two vectors of logits. The sharpest bound in ||a - b||_inf alone is twice the
hyperbolic tangent of its half: softmax(b) gives any set A odds at most e^{2 delta} those of
softmax(a), and the logistic function rises by at most tanh(delta / 2) over a length of 2 delta.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "trauger2023sequence"
_TOKENS = 6
# Exponentials of logits, off by their own size in roundings, are the longest part.
_ROUNDINGS = 64


def _logits(key: PRNGKeyArray, count: int) -> Instance:
    """Flat and saturated logits at small and large distances; a third with two balanced groups."""
    rng = generator(key)
    delta = 10 ** rng.uniform(-2, 1.3, (count, 1))
    a = 10 ** rng.uniform(-1, 1, (count, 1)) * rng.normal(size=(count, _TOKENS))
    b = a + delta * rng.uniform(-1, 1, (count, _TOKENS))
    halves = np.tile([1.0, -1.0], _TOKENS // 2)
    a[::3], b[::3] = -delta[::3] / 2 * halves, delta[::3] / 2 * halves
    return {"a": jnp.asarray(a), "b": jnp.asarray(b)}


def _change(instance: Instance, bound: Any) -> Sides:
    a, b = instance["a"], instance["b"]
    moved = jnp.sum(jnp.abs(jax.nn.softmax(a) - jax.nn.softmax(b)))
    largest = jnp.maximum(jnp.max(jnp.abs(a)), jnp.max(jnp.abs(b)))
    # A logit's own rounding moves the probabilities by as much.
    error = _ROUNDINGS * jnp.finfo(a.dtype).eps * (1 + largest)
    return Sides(moved, bound(jnp.max(jnp.abs(a - b))), error=error)


def _times(delta: Any, factor: float) -> Any:
    return factor * delta


def _tangent(delta: Any, factor: float) -> Any:
    return factor * jnp.tanh(delta / 2)


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "instances": _logits,
    "terms": _ROUNDINGS,
    "count": 63,
}

LEMMA_C_1 = Claim(
    name=f"{_PAPER}/lemma-c-1",
    locator="Lemma C.1",
    statement=(
        r"\|\mathrm{softmax}(\theta_1) - \mathrm{softmax}(\theta_2)\|_1 \le "
        r"2 \|\theta_1 - \theta_2\|_\infty"
    ),
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    sides=partial(_change, bound=partial(_times, factor=2.0)),
    control=Control("1/2 in place of 2", sides=partial(_change, bound=partial(_times, factor=0.5))),
    note="Twice too large: see lemma-c-1-sharp.",
    **_COMMON,
)

LEMMA_C_1_SHARP = Claim(
    name=f"{_PAPER}/lemma-c-1-sharp",
    locator="Lemma C.1 with its best constant",
    statement=(
        r"\|\mathrm{softmax}(\theta_1) - \mathrm{softmax}(\theta_2)\|_1 \le "
        r"\|\theta_1 - \theta_2\|_\infty"
    ),
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    sides=partial(_change, bound=partial(_times, factor=1.0)),
    control=Control(
        "9/10 in place of 1", sides=partial(_change, bound=partial(_times, factor=0.9))
    ),
    note=(
        "1 is the best constant: two groups of equal weight that move against each other reach "
        "it for small distances. The term 2 B_x^2 sqrt(C) of Theorem 4.1 becomes B_x^2 sqrt(C), "
        "and 1 + 4 B_QK of Theorem 4.2 becomes 1 + 2 B_QK."
    ),
    **_COMMON,
)

LEMMA_C_1_EXACT = Claim(
    name=f"{_PAPER}/lemma-c-1-exact",
    locator="Lemma C.1, the best bound at every distance",
    statement=(
        r"\|\mathrm{softmax}(\theta_1) - \mathrm{softmax}(\theta_2)\|_1 \le "
        r"2 \tanh\big(\tfrac{1}{2} \|\theta_1 - \theta_2\|_\infty\big)"
    ),
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    sides=partial(_change, bound=partial(_tangent, factor=2.0)),
    free=("a", "b"),
    control=Control(
        "without the factor 2", sides=partial(_change, bound=partial(_tangent, factor=1.0))
    ),
    note=(
        "Equality at every distance, for two groups of equal weight at the midpoint of the move. "
        "It holds both the constant 1 and the largest possible change 2."
    ),
    **_COMMON,
)
