"""A time limit: which cells may still begin, and why others were not."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from attlas.display.numbers import duration

SHARE = 0.5
"""Share of the time that must remain for a cell of unknown cost to begin."""


class Left(NamedTuple):
    """Cells that were not begun, for one reason.

    Attributes:
        reason: a few words.
        labels: labels of the cells, with their estimates.
    """

    reason: str
    labels: tuple[str, ...]


class TimeLimit:
    """The time limit of a run: a cell of known cost must be able to finish before it.

    A cell of unknown cost may begin while at least half of the time remains.

    Attributes:
        order: indices of the cells, the cheapest first, those of unknown cost last.
    """

    def __init__(
        self,
        hours: float,
        costs: Sequence[float | None],
        clock: Callable[[], float] = time.monotonic,
    ):
        self.order = tuple(
            sorted(range(len(costs)), key=lambda k: (costs[k] is None, costs[k] or 0.0))
        )
        self._costs = [costs[k] for k in self.order]
        self._seconds = 3600 * hours
        self._clock = clock
        self._end = clock() + self._seconds
        self._refused: dict[int, str] = {}

    def may_begin(self, index: int) -> bool:
        """Whether the cell at a position of `order` may begin now; a refusal is remembered.

        Examples:
            >>> limit = TimeLimit(1.0, [None, 3000.0, 4000.0], clock=lambda: 0.0)
            >>> limit.order, [limit.may_begin(k) for k in range(3)]
            ((1, 2, 0), [True, False, True])
            >>> limit.left(["short", "long", "unknown"])
            (Left(reason='estimated to take longer than was left', labels=('long (1.1 h)',)),)
        """
        remaining, cost = self._end - self._clock(), self._costs[index]
        if cost is None and remaining < SHARE * self._seconds:
            self._refused[index] = "of unknown cost, and less than half of the time was left"
        elif cost is not None and cost >= remaining:
            self._refused[index] = "estimated to take longer than was left"
        return index not in self._refused

    def left(self, labels: Sequence[str]) -> tuple[Left, ...]:
        """The cells that were refused, one entry for each reason.

        Args:
            labels: labels of all cells, in the order of the limit.
        """
        by_reason: dict[str, list[str]] = {}
        for index, reason in self._refused.items():
            cost = self._costs[index]
            suffix = "" if cost is None else f" ({duration(cost)})"
            by_reason.setdefault(reason, []).append(labels[index] + suffix)
        return tuple(Left(reason, tuple(named)) for reason, named in by_reason.items())
