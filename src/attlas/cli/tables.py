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

    table = Table(title=title or None, box=SIMPLE_HEAD, title_justify="left")
    for place, column in enumerate(columns):
        # Names come first and are copied: other columns give way to them.
        table.add_column(column, no_wrap=place == 0, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell, style=STYLES.get(cell, "")) for cell in row))
    open_console().print(table)


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
