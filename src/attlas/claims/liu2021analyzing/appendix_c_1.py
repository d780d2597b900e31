r"""Appendix C.1: region bounds with attention, s0 active inputs, against those of all p inputs.

In logarithms. Without the rounding of n1 / s0 everything follows from one line: (n1 / x)^x
increases for x <= n1 / e.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.expressivity.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
    liu2021_regions_maximum,
)
from attlas.claims.liu2021analyzing.region_instances import ROUNDINGS, as_instance, size_pairs
from attlas.core.generator import generator
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Coverage,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness

_PAPER = "liu2021analyzing"


def _sizes(key: PRNGKeyArray, count: int) -> Instance:
    """Numbers p over three decades, s0 from 1 to nearly p, n1 over what lies around them."""
    rng = generator(key)
    p = 2.0 + 10.0 ** rng.uniform(0, 3, count)
    s0 = 1 + (p - 1) * rng.uniform(0, 0.99, count)
    s0[::4] = 1.0
    n1 = p * 10.0 ** rng.uniform(-0.5, 2, count)
    return {name: jnp.asarray(value) for name, value in (("p", p), ("s0", s0), ("n1", n1))}


def _ordered(instance: Instance) -> Instance:
    """At least one active input, and a hundredth of the inputs inactive."""
    s0 = jnp.clip(instance["s0"], 1.0, 1e4)
    return {**instance, "s0": s0, "p": jnp.maximum(instance["p"], 1.01 * s0)}


def _slope(instance: Instance) -> tuple[Array, Array]:
    """(p log p - s0 log s0) / (p - s0), and the size of its terms."""
    p, s0 = instance["p"], instance["s0"]
    upper, lower = p * jnp.log(p), s0 * jnp.log(s0)
    return (upper - lower) / (p - s0), (upper + lower) / (p - s0)


def _break_even(instance: Instance, offset: float = 0.0) -> Sides:
    p, s0, n1 = (instance[k] for k in ("p", "s0", "n1"))
    slope, size = _slope(instance)
    parts = s0 * jnp.log(n1 / s0), p * jnp.log(n1 / p)
    right = (p - s0) * (slope - jnp.log(n1) + offset)
    scale = (p - s0) * (size + jnp.log(n1)) + jnp.abs(parts[0]) + jnp.abs(parts[1])
    return Sides(parts[0] - parts[1], right, scale)


BREAK_EVEN = Claim(
    name=f"{_PAPER}/appendix-c-1-break-even",
    paper=_PAPER,
    locator="Appendix C.1, its condition",
    statement=(
        r"\log (n_1/s_0)^{s_0} - \log (n_1/p)^p = (p - s_0) ( \frac{p \log p - s_0 \log s_0}"
        r"{p - s_0} - \log n_1 )"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_sizes,
    sides=_break_even,
    control=Control("n1 larger by a factor e", lambda i: _break_even(i, -1.0)),
    terms=ROUNDINGS,
    note=(
        "So attention has the smaller bound, n1 / s0 and n1 / p not being rounded down, exactly "
        "when log n1 is at least the fraction."
    ),
)


def _bounded(instance: Instance, bound: str) -> Sides:
    p, s0 = instance["p"], instance["s0"]
    slope, size = _slope(instance)
    right = {
        "printed": p / (p - s0) * jnp.log(p),
        "sharp": 1 + jnp.log(p),
        "without e": jnp.log(p),
    }[bound]
    return Sides(slope, right, size)


_SLOPE: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "instances": _sizes,
    "terms": ROUNDINGS,
    "control": Control("log p alone", lambda i: _bounded(i, "without e")),
}

PRINTED_SLOPE = Claim(
    name=f"{_PAPER}/appendix-c-1",
    locator="Appendix C.1, its inequality",
    statement=(
        r"\frac{p \log p - s_0 \log s_0}{p - s_0} \le \frac{p}{p - s_0} \log p,"
        r"\quad 1 \le s_0 < p"
    ),
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    sides=lambda i: _bounded(i, "printed"),
    note=(
        "Equal at s0 = 1 alone. The factor p / (p - s0) is close to 1 for small s0, not 'close "
        "to p' as printed; at s0 = p / 2 the right side asks for n1 >= p^2, and near p for more "
        "than any width."
    ),
    **_SLOPE,
)

SHARP_SLOPE = Claim(
    name=f"{_PAPER}/appendix-c-1-sharp",
    locator="Appendix C.1, its inequality sharpened",
    statement=r"\frac{p \log p - s_0 \log s_0}{p - s_0} \le 1 + \log p, \quad 1 \le s_0 < p",
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    sides=lambda i: _bounded(i, "sharp"),
    free=("p", "s0"),
    domain=_ordered,
    note=(
        "The left side is a mean of 1 + log x over [s0, p]: it tends to the right one for s0 "
        "near p. So n1 >= e p suffices for every s0, without rounding."
    ),
    **_SLOPE,
)


def _triples() -> Witness:
    """(n1, s0, p) with the condition of C.1, and the bounds as Theorem 4 prints them."""
    sizes = ((200, 50, 73), (199, 1, 100), (299, 99, 100))
    n1, s0, p = np.asarray(sizes, float).T
    maxima = [[math.log(liu2021_regions_maximum(n, s)) for s in rest] for n, *rest in sizes]
    bounds = [[math.log(liu2021_regions(n, s)) for s in rest] for n, *rest in sizes]
    found = {"n1": n1, "s0": s0, "p": p}
    return found | {"bounds": np.asarray(bounds), "maxima": np.asarray(maxima)}


def _repeated(key: PRNGKeyArray, count: int) -> Instance:
    """The one instance that the statement is about, repeated."""
    del key
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in _triples().items()}


def _wide(instance: Instance) -> Array:
    """Condition of C.1, for all triples."""
    return jnp.all(jnp.log(instance["n1"]) >= _slope(instance)[0])


COMPARISON = Claim(
    name=f"{_PAPER}/theorem-4-comparison",
    paper=_PAPER,
    locator="Theorem 4 and appendix C.1, 'the bound of attention model is smaller'",
    statement=(
        r"\log n_1 \ge \frac{p \log p - s_0 \log s_0}{p - s_0} \Rightarrow"
        r"\lfloor n_1/s_0 \rfloor^{s_0} \le \lfloor n_1/p \rfloor^p"
    ),
    kind=Kind.INEQUALITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_repeated,
    sides=lambda i: Sides(i["bounds"][:, 0], i["bounds"][:, 1]),
    witness=_triples,
    control=(
        Control(
            "without rounding down",
            lambda i: Sides(
                i["s0"] * jnp.log(i["n1"] / i["s0"]), i["p"] * jnp.log(i["n1"] / i["p"])
            ),
            expect=Outcome.SUPPORTED,
        ),
        Control(
            "the maxima in place of their lower bounds",
            lambda i: Sides(i["maxima"][:, 0], i["maxima"][:, 1]),
            expect=Outcome.SUPPORTED,
        ),
    ),
    assumptions=(Assumption("n1 is as large as C.1 asks", _wide),),
    expect=Expectation(
        Outcome.VIOLATED, "n1 / s0 and n1 / p are rounded down: the bounds are not monotone in s0"
    ),
    terms=ROUNDINGS,
    note=(
        "n1 = 200: 10^30.1 at s0 = 50, 10^22.0 at s0 = 73; n1 = 199: 199 at s0 = 1, but 1 at the "
        "figure's p = 100; n1 = 299 > e p: 10^47.2 at s0 = 99, 10^30.1 at p = 100 (the last such "
        "n1 is 2899). Lower bounds of maxima say nothing about their order; the maxima are in the "
        "order that the paper wants, see theorem-4-monotone."
    ),
)


def _pairs(key: PRNGKeyArray, count: int) -> Instance:
    """Bounds and maxima at s0 and at one input more, on the grid."""
    del key, count
    functions = {
        "printed": liu2021_regions,
        "with": liu2021_regions_maximum,
        "without": liu2021_central_regions_maximum,
    }
    return as_instance(
        [
            {
                f"{name}_{side}": math.log(of(n1, s))
                for name, of in functions.items()
                for side, s in (("few", s0), ("many", s0 + 1))
            }
            for n1, s0 in size_pairs()
        ]
    )


def _compared(instance: Instance, *names: str) -> Sides:
    few, many = (jnp.stack([instance[f"{n}_{s}"] for n in names]) for s in ("few", "many"))
    return Sides(few, many)


MONOTONE = Claim(
    name=f"{_PAPER}/theorem-4-monotone",
    paper=_PAPER,
    locator="Theorem 4, its conclusion from the maxima",
    statement=(
        r"\sum_{j \le s_0} \binom{n_1}{j} \le \sum_{j \le s_0 + 1} \binom{n_1}{j}, \quad"
        r"2 \sum_{j < s_0} \binom{n_1 - 1}{j} \le 2 \sum_{j \le s_0} \binom{n_1 - 1}{j}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_pairs,
    sides=lambda i: _compared(i, "with", "without"),
    control=Control("the printed lower bounds", lambda i: _compared(i, "printed")),
    count=len(size_pairs()),
    terms=ROUNDINGS,
    coverage=Coverage.EXHAUSTIVE,
    note=(
        "In logarithms. Fewer inputs with weight, fewer regions at most, with biases and "
        "without: the conclusion of the paper, for weights f that do not depend on x."
    ),
)
