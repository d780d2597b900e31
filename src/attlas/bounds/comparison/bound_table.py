"""A norm-based bound as an object, and the table of such bounds on one class of Transformers."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.comparison.transformer_weights import TransformerWeights
from attlas.bounds.comparison.weight_norms import WeightNorms
from attlas.bounds.covering.trauger2023_cover import Ball
from attlas.core.errors import UserError

BALLS: tuple[Ball, ...] = ("1,1", "1,inf", "2,1")
LEMMA = {"1,1": "Lemma 3.6", "1,inf": "Lemma 3.3", "2,1": "Lemma 3.4, rows"}
FIELD = {"1,1": "total", "1,inf": "column", "2,1": "row_sum", "log T": "row_sum"}
"""The norm of `MatrixNorms` that a cover is paid with."""
CORRECTED, SHARP = "2.41, 8.24, softmax 2", "chain, softmax 1"
"""The constants in words."""
TINY = 1e-300
"""A matrix that is 0 has nothing to cover; this keeps logarithms and the allocation defined."""

Network = TypeVar("Network")
Costs = TypeVar("Costs")


class Inputs(NamedTuple):
    """Number of tokens and their largest Euclidean norm, l_1 norm and entry."""

    T: int
    l2: float
    l1: float
    largest: float


class TheoremCondition(NamedTuple):
    """What a theorem asks of the weights and of m, and the error where it does not hold.

    Attributes:
        holds: from the weights and m.
        error: formatted with m and d.
        least_samples: the smallest m that the condition allows.
    """

    holds: Callable[[TransformerWeights, int], bool]
    error: str
    least_samples: Callable[[TransformerWeights], int] = lambda weights: 1


class Complexity(NamedTuple):
    """A number that a class has at m samples, and what each part of the network contributes."""

    value: Float[Array, ""]
    contributions: Float[Array, " parts"] | float = 0.0


@dataclass(frozen=True, eq=False)
class NormBound(Generic[Network, Costs]):
    """One bound on the Rademacher complexity of the networks whose norms are bounded.

    Attributes:
        label: its name in the table.
        reason: theorem and cover, in words.
        value: the bound from the class and a traced m; with an `integral`, the D of its entropy
            D / eps^2. Only the proportions of its contributions count.
        cost: nats of the norms that it uses, from the nats of all norms.
        conditions: of its theorem.
        is_bound: false where a constant of the source is unknown and 1 stands for it.
        integral: from D, m and the largest |output| R to the bound. Bounds with the same integral
            are integrated together, as compiling it takes most of the time.
        threshold: m R^2 / D above which the integral is below R.
    """

    label: str
    reason: str
    constants: str
    value: Callable[[Network, Float[Array, ""]], Complexity]
    cost: Callable[[Costs], float]
    conditions: tuple[TheoremCondition, ...] = ()
    is_bound: bool = True
    integral: Callable[[Array, Array, Array], Array] | None = None
    threshold: float = math.nan


class BoundTable(NamedTuple):
    """The bounds on one class, at the norms of one or more grids; the first is the trivial one.

    Attributes:
        bounds: in the order of the table.
        reasons: theorem and cover of each, in words.
        values: from m, one for each bound, to complexities of shape (grids, bounds).
        union_costs: nats of the norms that a bound uses, (grids, bounds).
        part_names: names of the parts of the network.
        shares: share of each part in the complexity, (bounds, parts).
        log10_samples: log10 of the m at which a deep bound falls below its trivial value, else NaN.
    """

    bounds: tuple[NormBound, ...]
    reasons: tuple[str, ...]
    values: Callable[[Float[np.ndarray, " bounds"]], Float[np.ndarray, "grids bounds"]]
    union_costs: Float[np.ndarray, "grids bounds"]
    part_names: tuple[str, ...]
    shares: Float[np.ndarray, "bounds parts"]
    log10_samples: Float[np.ndarray, " bounds"]


def union_costs(
    bounds: Sequence[NormBound[Any, Costs]],
    grids: Sequence[tuple[WeightNorms, int | None]],
    nats: Callable[[WeightNorms, int], Costs],
) -> Float[np.ndarray, "grids bounds"]:
    """Nats of the norms that each bound uses; none for norms that were fixed in advance.

    Examples:
        >>> from attlas.bounds.comparison.transformer_weights import MatrixNorms
        >>> fixed = WeightNorms((), MatrixNorms(*[0.0] * len(MatrixNorms._fields)), masked=False)
        >>> bound = NormBound("", "", "", lambda network, m: Complexity(m), lambda nats: 2 * nats)
        >>> union_costs([bound], [(fixed, None), (fixed, 3)], lambda norms, resolution: resolution)
        array([[0.],
               [6.]])
    """
    rows = []
    for norms, resolution in grids:
        costs = None if resolution is None else nats(norms, resolution)
        rows.append([0.0 if costs is None else bound.cost(costs) for bound in bounds])
    return np.array(rows)


def least_samples(bounds: Sequence[NormBound], weights: TransformerWeights, m: int) -> int:
    """The smallest m that the theorems of all bounds allow.

    Raises:
        UserError: if a condition of a theorem does not hold.

    Examples:
        >>> need = TheoremCondition(lambda weights, m: m > 5, "only {m} samples", lambda weights: 6)
        >>> bound = NormBound("", "", "", lambda network, m: Complexity(m), float, (need,))
        >>> least_samples([bound], TransformerWeights(((),), np.ones(2)), 9)
        6
    """
    conditions = dict.fromkeys(condition for bound in bounds for condition in bound.conditions)
    for condition in conditions:
        if not condition.holds(weights, m):
            raise UserError(condition.error.format(m=m, d=weights.readout.shape[-1]))
    return max([1, *(condition.least_samples(weights) for condition in conditions)])
