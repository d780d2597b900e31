r"""The comparison of all bounds on one Transformer: each entry against a second computation."""

from functools import partial
from typing import Any

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from attlas.claims.trauger2023sequence.compare_instances import RANGE, comparisons, unions
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
# Quadrature to a relative 1e-12 and a scalar search, both for Dudley's integral.
_QUADRATURE = 1e-11


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    return {name: jnp.asarray(value) for name, value in comparisons(seed_of(key), count).items()}


def _values(instance: Instance, again: str = "value_again") -> Sides:
    left, right = instance["value"], instance[again]
    return Sides(left, right, error=_QUADRATURE * jnp.abs(right))


def _samples(instance: Instance, offset: float = 0.0) -> Sides:
    left, right = instance["samples"], instance["samples_again"] + offset
    # the digits of a logarithm: the entropy enters with its relative rounding
    return Sides(left, right, scale=jnp.asarray(10.0))


def _gaps(instance: Instance, factor: float = 1.0) -> Sides:
    """The gap, the best gap of the table, and whether it is below the range of the loss."""
    again = instance["gap_again"]
    vacuous = jnp.where(again < RANGE, 0.0, 1.0)
    left = jnp.stack([instance["gap"], instance["best"], instance["vacuous"]])
    stated = jnp.stack([factor * again, factor * instance["best_again"], vacuous])
    return Sides(left, stated, error=_QUADRATURE * jnp.abs(stated))


def _union_instances(key: PRNGKeyArray, count: int) -> Instance:
    return {name: jnp.asarray(value[:count]) for name, value in unions(seed_of(key)).items()}


def _unions(instance: Instance, again: str = "again") -> Sides:
    right = instance[again]
    return Sides(instance["gap"], right, error=_QUADRATURE * jnp.abs(right))


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.IDENTITY,
    "status": Status.NEW,
    "provenance": Provenance.DERIVED,
    "instances": _instances,
    "count": 70,
    # sums over matrices, covers, levels of a chain: up to 48 links of a dozen roundings each
    "terms": 1024,
}

COMPARE_VALUES = Claim(
    name=f"{_PAPER}/compare-values",
    locator="Theorems 4.1, 4.2 and 5.1, the comparison of all bounds",
    statement=(
        r"\hat R_{\text{entry}} = \min_{\rho,n} \epsilon_n + \sqrt{\tfrac2m} \sum_{j \le n}"
        r"(\epsilon_{j-1}+\epsilon_j) \sqrt{\ln N(\epsilon_j)}, \quad "
        r"\ln N(\epsilon) = \frac{1}{\epsilon^2} \Big( \sum_j C_j^{1/3} \beta_j^{2/3} \Big)^3"
        r"\text{ or } \sum_j p_j \ln \Big( 1+\frac{s_j \beta_j P}{p_j \epsilon} \Big)"
    ),
    sides=_values,
    control=Control(
        "norms of W in place of those of its transpose", sides=partial(_values, again="flipped")
    ),
    note=(
        "Covers (1,1), (1,inf), (2,1), log T, mixed, and parameter counting, on one plain layer, "
        "two normalised layers and a masked-word readout, two heads each, m from 100 to 10^8. "
        "The second computation is NumPy with quadrature and loops."
    ),
    **_COMMON,
)

COMPARE_SAMPLES = Claim(
    name=f"{_PAPER}/compare-samples",
    locator="Theorem 4.2, samples at which a bound says something",
    statement=(
        r"\log_{10} m_0 = \log_{10} \frac{67.95\,\gamma^3}{r^2}, \quad "
        r"\hat R < r \text{ for } m > m_0"
    ),
    sides=_samples,
    assumptions=(Assumption("an entry of a deep class", lambda i: i["deep"] > 0),),
    control=Control("a tenth of the samples", sides=partial(_samples, offset=-1.0)),
    note="With 599.3 in place of 67.95 where the softmax has 2 and Dudley its integral.",
    **_COMMON,
)

COMPARE_GAPS = Claim(
    name=f"{_PAPER}/compare-gaps",
    locator="Section 2.3, the gaps, the best and the vacuous",
    statement=(
        r"{\rm gap} = 2\hat R + 3c \sqrt{\frac{\ln(2/\delta)}{2m}}, \quad "
        r"{\rm best} = \min_{\text{bounds}} {\rm gap}, \quad "
        r"{\rm vacuous} \iff {\rm gap} \ge c"
    ),
    sides=_gaps,
    control=Control("half the gap", sides=partial(_gaps, factor=0.5)),
    note="The best is taken over the entries whose constants are all known.",
    **_COMMON,
)

COMPARE_UNION = Claim(
    name=f"{_PAPER}/compare-union",
    locator="Section 2.3 for norms read off after training",
    statement=(
        r"{\rm gap} = \min_{s \in \{1,4,7,10\}} 2\hat R(\lceil b \rceil_s) + 3c \sqrt{"
        r"\frac{\ln(2/\delta) + \ln(4E) + \sum_i \ln (1/p_s(b_i)) + \dots}{2m}}"
    ),
    sides=_unions,
    control=Control("norms fixed in advance", sides=partial(_unions, again="fixed")),
    note=(
        "The union bound of docs/proofs/trauger2023_union.md over four grids of norms and E "
        "entries, again in NumPy by going through the points of the grids. One plain layer, two "
        "normalised ones, a masked-word readout."
    ),
    **{**_COMMON, "instances": _union_instances, "count": 32},
)
