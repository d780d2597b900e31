"""How long level deep will take, from its first evaluation of the batch, and how far it is."""

from collections.abc import Callable

from attlas.audit.deep_level.ablation import REPLACEMENTS
from attlas.display.numbers import duration, plain_number

_MAPS = 6
"""Changes of maps that decisions try: two of each kind."""
_FINDINGS = 5
"""Changes of several heads that findings try."""


def most_evaluations(heads: int, layers: int) -> int:
    """Evaluations of the batch that level deep needs at most.

    The unchanged model; every head replaced in each way; heads that are left out together, one
    more at a time; layers that are rounded, alone, all, and all but one; and changes of maps.

    Args:
        heads: number of heads of the model.
        layers: number of layers whose weights are rounded.

    Examples:
        >>> most_evaluations(heads=8, layers=2)
        47
    """
    together = max(0, heads - 1)
    rounded = layers + 2 if layers > 1 else 0
    return 1 + len(REPLACEMENTS) * heads + together + rounded + _MAPS + _FINDINGS


class EvaluationCount:
    """Counts evaluations; the first one, on the unchanged model, tells what all will take.

    Args:
        most: the largest number of evaluations.
        batch: the examples that are evaluated, such as "64 texts".
        progress: called with the evaluations done, and of at most how many.
        say: called with the sentence on the time.

    Examples:
        >>> count = EvaluationCount(47, "64 texts", lambda done, all_: None, print)
        >>> count(0.5)
        level deep: at most 47 evaluations of 64 texts, the first in 0.5 s: about 24 s in all
        >>> count(0.4)
        >>> count.done
        2
    """

    def __init__(
        self,
        most: int,
        batch: str,
        progress: Callable[[int, int], None],
        say: Callable[[str], None],
    ) -> None:
        self.done, self._most, self._batch = 0, most, batch
        self._progress, self._say = progress, say

    def __call__(self, seconds: float) -> None:
        """Count one evaluation that took some seconds."""
        self.done += 1
        if self.done == 1:
            self._say(
                f"level deep: at most {self._most} evaluations of {self._batch}, the first in "
                f"{plain_number(seconds)} s: about {duration(seconds * self._most)} in all"
            )
        self._progress(min(self.done, self._most), self._most)

    def end(self) -> None:
        """All that was needed is done."""
        self._progress(self._most, self._most)
