r"""(A2) and (A4): attention is concentrated, of rows that sum to one.

p = 9 weights, softmax rows from nearly uniform to nearly one-hot. Everything is compared for all
numbers s of largest weights at once.
"""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.measures.attention.concentration import Norm, concentration

_PAPER = "liu2021analyzing"
_P = 9
_TAUS = (0.1, 0.3, 0.01)
_NORMS: tuple[Norm, ...] = ("l2", "raw l2", "l1")
# A logit of 40 is rounded to 40 eps, and so is its weight; then sums of p terms.
ROUNDINGS = 256

_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "provenance": Provenance.DERIVED,
    "count": 48,
    "terms": ROUNDINGS,
}


def _logits(key: PRNGKeyArray, count: int) -> Instance:
    """Rows of logits with spreads of 0.03 to 10, and a factor r >= 1 for each."""
    rng = generator(key)
    spread = 10 ** rng.uniform(-1.5, 1, (count, 1))
    logits = spread * rng.standard_normal((count, _P))
    return {"logits": jnp.asarray(logits), "r": jnp.asarray(rng.uniform(1, 5, count))}


def _with_sizes(key: PRNGKeyArray, count: int) -> Instance:
    """Rows with the library's s_0, one line a norm and one column a level, and top sqrt(p)."""
    logits = np.asarray(_logits(key, count)["logits"])
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    found = [concentration(weights, taus=_TAUS, norm=norm) for norm in _NORMS]
    tops = (found[0].top_norm, found[0].relative_top_norm, found[0].top_share)
    parts = {
        "weights": weights,
        "s0": np.stack([one.s0 for one in found], axis=1).astype(float),
        "top": np.stack(tops, axis=1),
    }
    return {name: jnp.asarray(value) for name, value in parts.items()}


def _needed(weights: Array) -> Array:
    """What a set's sum of squares, of squares and of weights must reach: norms x levels."""
    kept = 1 - jnp.asarray(_TAUS, weights.dtype)
    square = jnp.sum(weights**2)
    return jnp.stack([kept**2 * square, kept**2, kept * jnp.sum(weights)])


def _smallest(weights: Array, sets: np.ndarray) -> Array:
    """Size of the smallest of some sets that reaches what is needed; 0 where none does."""
    members = jnp.asarray(sets, weights.dtype)
    sizes = jnp.sum(members, axis=1)
    reached = jnp.stack([members @ weights**2, members @ weights**2, members @ weights])
    good = reached[:, None, :] >= _needed(weights)[:, :, None]
    least = jnp.min(jnp.where(good, sizes[None, None, :], _P + 1.0), axis=2)
    return jnp.where(least > _P, 0.0, least)


_ALL_SETS = np.array([[(k >> i) & 1 for i in range(_P)] for k in range(2**_P)])
_PREFIXES = np.tril(np.ones((_P, _P)))


def _enumerated(instance: Instance, sets: np.ndarray) -> Sides:
    return Sides(instance["s0"], _smallest(instance["weights"], sets))


