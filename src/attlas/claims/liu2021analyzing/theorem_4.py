r"""Theorem 4: the largest number of linear regions, with biases and without.

Counts are exact: every float is a rational number, and arrangements are counted in integers.
"""

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from attlas.bounds.expressivity.liu2021_regions import (
    liu2021_construction,
    liu2021_regions,
    liu2021_regions_maximum,
)
from attlas.claims.liu2021analyzing.region_instances import (
    ROUNDINGS,
    as_instance,
    masked_networks,
    size_pairs,
)
from attlas.core.old_claim import (
    Claim,
    Control,
    Coverage,
    Expectation,
    Instance,
    Kind,
    Link,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness
from attlas.measures.complexity.linear_regions import count_linear_regions

_PAPER = "liu2021analyzing"


def _witness() -> Witness:
    """s0 = 1, n1 = 3, and s0 = 2, n1 = 10: generic networks with and without biases."""
    sizes, rng = ((3, 1), (10, 2)), np.random.default_rng(0)
    found: dict[str, list[int]] = {"printed": [], "without": [], "with": []}
    for n1, s0 in sizes:
        W, (b, w2) = rng.standard_normal((n1, s0)), rng.standard_normal((2, n1))
        found["printed"].append(liu2021_regions(n1, s0))
        # Generic ones have the most regions: see theorem-4-central-maximum.
        found["without"].append(count_linear_regions(W, w2))
        found["with"].append(count_linear_regions(W, w2, b))
    return {name: np.asarray(values, float) for name, values in found.items()}


def _repeated(key: PRNGKeyArray, count: int) -> Instance:
    """The one instance that the statement is about, repeated."""
    del key
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in _witness().items()}


THEOREM_4 = Claim(
    name=f"{_PAPER}/theorem-4",
    paper=_PAPER,
    locator="Theorem 4, for the model as it is printed",
    statement=(
        r"\|f(x)\|_0 = s_0 < n_1: \quad \lfloor n_1/s_0 \rfloor^{s_0} \le \max_{w^{(1)}, w^{(2)}}"
        r"\#\,\mathrm{regions} \big( w^{(2)\top} \phi(\langle w^{(1)}, x \odot f \rangle) \big)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=_repeated,
    sides=lambda i: Sides(i["printed"], i["without"]),
    witness=_witness,
    control=Control(
        "with biases, as the proof has them and the model has not",
        lambda i: Sides(i["printed"], i["with"]),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(
        Outcome.VIOLATED, "without biases all hyperplanes meet at 0: 2 < 3 and 20 < 25 regions"
    ),
    terms=ROUNDINGS,
    note=(
        "s0 = 1, n1 = 3: two regions, where three are promised; s0 = 2, n1 = 10: 20 in place of "
        "25. Without biases the maximum grows like n1^(s0 - 1), the printed bound like n1^s0, so "
        "it fails for every s0 once n1 is large. Biases mend it, as the proof's units have them."
    ),
)


def _constructions(key: PRNGKeyArray, count: int) -> Instance:
    """The networks of the proof behind random positive weights f, counted as they are."""
    rng = np.random.default_rng(0)
    del key, count
    rows = []
    for n1, s0 in ((n, s) for s in (1, 2, 3) for n in range(s + 1, 11)):
        q = n1 // s0
        f = rng.uniform(0.1, 1.0, s0)
        slopes = np.r_[1.0, np.full(q - 1, 2.0)]
        W = np.vstack([np.outer(slopes, row) for row in np.eye(s0)]) * f[None, :]
        b, w2 = np.tile(-np.arange(float(q)), s0), np.tile((-1.0) ** np.arange(q), s0)
        rows.append(
            {
                "regions": count_linear_regions(W, w2, b),
                "corrected": liu2021_construction(n1, s0),
                "printed": liu2021_regions(n1, s0),
                "without": count_linear_regions(W, w2),
            }
        )
    # Inputs that f leaves out and units that are left over change nothing.
    return as_instance(rows)


THEOREM_4_CONSTRUCTION = Claim(
    name=f"{_PAPER}/theorem-4-construction",
    paper=_PAPER,
    locator="Proof of Theorem 4, its network",
    statement=(
        r"h_i = \max(0, 2 w_j x - (i-1)),\ i \le q = \lfloor n_1/s_0 \rfloor,\ j \le s_0: \quad"
        r"\#\,\mathrm{regions} = (q + 1)^{s_0}"
    ),
    kind=Kind.IDENTITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_constructions,
    sides=lambda i: Sides(i["regions"], i["corrected"]),
    control=(
        Control("printed: q regions a group", lambda i: Sides(i["regions"], i["printed"])),
        Control("its biases left out", lambda i: Sides(i["without"], i["corrected"])),
    ),
    count=24,
    terms=ROUNDINGS,
    coverage=Coverage.EXHAUSTIVE,
    note=(
        "All n1 up to 10 and s0 up to 3, behind positive weights f: the q units of a group cut "
        "their axis at q different places, into q + 1 pieces."
    ),
)


def _grid(key: PRNGKeyArray, count: int) -> Instance:
    """Logarithms of the printed bound, the construction and the maximum on the grid."""
    del key, count
    return as_instance(
        [
            {
                "printed": math.log(liu2021_regions(n1, s0)),
                "construction": math.log(liu2021_construction(n1, s0)),
                "most": math.log(liu2021_regions_maximum(n1, s0)),
                "least": math.log(liu2021_regions_maximum(n1, s0) - math.comb(n1, s0)),
            }
            for n1, s0 in size_pairs()
        ]
    )


_ON_GRID: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "instances": _grid,
    "count": len(size_pairs()),
    "terms": ROUNDINGS,
    "coverage": Coverage.EXHAUSTIVE,
}

THEOREM_4_PRINTED = Claim(
    name=f"{_PAPER}/theorem-4-with-biases",
    locator="Theorem 4, first link: the network of the proof",
    statement=(r"\lfloor n_1/s_0 \rfloor^{s_0} \le \big( \lfloor n_1/s_0 \rfloor + 1 \big)^{s_0}"),
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    sides=lambda i: Sides(i["printed"], i["construction"]),
    control=Control("the other way round", lambda i: Sides(i["construction"], i["printed"])),
    ledger=Link("Theorem 4, logarithms", 1),
    note=(
        "In logarithms. For s0 > n1 / 2 the printed bound is 1 and the construction has 2^s0 "
        "regions."
    ),
    **_ON_GRID,
)

THEOREM_4_BEST = Claim(
    name=f"{_PAPER}/theorem-4-best",
    locator="Theorem 4, second link: the maximum",
    statement=(
        r"\big( \lfloor n_1/s_0 \rfloor + 1 \big)^{s_0} \le \sum_{j \le s_0} \binom{n_1}{j}"
    ),
    status=Status.SHARPENED,
    provenance=Provenance.DERIVED,
    sides=lambda i: Sides(i["construction"], i["most"]),
    control=Control("without the last binomial", lambda i: Sides(i["construction"], i["least"])),
    ledger=Link("Theorem 4, logarithms", 2),
    note=(
        "In logarithms. Equal for s0 = 1 and close where s0 is near n1; in the middle the "
        "construction is far below the maximum, which is known exactly."
    ),
    **_ON_GRID,
)


def _attained(instance: Instance, counted: str, most: str) -> Sides:
    """The count against the maximum, and for generic networks the maximum against the count."""
    number, maximum = instance[counted], instance[most]
    other = jnp.where(instance["generic"] > 0, maximum, number)
    return Sides(jnp.stack([number, other]), jnp.stack([maximum, number]))


_COUNTED: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "status": Status.SHARPENED,
    "provenance": Provenance.DERIVED,
    "instances": masked_networks,
    "count": 36,
    "terms": ROUNDINGS,
}

