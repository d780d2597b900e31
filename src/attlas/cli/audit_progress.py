"""A bar for each level of an audit, and lines above it."""

import contextlib
from collections.abc import Callable, Iterator

Told = Callable[[str, int, int], None]


@contextlib.contextmanager
def level_bars() -> Iterator[tuple[Told, Callable[[str], None]]]:
    """Bars on standard error while an audit runs; nothing of them stays.

    Yields:
        What is told the part, how much of it is done, and of how much; and what says a line.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    console = Console(stderr=True)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bars:
        tasks = {"reading": bars.add_task("reading", total=None)}

        def told(part: str, done: int, all_: int) -> None:
            if part not in tasks:
                bars.update(tasks["reading"], visible=False)
                tasks[part] = bars.add_task(f"level {part}", total=all_)
            bars.update(tasks[part], completed=done, total=all_)

        yield told, lambda line: console.print(line, markup=False, highlight=False)
