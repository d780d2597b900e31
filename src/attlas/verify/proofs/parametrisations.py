r"""Sets whose points are exact functions of free numbers: what squares and signs are proved for.

A distribution is $w / \sum_k w_k$ with positive $w$, a number between two ends is
$(a + b t) / (1 + t)$ with positive $t$, a positive definite matrix is $L L^\top$ with a positive
diagonal of the triangle L, and a unit vector is $v / \lVert v \rVert_2$. Vectors up to one rotation
are the rows of a triangle (`attlas.verify.proofs.rotations`). So an inequality on such a set is one
on free numbers. A set is recognised in what a sampler draws: all instances lie in it, up to the
rounding of a sum. The proof names the set, and each recheck builds it again.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attlas.verify.proofs.nodes import Node

DISTRIBUTION, INTERVAL, DEFINITE, UNIT = "distribution", "interval", "definite", "unit"
TURNED = "turned"
_ROUNDING = 1e-12
"""Distance from a set, in units of its size, up to which a draw lies in it."""
_LEAST_DRAWS = 16
_TAIL, _NEAR = 0.05, 0.1
"""Share of the draws that lies nearest to an end, and how near in units of the width."""
_MOST_ROWS = 4
"""Rows of a matrix."""
_TINY = 1e-9
"""The least eigenvalue of a positive definite matrix, in units of the largest."""
Place = tuple[int, ...]


@dataclass(frozen=True)
class Parametrisation:
    """A set in which an array lies.

    Attributes:
        kind: what it is; rows along the last axis, or the last two, each lie in it.
        ends: both ends of an interval.
        row: the row of a triangle that the first vector of an array is.
    """

    kind: str
    ends: tuple[float, float] = (0.0, 0.0)
    row: int = 0

    def words(self, name: str, shape: tuple[int, ...], closed: bool) -> str:
        """The set of a named array in words.

        Args:
            closed: whether its boundary counts.

        Examples:
            >>> Parametrisation(DISTRIBUTION).words("p", (4,), True)
            'all distributions p of shape (4,)'
        """
        array = f"{name} of shape {shape}" if shape else name
        low, high = self.ends
        many = {
            DISTRIBUTION: f"all distributions {array}{'' if closed else ' with positive entries'}",
            INTERVAL: f"all {array} {'from' if closed else 'between'} {low:g} "
            f"{'to' if closed else 'and'} {high:g}",
            DEFINITE: f"all positive {'semidefinite' if closed else 'definite'} {array}",
            UNIT: f"all unit vectors {array}",
            TURNED: f"all real {array}",
        }
        return many[self.kind]

    def document(self) -> list[Any]:
        """The set as plain JSON."""
        details = {INTERVAL: list(self.ends), TURNED: [self.row]}
        return [self.kind, *details.get(self.kind, [])]

    def entries(
        self,
        shape: tuple[int, ...],
        symbol: Callable[[Place, bool], Node],
        power: Callable[[Node, Any], Node],
        half: Any,
        real: Callable[[float], Node],
    ) -> np.ndarray:
        """The entries of an array as functions of symbols.

        Args:
            symbol: a free number for a place, positive or real.
            power: a power of a node; `half` is the exponent of a square root.
            real: a float as a node.
        """
        array = np.empty(shape, dtype=object)
        if self.kind == INTERVAL:
            low, high = map(real, self.ends)
            for place in np.ndindex(shape):
                t = symbol(place, True)
                array[place] = (t * high + low) / (t + 1)
            return array
        if self.kind == TURNED:
            for number, first in enumerate(np.ndindex(shape[:-1]), self.row):
                for k in range(shape[-1]):
                    place = (*first, k)
                    array[place] = symbol(place, k == number) if k <= number else real(0.0)
            return array
        if self.kind == DEFINITE:
            rows = shape[-1]
            for first in np.ndindex(shape[:-2]):
                factor = [
                    [symbol((*first, i, j), i == j) for j in range(i + 1)] for i in range(rows)
                ]
                for i, j in np.ndindex(rows, rows):
                    pairs = zip(factor[i], factor[j], strict=False)
                    array[(*first, i, j)] = sum((a * b for a, b in pairs), start=real(0.0))
            return array
        for first in np.ndindex(shape[:-1]):
            row = [
                symbol((*first, k), self.kind == DISTRIBUTION) for k in range(shape[-1])
            ]  # fmt: skip
            if self.kind == DISTRIBUTION:
                size = sum(row, start=real(0.0))
            else:
                size = power(sum((v * v for v in row), start=real(0.0)), half)
            for k, value in enumerate(row):
                array[(*first, k)] = value / size
        return array

    def parameters(self, array: np.ndarray, closed: bool) -> dict[Place, float] | None:
        """The free numbers of a drawn array by their places, None where it lies outside.

        Args:
            closed: whether the boundary counts, where a free number may be zero or infinite.

        Examples:
            >>> Parametrisation(INTERVAL, (0.0, 2.0)).parameters(np.array(1.5), False)
            {(): 3.0}
        """
        if self.kind == TURNED:
            return {p: float(array[p]) for p in np.ndindex(array.shape)}
        inside = _contains(self, array[None])
        values = array
        if inside and self.kind == INTERVAL:
            low, high = self.ends
            with np.errstate(divide="ignore"):
                values = (array - low) / (high - array)
            inside = closed or bool(((values > 0) & np.isfinite(values)).all())
        elif inside and self.kind == DEFINITE:
            try:
                values = np.linalg.cholesky(array)
            except np.linalg.LinAlgError:
                return None
        elif inside and self.kind == DISTRIBUTION:
            inside = closed or bool((array > 0).all())
        return {p: float(values[p]) for p in np.ndindex(values.shape)} if inside else None


def _contains(where: Parametrisation, draws: np.ndarray) -> bool:
    """Whether all draws lie in a set, its boundary and a rounding included."""
    if where.kind == INTERVAL:
        return bool(((draws >= where.ends[0]) & (draws <= where.ends[1])).all())
    if where.kind == DISTRIBUTION:
        return bool((draws >= 0).all() and (np.abs(draws.sum(axis=-1) - 1) <= _ROUNDING).all())
    if where.kind == UNIT:
        return bool((np.abs((draws**2).sum(axis=-1) - 1) <= _ROUNDING).all())
    size = np.abs(draws).max(axis=(-2, -1), keepdims=True)
    if (np.abs(draws - draws.swapaxes(-2, -1)) > _ROUNDING * size).any():
        return False
    values = np.linalg.eigvalsh(draws)
    return bool((values[..., 0] > _TINY * values[..., -1]).all())


def parametrisations(arrays: Mapping[str, np.ndarray], digits: int) -> dict[str, Parametrisation]:
    """The sets that are recognised in draws.

    Args:
        arrays: draws by name, with a leading axis.
        digits: digits of the width of an interval to which its ends are rounded, outward.

    Examples:
        >>> draws = np.random.default_rng(0).dirichlet([1.0, 1.0, 1.0], size=32)
        >>> parametrisations({"p": draws}, 1)
        {'p': Parametrisation(kind='distribution', ends=(0.0, 0.0), row=0)}
    """
    sets = {}
    for name, draws in arrays.items():
        if len(draws) < _LEAST_DRAWS or not np.isfinite(draws).all() or not draws[0].size:
            continue
        axes, last = draws.ndim - 1, draws.shape[-1]
        kinds = [UNIT, DISTRIBUTION] if axes and last > 1 else []
        if axes > 1 and draws.shape[-2] == last and 1 < last <= _MOST_ROWS:
            kinds.append(DEFINITE)
        where = next((p for p in map(Parametrisation, kinds) if _contains(p, draws)), None)
        where = where or _interval(draws, digits)
        if where is not None:
            sets[name] = where
    return sets


def _interval(draws: np.ndarray, digits: int) -> Parametrisation | None:
    """The ends of numbers that are drawn up to them."""
    low, high = float(draws.min()), float(draws.max())
    width = high - low
    begin, end = np.quantile(draws, [_TAIL, 1 - _TAIL])
    if not width > 0 or begin - low > _NEAR * width or high - end > _NEAR * width:
        return None
    places = digits - 1 - int(np.floor(np.log10(width)))
    unit = Fraction(10) ** -places
    ends = (float(unit * round_(Fraction(x) / unit))
            for x, round_ in ((low, math.floor), (high, math.ceil)))  # fmt: skip
    return Parametrisation(INTERVAL, (next(ends), next(ends)))