SMALLEST_SUPPORT = Claim(
    name=f"{_PAPER}/smallest-support",
    paper=_PAPER,
    locator="(A2) and (A4), the smallest s_0 of a row",
    statement=(
        r"\min \{ s : \|a_{(1..s)}\| \ge (1-\tau) \|a\| \} = "
        r"\min \{ |S| : S \subseteq \{1, \ldots, p\},\ \|a_S\| \ge (1-\tau) \|a\| \}"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_with_sizes,
    sides=partial(_enumerated, sets=_ALL_SETS),
    control=Control("sets of the first weights", sides=partial(_enumerated, sets=_PREFIXES)),
    count=48,
    terms=ROUNDINGS,
    note=(
        "The library's s_0 against all 512 subsets of p = 9 weights, at tau = 0.01, 0.1 and 0.3, "
        "in l2, in l1 and as printed: ||a_(1..s)||_2 >= 1 - tau, which no s reaches on a flat row "
        "(s_0 = 0 then), because rows sum to one and are not of length one."
    ),
)


def _best(instance: Instance, sets: np.ndarray) -> Sides:
    """The three statistics of the best of some sets of sqrt(p) = 3 weights."""
    a = instance["weights"]
    members = jnp.asarray(sets, a.dtype)
    norm = jnp.sqrt(jnp.max(members @ a**2))
    share = jnp.max(members @ a)
    return Sides(instance["top"], jnp.stack([norm, norm / jnp.sqrt(jnp.sum(a**2)), share]))


_TRIPLES = _ALL_SETS[_ALL_SETS.sum(axis=1) == math.isqrt(_P)]

TOP_WEIGHTS = Claim(
    name=f"{_PAPER}/top-weights",
    paper=_PAPER,
    locator="Experiment 1, the top sqrt(p) weights",
    statement=(
        r"\|a_{(1..s)}\|_2 = \max_{|S| = s} \|a_S\|_2, \quad "
        r"\sum_{i \le s} a_{(i)} = \max_{|S| = s} \sum_{i \in S} a_i \quad "
        r"(s = \lfloor \sqrt{p} \rfloor)"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_with_sizes,
    sides=partial(_best, sets=_TRIPLES),
    control=Control("the first sqrt(p) weights", sides=partial(_best, sets=_TRIPLES[:1])),
    count=48,
    terms=ROUNDINGS,
    note="The plain and the relative l2 norm and the share that experiment 1 stores.",
)


def _sorted(instance: Instance, r: Array | float = 1.0) -> Array:
    """Weights softmax(r z) in falling order."""
    logits = jnp.sort(instance["logits"])[::-1]
    return jax.nn.softmax(r * logits)


def _gap(instance: Instance, uniform: bool) -> Sides:
    logits = jnp.sort(instance["logits"])[::-1]
    a = jnp.full_like(logits, 1 / _P) if uniform else jax.nn.softmax(logits)
    sizes = jnp.arange(1, _P, dtype=a.dtype)
    lead = jnp.exp(logits[1:] - logits[:-1])
    others = (_P - sizes) / sizes
    squares = jnp.cumsum(a**2)[:-1] / jnp.sum(a**2)
    left = jnp.stack([1 / (1 + others * lead), 1 / jnp.sqrt(1 + others * lead**2)])
    return Sides(left, jnp.stack([jnp.cumsum(a)[:-1], jnp.sqrt(squares)]))


ASSUMPTION_A2 = Claim(
    name=f"{_PAPER}/assumption-a2",
    locator="(A2) and (A4), for softmax",
    statement=(
        r"a = \mathrm{softmax}(z),\ \Delta = z_{(s)} - z_{(s+1)}: \quad "
        r"\frac{\|a_{(1..s)}\|_2}{\|a\|_2} \ge "
        r"\left( 1 + \tfrac{p-s}{s} e^{-2\Delta} \right)^{-1/2}, \quad "
        r"\sum_{i \le s} a_{(i)} \ge \left( 1 + \tfrac{p-s}{s} e^{-\Delta} \right)^{-1}"
    ),
    status=Status.NEW,
    instances=_logits,
    sides=partial(_gap, uniform=False),
    control=Control("uniform attention", sides=partial(_gap, uniform=True)),
    note=(
        "When softmax does 'naturally' satisfy (A2): if the s_0-th logit leads the next by Delta. "
        "Attained by two levels of logits. At p = 130, s_0 = 11 and tau = 0.1 a lead of 1.9 is "
        "enough; without a lead nothing is gained over uniform attention."
    ),
    **_COMMON,
)


def _trivial(instance: Instance, largest: bool) -> Sides:
    a = _sorted(instance)
    squares = jnp.cumsum((a if largest else a[::-1]) ** 2) / jnp.sum(a**2)
    sizes = jnp.arange(1, _P + 1, dtype=a.dtype)
    return Sides(jnp.sqrt(sizes / _P), jnp.sqrt(squares))


ASSUMPTION_A2_TRIVIAL = Claim(
    name=f"{_PAPER}/assumption-a2-trivial",
    locator="(A2), for every attention",
    statement=r"\|f_{(1..s)}\|_2 \ge \sqrt{s/p}\, \|f\|_2 \quad (1 \le s \le p)",
    status=Status.NEW,
    instances=_logits,
    sides=partial(_trivial, largest=True),
    control=Control("the s smallest weights", sides=partial(_trivial, largest=False)),
    note=(
        "'There exist 0 < s_0 < p and 0 < tau < 1' holds for all weights, uniform ones too: "
        "s_0 = 1 and tau = 1 - 1/sqrt(p). (A2) names s_0 and tau and restricts nothing. The "
        "top 11 of 130 uniform weights have the relative l2 norm 0.29."
    ),
    **_COMMON,
)


def _forced(instance: Instance, unit: bool) -> Sides:
    a = _sorted(instance)
    a = a / jnp.sqrt(jnp.sum(a**2)) if unit else a
    return Sides(jnp.cumsum(a**2), a[0])


LARGEST_WEIGHT = Claim(
    name=f"{_PAPER}/largest-weight",
    locator="Experiment 1, what an l2 norm of 0.909 says",
    statement=(
        r"a \ge 0,\ \sum_i a_i = 1: \quad \max_i a_i \ge \|a_{(1..s)}\|_2^2 \quad (1 \le s \le p)"
    ),
    status=Status.NEW,
    instances=_logits,
    sides=partial(_forced, unit=False),
    free=("logits",),
    control=Control(
        "rows scaled to length one, as in model (3)", sides=partial(_forced, unit=True)
    ),
    note=(
        "If 0.909 is the plain l2 norm of softmax weights, one weight holds at least 0.826 of "
        "the row: the top sqrt(p) are then little more than one word. Equality at m <= s equal "
        "weights 1/m."
    ),
    **_COMMON,
)


def _share(instance: Instance, relative: bool) -> Sides:
    a = _sorted(instance)
    squares = jnp.cumsum(a**2)
    return Sides(jnp.cumsum(a), squares / jnp.sum(a**2) if relative else squares)


SHARE_BELOW_NORM = Claim(
    name=f"{_PAPER}/share-below-norm",
    locator="Experiment 1, l2 norm against share",
    statement=(
        r"a \ge 0,\ \sum_i a_i = 1: \quad "
        r"\sum_{i \le s} a_{(i)} \le \frac{\|a_{(1..s)}\|_2^2}{\|a\|_2^2} \quad (1 \le s \le p)"
    ),
    status=Status.NEW,
    instances=_logits,
    sides=partial(_share, relative=True),
    control=Control("the norm of the row left out", sides=partial(_share, relative=False)),
    note=(
        "'The top sqrt(p) contribute to 90.9 % of attention weights' is an l2 norm. If it is "
        "relative to the row, the share of the attention is at most 82.6 % and may be much less. "
        "Equality at uniform rows."
    ),
    **_COMMON,
)


def _colder(instance: Instance, alone: bool) -> Sides:
    """Statistics at temperature 1 and 1/r that may only grow."""

    def grows(a: Array) -> Array:
        squares = jnp.cumsum(a**2)
        log = jnp.log(jnp.maximum(a, jnp.finfo(a.dtype).tiny))
        entropy = jnp.sum(a * log)[None] + jnp.log(jnp.asarray(float(_P), a.dtype))
        tops = a if alone else jnp.cumsum(a)
        return jnp.concatenate([tops, squares / squares[-1], squares, entropy])

    left, right = grows(_sorted(instance)), grows(_sorted(instance, instance["r"]))
    return Sides(left, right, scale=jnp.ones_like(left) * jnp.log(jnp.asarray(float(_P))))


TEMPERATURE = Claim(
    name=f"{_PAPER}/temperature",
    locator="Section 5, 'the smaller the temperature, more concentrated'",
    statement=(
        r"a = \mathrm{softmax}(z),\ b = \mathrm{softmax}(rz),\ r \ge 1: \quad "
        r"\sum_{i \le s} a_{(i)} \le \sum_{i \le s} b_{(i)}, \quad "
        r"\frac{\|a_{(1..s)}\|_2}{\|a\|_2} \le \frac{\|b_{(1..s)}\|_2}{\|b\|_2}, \quad "
        r"\|a_{(1..s)}\|_2 \le \|b_{(1..s)}\|_2, \quad H(b) \le H(a)"
    ),
    status=Status.RECONSTRUCTED,
    instances=_logits,
    sides=partial(_colder, alone=False),
    free=("logits", "r"),
    domain=lambda i: {**i, "r": jnp.clip(i["r"], 1.0, 5.0)},
    control=Control("each large weight alone", sides=partial(_colder, alone=True)),
    note=(
        "For every s: the colder row majorises, so s_0 falls for every tau and every norm. The "
        "control: section 6 says that a factor of 5 'retains all large weights', which only the "
        "largest is sure of; (0.5, 0.4, 0.1) becomes (0.753, 0.247, 0.000)."
    ),
    **_COMMON,
)
