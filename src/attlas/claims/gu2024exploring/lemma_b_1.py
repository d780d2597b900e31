r"""Lemma B.1, parts 2 to 13, on the event of part 1.

Symbols as in `lemma_b_1_instances`: on the event |<w_r, x_i>| <= B the parts hold surely;
`lemma_b_1_event` has its probability.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from attlas.bounds.optimisation.gu2024_perturbation import gu2024_basic_bounds
from attlas.claims.gu2024exploring.lemma_b_1_instances import Pair, drawn_pairs, pair
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)

_PAPER = "gu2024exploring"
_CHAIN = "Lemma B.1 (Part 13)"
_ROUNDINGS = 64
"""Products over d, an exponential, a sum of m, a division: below 32; twice, for both weights."""


_EVENT = Assumption(
    "R in (0, 0.01), ||x_i|| <= 1, ||w_r - w~_r|| <= R; B is the largest |<w_r, x_i>|, 1 at least",
    lambda i: (
        (i["R"] <= 0.01)
        & jnp.all(jnp.sum(i["X"] ** 2, axis=1) <= 1 + 1e-12)
        & jnp.all(jnp.sum((i["W_tilde"] - i["W"]) ** 2, axis=0) <= i["R"] ** 2 * (1 + 1e-9))
    ),
)
_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "count": 48,
    "terms": _ROUNDINGS,
}
Bound = Callable[[Pair], Array]


def _part(
    number: int,
    statement: str,
    compare: Callable[[Pair, Array], Sides],
    wrong: tuple[str, Bound],
    note: str,
    place: int = 0,
) -> Claim:
    """One part; `place` is its position in the chain that ends in Part 13."""
    text, false = wrong

    def sides(instance: Instance) -> Sides:
        p = pair(instance)
        return compare(p, gu2024_basic_bounds(p.B, p.R, p.m)[number])

    def mutated(instance: Instance) -> Sides:
        p = pair(instance)
        return compare(p, false(p))

    return Claim(
        name=f"{_PAPER}/lemma-b-1-part-{number}",
        locator=f"Lemma B.1, Part {number}",
        statement=statement,
        status=Status.RECONSTRUCTED,
        provenance=Provenance.DERIVED,
        instances=drawn_pairs,
        assumptions=(_EVENT,),
        sides=sides,
        control=Control(text, sides=mutated),
        ledger=Link(_CHAIN, place) if place else None,
        note=note,
        **_COMMON,
    )


def _moved(p: Pair, right: Array) -> Sides:
    return Sides(jnp.abs(p.moved), right, scale=p.rounding)


def _change(p: Pair, right: Array) -> Sides:
    return Sides(jnp.abs(p.moved - p.logits), right, scale=p.rounding)


def _factor(p: Pair, right: Array) -> Sides:
    return Sides(jnp.abs(jnp.expm1(p.moved - p.logits)), right, scale=p.rounding)


def _exponential(p: Pair, right: Array) -> Sides:
    left = jnp.exp(jnp.abs(p.logits))
    return Sides(left, right, scale=p.rounding * jnp.max(left))


def _exponential_moved(p: Pair, right: Array) -> Sides:
    left = jnp.exp(jnp.abs(p.moved))
    return Sides(left, right, scale=p.rounding * jnp.max(left))


def _exponentials(p: Pair, right: Array) -> Sides:
    left = jnp.abs(jnp.exp(p.logits) - jnp.exp(p.moved))
    return Sides(left, right, scale=p.rounding * jnp.exp(jnp.maximum(p.logits, p.moved)))


def _normalisers(p: Pair, right: Array) -> Sides:
    largest = jnp.maximum(p.alpha, p.alpha_moved)
    return Sides(jnp.abs(p.alpha - p.alpha_moved), right, scale=p.rounding * largest)


def _inverses(p: Pair, right: Array) -> Sides:
    least = jnp.minimum(p.alpha, p.alpha_moved)
    return Sides(jnp.abs(1 / p.alpha - 1 / p.alpha_moved), right, scale=p.rounding / least)


def _share(p: Pair, right: Array) -> Sides:
    """S and 1 / (m^2 S) below one number: both sides of part 10."""
    left = jnp.stack([p.S, 1 / (p.m**2 * p.S)])
    return Sides(left, right, scale=p.rounding * left)


def _share_moved(p: Pair, right: Array) -> Sides:
    left = jnp.stack([p.S_moved, 1 / (p.m**2 * p.S_moved)])
    return Sides(left, right, scale=p.rounding * left)


def _softmax_change(p: Pair, right: Array) -> Sides:
    return Sides(jnp.abs(p.S - p.S_moved), right, scale=p.rounding * p.S)


PART_2 = _part(
    2,
    r"|\langle \tilde{w}_r, x_i \rangle| \le B + R",
    _moved,
    ("B without R", lambda p: p.B),
    "B is taken from the weights: attained.",
)
PART_3 = _part(
    3,
    r"|\langle w_r - \tilde{w}_r, x_i \rangle| \le R",
    _change,
    ("R/2", lambda p: p.R / 2),
    "Attained by a column that moves along a unit input.",
)
PART_4 = _part(
    4,
    r"\exp(-B) \le \exp(\langle w_r, x_i \rangle) \le \exp(B)",
    _exponential,
    ("1 + B in place of e^B", lambda p: 1 + p.B),
    "Attained where B is.",
)
PART_5 = _part(
    5,
    r"\exp(-B-R) \le \exp(\langle \tilde{w}_r, x_i \rangle) \le \exp(B + R)",
    _exponential_moved,
    ("e^B without R", lambda p: jnp.exp(p.B)),
    "Attained where B is.",
)
PART_6 = _part(
    6,
    r"|\exp(\langle w_r - \tilde{w}_r, x_i \rangle) - 1| \le 2R",
    _factor,
    ("R/2", lambda p: p.R / 2),
    "From Fact A.6; 1.006 R is enough on R <= 0.01.",
)
PART_7 = _part(
    7,
    r"|\exp(\langle w_r, x_i \rangle) - \exp(\langle \tilde{w}_r, x_i \rangle)| \le"
    r"2 R \exp(B + R)",
    _exponentials,
    ("2 R without e^(B+R)", lambda p: 2 * p.R),
    "Half of the bound is attained: the mean value theorem needs no 2, here or in parts 8 and 9.",
    place=1,
)
PART_8 = _part(
    8,
    r"|\alpha_i - \tilde{\alpha}_i| \le 2 m R \exp(B + R)",
    _normalisers,
    ("2 m R without e^(B+R)", lambda p: 2 * p.m * p.R),
    "Half of it would do; an eighth is reached, as not all logits are at B. Relative to alpha "
    "the change is e^R - 1, without B (part-8-sharp).",
    place=2,
)
PART_9 = _part(
    9,
    r"|\alpha_i^{-1} - \tilde{\alpha}_i^{-1}| \le \frac{2R}{m} \exp(3B + 2R)",
    _inverses,
    ("R^2 in place of R", lambda p: 2 * p.R**2 / p.m * jnp.exp(3 * p.B + 2 * p.R)),
    "Takes a large change and small sums together, which do not meet: loose by 2 e^(2B).",
    place=3,
)
PART_10 = _part(
    10,
    r"\frac{\exp(-2B)}{m} \le S_{i,r} \le \frac{\exp(2B)}{m}",
    _share,
    ("e^(B/2) in place of e^(2B)", lambda p: jnp.exp(p.B / 2) / p.m),
    "Reached for wide layers only: one logit at B, the others at -B.",
)
PART_11 = _part(
    11,
    r"\frac{\exp(-2B-2R)}{m} \le \tilde{S}_{i,r} \le \frac{\exp(2B + 2R)}{m}",
    _share_moved,
    ("e^(B/2) in place of e^(2B+2R)", lambda p: jnp.exp(p.B / 2) / p.m),
    "As part 10, for the moved weights.",
)
PART_12 = _part(
    12,
    r"|S_{i,r} - \tilde{S}_{i,r}| \le \frac{4R}{m} \exp(4B + 3R)",
    _softmax_change,
    ("R^2 in place of R", lambda p: 4 * p.R**2 / p.m * jnp.exp(4 * p.B + 3 * p.R)),
    "Two terms of the proof, 2 R e^(2B+R) and 2 R e^(4B+3R), give the factor 4; less than a "
    "hundredth is reached (part-12-sharp).",
    place=4,
)


def _tested(instance: Instance, right: Callable[[Pair], Array]) -> Sides:
    p = pair(instance)
    left = jnp.abs((p.S - p.S_moved) @ instance["z"])
    return Sides(left, right(p), scale=p.rounding)


PART_13 = Claim(
    name=f"{_PAPER}/lemma-b-1-part-13",
    locator="Lemma B.1, Part 13",
    statement=(
        r"|\langle z, S_i \rangle - \langle z, \tilde{S}_i \rangle| \le 4R \exp(4B + 3R),"
        r"\quad \|z\|_\infty \le 1"
    ),
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=drawn_pairs,
    assumptions=(_EVENT,),
    sides=lambda i: _tested(i, lambda p: gu2024_basic_bounds(p.B, p.R, p.m)[13]),
    control=Control(
        "R^2 in place of R",
        sides=lambda i: _tested(i, lambda p: 4 * p.R**2 * jnp.exp(4 * p.B + 3 * p.R)),
    ),
    ledger=Link(_CHAIN, 5),
    note=(
        "The chain 7, 8, 9, 12, 13 loses 4 e^(4B) >= 218: 2 tanh(R/2) <= R is the best bound and "
        "needs no B (part-13-sharp)."
    ),
    **_COMMON,
)
