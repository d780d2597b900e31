"""Tables on the terminal, and whole lines where the output is not a terminal."""

from collections.abc import Iterable, Sequence
from typing import Any

PIPE_WIDTH = 200
"""Columns where the output is a file or a pipe, so that no name is cut."""


def show_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """Print a table.

    Args:
        columns: headings.
        rows: cells as plain text; they are not read as markup.
        title: shown above.
    """
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    console, rows = open_console(), [tuple(row) for row in rows]
    every = tuple(range(len(columns)))
    shown = fitting(columns, rows, console.width) if console.is_terminal else every
    left_out = [column for place, column in enumerate(columns) if place not in shown]
    columns, rows = [columns[k] for k in shown], [[row[k] for k in shown] for row in rows]
    table = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left")
    for place, column in enumerate(columns):
        # Names come first and are copied: other columns give way to them.
        table.add_column(column, no_wrap=place == 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    console.print(table)
    if left_out:
        console.print(f"no room for: {', '.join(left_out)} (widen the terminal, or use a pipe)")


def fitting(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> tuple[int, ...]:
    """The columns that fit without a break inside a word; the widest of the others go first.

    Args:
        columns: headings; the first column and that of verdicts always stay.
        rows: cells.
        width: of the terminal.

    Returns:
        Their places.

    Examples:
        >>> fitting(("claim", "locator", "slack"), [("mine/a", "Proposition 12", "0.25")], 24)
        (0, 2)
    """
    needed = [
        max(len(part) for cell in (column, *cells) for part in ([cell] if k == 0 else _words(cell)))
        for k, (column, *cells) in enumerate(zip(columns, *rows, strict=True))
    ]
    places = list(range(len(columns)))
    while sum(needed[k] + PADDING for k in places) > width:
        others = [k for k in places if k and columns[k] not in ALWAYS]
        if not others:
            break
        places.remove(max(others, key=lambda k: needed[k]))
    return tuple(places)


def _words(cell: str) -> list[str]:
    return cell.split() or [""]


ALWAYS = ("verdict",)
"""Headings of columns that are never left out."""
PADDING = 3
"""Columns of the terminal that a column of a table takes beside its words."""
STYLES = {
    "SUPPORTED": "green",
    "VIOLATED": "red",
    "INCONCLUSIVE": "yellow",
    "NOT_APPLICABLE": "yellow",
    "damaged": "red",
    "missing": "red",
}
"""Styles of words that stand alone in a cell."""


def open_console(stderr: bool = False) -> Any:
    """A console as wide as the terminal, or as `PIPE_WIDTH` where there is none.

    Args:
        stderr: write to the error stream.

    Returns:
        A rich console.
    """
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    return console if console.is_terminal else Console(stderr=stderr, width=PIPE_WIDTH)


def number(value: float | None) -> str:
    """A number in four digits, or a dash where there is none.

    Args:
        value: the number.

    Returns:
        Its text.

    Examples:
        >>> number(0.000123456), number(1.0), number(None)
        ('0.0001235', '1', '-')
    """
    return "-" if value is None else f"{value:.4g}"
