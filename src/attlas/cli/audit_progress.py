"""Progress bars for the levels of an audit, and lines above them."""

import contextlib
from collections.abc import Callable, Iterator

Report = Callable[[str, int, int], None]


@contextlib.contextmanager
def level_bars() -> Iterator[tuple[Report, Callable[[str], None]]]:
    """Show bars on standard error while an audit runs.

    Yields:
        A function of (level, done, total) that updates the bars, and one that prints a line.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bars:
        tasks = {"reading": bars.add_task("reading", total=None)}

        def report(part: str, done: int, all_: int) -> None:
            if part not in tasks:
                bars.update(tasks["reading"], visible=False)
                tasks[part] = bars.add_task(f"level {part}", total=all_)
            bars.update(tasks[part], completed=done, total=all_)

        yield report, lambda line: console.print(line, markup=False, highlight=False)
