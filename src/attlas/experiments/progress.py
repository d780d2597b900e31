"""Progress of a run: a bar with the remaining time, or one line per finished cell."""

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from attlas.display.terminal import counted


class Progress:
    """Silent progress; the interface of the other classes."""

    def begin(self, total: int, reused: int) -> None:
        """Called once: cells to compute, and cells whose records exist."""

    def finished(self, label: str, seconds: float) -> None:
        """Called for each cell whose record has been written."""

    def failed(self, label: str, message: str) -> None:
        """Called for each cell that failed."""

    def note(self, text: str) -> None:
        """Called for each damaged record."""

    def end(self) -> None:
        """Called once, also when the run stops in the middle."""


class LineProgress(Progress):
    """One plain line for each finished cell, for logs and pipes."""

    def __init__(self, console: Console):
        self.console = console
        self.total = 0
        self.done = 0

    def _line(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def begin(self, total: int, reused: int) -> None:
        """Print how much there is to do."""
        self.total = total
        self._line(
            f"{counted(total, 'cell')} to run, {reused} already computed; times are by the clock"
        )

    def finished(self, label: str, seconds: float) -> None:
        """Count one cell."""
        self.done += 1
        self._line(f"[{self.done}/{self.total}] {label}: {seconds:.1f} s")

    def failed(self, label: str, message: str) -> None:
        """Say which cell failed and why."""
        self.done += 1
        self._line(f"[{self.done}/{self.total}] {label}: FAILED: {message}")

    def note(self, text: str) -> None:
        """Say what is damaged."""
        self._line(f"warning: {text}")


class BarProgress(LineProgress):
    """A bar with the time left; failures and warnings are lines above it."""

    def __init__(self, console: Console):
        super().__init__(console)
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self.task = self.bar.add_task("cells", total=None)

    def begin(self, total: int, reused: int) -> None:
        """Print how much there is to do."""
        super().begin(total, reused)
        self.bar.update(self.task, total=total)
        if total:
            self.bar.start()

    def finished(self, label: str, seconds: float) -> None:
        """Count one cell."""
        self.bar.update(self.task, advance=1, description=label.split()[0])

    def failed(self, label: str, message: str) -> None:
        """Say which cell failed and why."""
        self._line(f"{label}: FAILED: {message}")
        self.bar.update(self.task, advance=1)

    def end(self) -> None:
        """Take the bar away."""
        self.bar.stop()


def progress_for(console: Console) -> Progress:
    """A bar on a terminal, plain lines elsewhere.

    Examples:
        >>> import io
        >>> type(progress_for(Console(file=io.StringIO()))).__name__
        'LineProgress'
    """
    return BarProgress(console) if console.is_terminal else LineProgress(console)