THEOREM_4_MAXIMUM = Claim(
    name=f"{_PAPER}/theorem-4-maximum",
    locator="In place of Theorem 4, with biases",
    statement=(
        r"\#\,\mathrm{regions} \big( w^{(2)\top} \phi(\langle w^{(1)}, x \odot f \rangle + b)"
        r"\big) \le \sum_{j \le s_0} \binom{n_1}{j}, \quad \|f\|_0 = s_0, \quad "
        r"\mathrm{with\ equality\ for\ almost\ all\ } w^{(1)}, b, w^{(2)}"
    ),
    sides=lambda i: _attained(i, "regions", "most"),
    control=Control("without the last binomial", lambda i: Sides(i["regions"], i["least"])),
    note=(
        "The exact count of random weights is the maximum, which is checked as well. "
        "Half of the networks have small integers as weights, so that hyperplanes repeat and "
        "kinks cancel; most of those stay below."
    ),
    **_COUNTED,
)

THEOREM_4_CENTRAL = Claim(
    name=f"{_PAPER}/theorem-4-central-maximum",
    locator="In place of Theorem 4, without biases",
    statement=(
        r"\#\,\mathrm{cells} \big( \langle w^{(1)}_i, x \odot f \rangle = 0 \big)_{i \le n_1} \le"
        r"2 \sum_{j < s_0} \binom{n_1 - 1}{j}, \quad \|f\|_0 = s_0, \quad "
        r"\mathrm{with\ equality\ for\ almost\ all\ } w^{(1)}"
    ),
    sides=lambda i: _attained(i, "central", "most_central"),
    control=(
        Control("without the last binomial", lambda i: Sides(i["central"], i["least_central"])),
        Control("with biases", lambda i: Sides(i["cells"], i["most_central"])),
    ),
    note=(
        "Equality is checked on random weights, the bound also on small integers. With s0 = 1 it "
        "is 2, whatever n1: the refutation of the printed bound for the model without biases."
    ),
    **_COUNTED,
)
