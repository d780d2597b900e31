"""Progress bars for the levels of an audit, and lines above them."""

import contextlib
import time
from collections.abc import Callable, Iterator

Report = Callable[[str, int, int], None]
_PERIOD = 30.0
"""Seconds between two lines where there is no screen for bars, such as in a log."""
_MEMORY = 600.0
"""Seconds over which a bar averages its speed: some steps take minutes."""


@contextlib.contextmanager
def level_bars() -> Iterator[tuple[Report, Callable[[str], None]]]:
    """Show bars with the time that is left on standard error while an audit runs.

    Yields:
        A function of (level, done, total) that updates the bars, and one that prints a line.
    """
    from rich.console import Console
    from rich.progress import Progress

    from attlas.display.terminal import progress_columns

    console = Console(stderr=True)
    with Progress(
        *progress_columns(), console=console, transient=True, speed_estimate_period=_MEMORY
    ) as bars:
        tasks = {"reading": bars.add_task("reading", total=None)}
        lines = ProgressLines()

        def say(line: str) -> None:
            console.print(line, markup=False, highlight=False, soft_wrap=True)

        def report(part: str, done: int, all_: int) -> None:
            if part not in tasks:
                bars.update(tasks["reading"], visible=False)
                tasks[part] = bars.add_task(f"level {part}", total=all_)
            bars.update(tasks[part], completed=done, total=all_)
            line = lines.after(part, done, all_, time.monotonic())
            if line and not console.is_terminal:
                say(line)

        yield report, say


class ProgressLines:
    """Lines on what is done, one in half a minute at most, for a log.

    Examples:
        >>> lines = ProgressLines()
        >>> lines.after("deep", 1, 40, 0.0), lines.after("deep", 3, 40, 20.0)
        ('', '')
        >>> lines.after("deep", 4, 40, 30.0)
        'level deep: 4 of 40, about 6.0 min left'
    """

    def __init__(self) -> None:
        self._begun: dict[str, tuple[int, float]] = {}
        self._last = -float("inf")

    def after(self, part: str, done: int, all_: int, now: float) -> str:
        """The line after a step, or nothing where it is too early for one.

        Args:
            part: level, or part of one.
            done: steps done, of all of this part.
            now: time in seconds.
        """
        from attlas.display.numbers import duration

        if part not in self._begun:
            self._begun[part] = (done, now)
            self._last = now
        first, start = self._begun[part]
        if now - self._last < _PERIOD or done <= first or done == all_:
            return ""
        self._last = now
        left = (now - start) / (done - first) * (all_ - done)
        return f"level {part}: {done} of {all_}, about {duration(left)} left"
