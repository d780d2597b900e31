r"""Theorem 5.1: from the scores of K words to the loss, on classes small enough to be exact.

Rademacher complexities are averages over all signs of six samples. Every other class is the one
where the factor sqrt(K) is needed: equal inputs, sample i with true word i, and K scores that are
free to be +-B on their own.
"""

from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.generalisation.trauger2023_masked import (
    clipped_cross_entropy,
    trauger2023_masked,
)
from attlas.core.generator import seed_of
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)

_PAPER = "trauger2023sequence"
_WORDS = _SAMPLES = 6
# Averages over 64 signs of sums of six losses.
_TERMS = 160


def _corners() -> np.ndarray:
    """All sign vectors of length 6."""
    bits = (np.arange(2**_SAMPLES)[:, None] >> np.arange(_SAMPLES)) & 1
    return 2.0 * bits - 1


@cache
def _batch(seed: tuple[int, ...], count: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    signs = _corners()
    size = 10.0 ** rng.uniform(-2, 1, (count, 1, 1, 1))
    scores = size * rng.normal(size=(count, len(signs), _SAMPLES, _WORDS))
    # a class of few effective functions: a common matrix of scores and small deviations
    scores[::4] = scores[::4, :1] + 0.1 * scores[::4]
    scores[1::2] = size[1::2] * signs[:, None, :]
    free = np.zeros(count, bool)
    free[1::2] = True
    ceiling = np.where(np.arange(count) % 3 == 0, 1e6, 10.0 ** rng.uniform(-0.5, 1, count))
    return {"scores": scores, "size": size[:, 0, 0, 0], "free": free, "ceiling": ceiling}


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    return {name: jnp.asarray(value) for name, value in _batch(seed_of(key), count).items()}


def _complexity(values: Array) -> Array:
    """Exact empirical Rademacher complexity of functions given by their values, (N, m)."""
    return jnp.mean(jnp.max(jnp.asarray(_corners()) @ values.T, axis=1)) / values.shape[1]


def _both(instance: Instance, ceiling: Array | float | None = None) -> tuple[Array, Array]:
    """Complexity of the losses, and the largest of the scores of one word."""
    scores = instance["scores"]
    ceiling = instance["ceiling"] if ceiling is None else ceiling

    def loss(of_sample: Array, word: Array) -> Array:
        rolled = jnp.roll(of_sample, -word)
        return clipped_cross_entropy(rolled, 0, ceiling)

    losses = jax.vmap(jax.vmap(loss), (0, None))(scores, jnp.arange(_SAMPLES))
    words = jax.vmap(_complexity, 2)(scores)
    return _complexity(losses), jnp.max(words)


def _contraction(instance: Instance, words: int = _WORDS) -> Sides:
    left, right = _both(instance)
    scale = 1 + jnp.max(jnp.abs(instance["scores"]))
    return Sides(left, trauger2023_masked(right, words), scale=scale)


def _needed(instance: Instance, power: float = 0.5) -> Sides:
    """sqrt(K) (1 - 1/K) times the complexity of a word against that of the losses."""
    losses, word = _both(instance, 1e6)
    return Sides(_WORDS**power * (1 - 1 / _WORDS) * word, losses, scale=1 + instance["size"])


def _radius(instance: Instance, share: float = 0.5) -> Sides:
    left, _ = _both(instance)
    scale = 1 + instance["ceiling"]
    return Sides(left, share * instance["ceiling"], scale=scale)


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "instances": _instances,
    "provenance": Provenance.DERIVED,
    "count": 72,
    "terms": _TERMS,
}

CONTRACTION = Claim(
    name=f"{_PAPER}/theorem-5-1-contraction",
    locator="Theorem 5.1 with every constant",
    statement=(
        r"\hat R(\ell_M \circ F) \le 2K \max_{s \le K} \hat R(F_s), \quad "
        r"F_s = \{ x \mapsto f(x)_s : f \in F \}"
    ),
    status=Status.RECONSTRUCTED,
    sides=_contraction,
    control=Control("without the factor K", sides=partial(_contraction, words=1)),
    note=(
        "Printed is an order, sqrt(K) up to logarithms, whose constant is unknown and which "
        "speaks of the worst sample. This is the contraction of Maurer, exact on six samples. On "
        "these classes 2 sqrt(K) would pass too: whether it always does is open here."
    ),
    **_COMMON,
)

NEEDED = Claim(
    name=f"{_PAPER}/theorem-5-1-sqrt-k-needed",
    locator="Theorem 5.1, the factor sqrt(K)",
    statement=(
        r"\sqrt K \Big( 1-\frac1K \Big) \max_s \hat R(F_s) \le \hat R(\ell \circ F), \quad "
        r"F = \{ x \mapsto u : u \in \{-B,B\}^K \}, \ y_i = i, \ m = K"
    ),
    status=Status.NEW,
    sides=_needed,
    assumptions=(Assumption("all scores are free signs", lambda i: i["free"]),),
    control=Control("K in place of sqrt(K)", sides=partial(_needed, power=1.0)),
    note=(
        "The factor cannot be avoided on the readout, whose rows are free for each word: at "
        "u = -B sigma the losses reach 1 - 1/K of B on average, a word B / sqrt(K) at most. On "
        "the network below, which all words share, it is not needed: theorem-5-1-recursion."
    ),
    **_COMMON,
)

RADIUS = Claim(
    name=f"{_PAPER}/section-5-radius",
    locator="Section 5, range of the clipped loss",
    statement=r"\hat R(\ell_M \circ F) \le \frac M2",
    status=Status.NEW,
    sides=_radius,
    assumptions=(Assumption("clipped below 100", lambda i: i["ceiling"] < 100.0),),
    control=Control("a quarter of the ceiling", sides=partial(_radius, share=0.25)),
    note="A constant taken off all losses does not change the complexity: the chain starts at M/2.",
    **_COMMON,
)
