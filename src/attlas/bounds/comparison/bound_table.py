"""What the bounds on one class of Transformers have in common: rows that depend on m."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.bounds.covering.trauger2023_cover import Ball

BALLS: tuple[Ball, ...] = ("1,1", "1,inf", "2,1")
LEMMA = {"1,1": "Lemma 3.6", "1,inf": "Lemma 3.3", "2,1": "Lemma 3.4, rows"}
FIELD = {"1,1": "total", "1,inf": "column", "2,1": "row_sum", "log T": "row_sum"}
"""The norm of `MatrixNorms` that a cover is paid with."""


class Inputs(NamedTuple):
    """Number of tokens and their largest Euclidean norm, l_1 norm and entry."""

    T: int
    two: float
    one: float
    largest: float


class Label(NamedTuple):
    """Name and story of a bound; `is_bound` is false where a constant is unknown."""

    name: str
    is_bound: bool
    constants: str
    reason: str


class BoundTable(NamedTuple):
    """Bounds on the Rademacher complexity of one class, at the norms of one or more grids.

    Attributes:
        labels: of the rows.
        values: from m, one for each row, to values of shape (grids, rows).
        union_costs: nats of the norms that a row uses, (grids, rows).
        parts: names of the parts of the network.
        shares: share of each part in the row's complexity, (rows, parts).
        log10_samples: log10 of the m at which a deep row falls below its trivial value, else NaN.
    """

    labels: tuple[Label, ...]
    values: Callable[[Float[np.ndarray, " rows"]], Float[np.ndarray, "grids rows"]]
    union_costs: Float[np.ndarray, "grids rows"]
    parts: tuple[str, ...]
    shares: Float[np.ndarray, "rows parts"]
    log10_samples: Float[np.ndarray, " rows"]
