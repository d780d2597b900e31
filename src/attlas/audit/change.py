"""What replacing heads did to the loss, on the examples that did not choose these heads."""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.audit.halves import FEWEST, held_out
from attlas.display.numbers import plain_number
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

Heads = Sequence[tuple[int, int]]


class Effect(Enum):
    """What the interval of a change says."""

    CHEAP = "within what may be lost"
    NEEDED = "above 0, and beyond it"
    OPEN = "neither"


class Change(NamedTuple):
    """What ablating heads did to the loss.

    Attributes:
        loss: loss of the unchanged model.
        mean: mean change over the examples of the test.
        low: lower end of its interval.
        high: upper end.
        unit: unit of the four numbers.
        tested: the examples of the test, prose.
        held_out: whether none of these chose the heads.
    """

    loss: float
    mean: float
    low: float
    high: float
    unit: str
    tested: str = "sequences that did not choose it"
    held_out: bool = True

    def effect(self, budget: float) -> Effect:
        """What the change says where a share of the loss may be lost.

        Examples that chose the heads do not show that these are cheap.

        Examples:
            >>> [Change(2.0, 0.0, low, 0.01, "nats").effect(0.01).name for low in (-0.1, 0.05)]
            ['CHEAP', 'CHEAP']
            >>> [Change(2.0, 0.0, low, 0.1, "nats").effect(0.01).name for low in (-0.1, 0.05)]
            ['OPEN', 'NEEDED']
        """
        if self.held_out and self.high <= budget * self._size:
            return Effect.CHEAP
        return Effect.NEEDED if self.low > 0 else Effect.OPEN

    def consequence(self, budget: float, saving: float) -> float:
        """What depends on the heads, as a share: what they save, or what the loss needs of them.

        Args:
            saving: share of the model's heads that is saved where the loss allows it.

        Returns:
            `saving` of a cheap change; else the lower end of the interval, as a share of the loss,
            and at least 0.

        Examples:
            >>> Change(2.0, 0.6, 0.5, 0.7, "nats").consequence(0.01, 0.1)
            0.25
        """
        if self.effect(budget) is Effect.CHEAP:
            return saving
        return self.low / self._size if self.low > 0 else 0.0

    def sentence(self, what: str) -> str:
        """The change as a sentence without its full stop.

        Args:
            what: the replacement that was made, prose.

        Examples:
            >>> Change(2.0, 0.6, 0.5, 0.7, "nats", "8 texts").sentence("nothing in its place")
            'On 8 texts, with nothing in its place, the loss of 2 nats changes by 0.6 [0.5, 0.7]'
        """
        loss, mean, low, high = (plain_number(value) for value in self[:4])
        return (
            f"On {self.tested}, with {what}, the loss of {loss} {self.unit} changes by {mean} "
            f"[{low}, {high}]"
        )

    @property
    def _size(self) -> float:
        return self.loss if self.loss > 0 else 1.0


Intervene = Callable[[Heads, str], Change]
"""Replaces heads together, in one of the ways of `REPLACEMENTS`."""


def tested_change(
    before: Float[np.ndarray, " n"], after: Float[np.ndarray, " n"], unit: str, examples: str
) -> Change:
    """The change of the loss on the examples that are held out, or on all where they are too few.

    Args:
        before: losses of the unchanged model.
        after: losses with heads replaced.
        examples: the word for what the losses are of, in the plural.

    Examples:
        >>> tested_change(np.ones(4), np.array([9.0, 2.0, 9.0, 2.0]), "nats", "texts").mean
        1.0
        >>> tested_change(np.ones(2), np.ones(2), "nats", "texts").tested
        'the 2 texts that chose it, since fewer than 4 leave none for a test'
    """
    testing = held_out(before.size)
    tested = f"{testing.size} {examples} that did not choose it"
    if testing.size == 0:
        tested = (
            f"the {before.size} {examples} that chose it, since fewer than {FEWEST} leave none for "
            "a test"
        )
    places = testing if testing.size else np.arange(before.size)
    change = bootstrap_mean((after - before)[places])
    numbers = (float(change.mean), float(change.low), float(change.high))
    return Change(float(np.mean(before[places])), *numbers, unit, tested, testing.size > 0)
