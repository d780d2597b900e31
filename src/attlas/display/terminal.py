"""Text where nothing can be typeset: tables that break no word, prose without LaTeX."""

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

GAP = 2
"""Spaces between columns."""
NARROWEST = 20
"""Least width of a cell of several words, for legibility; columns that always stay may be as narrow
as their longest word."""
IN_PIPES = 100
"""Columns of an output that no terminal shows."""
STYLES = {
    "SUPPORTED": "green",
    "VIOLATED": "red",
    "INCONCLUSIVE": "yellow",
    "NOT_APPLICABLE": "yellow",
    "damaged": "red",
    "missing": "red",
}
"""Styles of words that stand alone in a cell."""

Line = list[tuple[str, str]]
"""Texts with their styles."""


class Layout(NamedTuple):
    """A table as lines.

    Attributes:
        lines: headings, a rule and rows; or a paragraph per row if no table fits.
        left_out: headings of columns for which there was no room.
        needed: least width of a terminal with room for all columns.
    """

    lines: list[Line]
    left_out: tuple[str, ...]
    needed: int


def show_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    title: str = "",
    always: Sequence[str] = (),
    elsewhere: str = "",
) -> None:
    """Print a table that fits the terminal, or the width that `terminal_width` gives a pipe.

    Args:
        columns: headings, the most important ones first.
        rows: cells as plain text; they are not interpreted as markup.
        always: headings of columns besides the first that are never left out.
        elsewhere: where columns are too that are left out, beside a wider terminal.

    Examples:
        >>> show_table(("claim",), [("mine/a",)])
        claim
        ------
        mine/a
    """
    from rich.console import Console
    from rich.text import Text

    width = terminal_width()
    table = layout(columns, rows, width, always)
    console = Console(highlight=False)
    if title:
        console.print(Text(f"\n{title}", style="italic"))
    for line in table.lines:
        console.print(Text.assemble(*line), soft_wrap=True)
    if table.left_out:
        wider = f"`COLUMNS={table.needed}`" + (f" or {elsewhere}" if elsewhere else "")
        say(f"No room for {', '.join(table.left_out)}: {wider} shows all.")


def say(text: str) -> None:
    """Print a sentence, with line breaks between words to fit the terminal.

    Examples:
        >>> say("1 claim checked")
        1 claim checked
    """
    sys.stdout.write("\n".join(_wrapped(text, terminal_width(), fold=False)) + "\n")


def show_fact(name: str, text: str, width: int = 12) -> None:
    """Print a name with its text, whose further lines stand under the first.

    Args:
        width: columns of the name.

    Examples:
        >>> show_fact("verdict", "SUPPORTED")
        verdict     SUPPORTED
    """
    lines = _wrapped(text, terminal_width() - width, fold=False)
    sys.stdout.write(f"{name:<{width}}" + f"\n{' ' * width}".join(lines) + "\n")


def counted(count: int, noun: str, plural: str = "") -> str:
    """A number with its noun in the singular or the plural.

    Examples:
        >>> counted(1, "claim"), counted(0, "cell"), counted(2, "statement is", "statements are")
        ('1 claim', '0 cells', '2 statements are')
    """
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def progress_columns() -> "tuple[ProgressColumn, ...]":
    """The columns of a bar: what is done, how much of it, the time spent and the time left.

    Examples:
        >>> len(progress_columns())
        6
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    return TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *times


@contextlib.contextmanager
def progress_bar(name: str) -> Iterator[Callable[[int], None]]:
    """Show a bar with its name, the number done, and the time left, on standard error.

    The bar appears with the first step, and vanishes at the end; in a file or pipe there is none.

    Yields:
        Function of the total that counts one more as done.

    Examples:
        >>> with progress_bar("claims") as step:
        ...     step(2)
    """
    if not sys.stderr.isatty():
        yield lambda total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(*progress_columns(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)

        def step(total: int) -> None:
            bar.update(task, total=total, advance=1)

        yield step


def terminal_width() -> int:
    """The number of columns for the output.

    Returns:
        COLUMNS, where it is set; else the width of the terminal of the output, or of the errors or
        the input of a command in a pipe; else 100.

    Examples:
        >>> terminal_width() > 0
        True
    """
    named = os.environ.get("COLUMNS", "")
    if named.isdecimal() and int(named):
        return int(named)
    for stream in (sys.__stdout__, sys.__stderr__, sys.__stdin__):
        try:
            columns = os.get_terminal_size(stream.fileno()).columns if stream else 0
        except (OSError, ValueError):  # no terminal, or closed
            continue
        if columns:
            return columns
    return IN_PIPES


def layout(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    width: int,
    always: Sequence[str] = (),
) -> Layout:
    """Lay out a table so that no line is wider than the terminal and no word is broken.

    Columns that do not fit are left out, the last ones first. If not even the `always` ones fit,
    words are broken after a slash; if that does not help, each row becomes a paragraph.

    Args:
        columns: headings, the most important ones first.
        width: columns of the terminal.
        always: headings of columns besides the first that are never left out.

    Examples:
        >>> columns, row = ("claim", "slack", "locator"), ("mine/a", "0.25", "Proposition 12")
        >>> found = layout(columns, [row], 20)
        >>> ["".join(text for text, _ in line) for line in found.lines[::2]], found.left_out
        (['claim   slack', 'mine/a  0.25'], ('locator',))
    """
    cells = [tuple(_clean(cell) for cell in row) for row in rows]
    table = list(zip(columns, *cells, strict=True))
    longest = [max(map(_length, column)) for column in table]
    needed = 0
    for fold in (False, True):
        least = [
            _least(column, k == 0, fold, 0 if columns[k] in always else NARROWEST)
            for k, column in enumerate(table)
        ]
        needed = needed if fold else _total(least)
        places = _places(columns, least, width, always)
        if places:
            visible = [table[k] for k in places]
            wide = _widened([least[k] for k in places], [longest[k] for k in places], width)
            left_out = tuple(name for k, name in enumerate(columns) if k not in places)
            return Layout(_lines(visible, wide, fold), left_out, needed)
    return Layout(list(_paragraphs(columns, cells, width)), (), needed)


def number(value: float | None) -> str:
    """A number with four significant digits, or a dash for None.

    Examples:
        >>> number(0.000123456), number(1.0), number(None)
        ('0.0001235', '1', '-')
    """
    return "-" if value is None else f"{value:.4g}"


def _clean(cell: str) -> str:
    from attlas._files.plain_file import printable

    return printable(" ".join(str(cell).split()))


def _length(text: str) -> int:
    """Width of a text on the terminal; some characters are two columns wide."""
    from rich.cells import cell_len

    return cell_len(text)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _pieces(word: str, fold: bool) -> list[str]:
    """The parts of a word between which a line may break: after slashes, if at all."""
    return re.findall(r"[^/]*/+|[^/]+", word) if fold else [word]


def _least(column: Sequence[str], named: bool, fold: bool, narrowest: int) -> int:
    """The least width at which no word of a column is broken.

    Names, in the first column, are copied and stay on one line unless they are folded.
    """
    _, *cells = column
    words = [word for cell in column for word in _words(cell)]
    least = max(map(_length, (piece for word in words for piece in _pieces(word, fold))), default=0)
    longest = 0 if fold else max(map(_length, cells), default=0)
    return max(least, longest if named else min(longest, narrowest))


def _places(
    columns: Sequence[str], least: Sequence[int], width: int, always: Sequence[str]
) -> list[int]:
    """The columns that fit, in their order; none if the `always` ones do not fit."""
    selected = [k for k, name in enumerate(columns) if k == 0 or name in always]
    if _total([least[k] for k in selected]) > width:
        return []
    for k in range(len(columns)):
        if k not in selected and _total([least[j] for j in (*selected, k)]) <= width:
            selected.append(k)
    return sorted(selected)


def _widened(least: Sequence[int], longest: Sequence[int], width: int) -> list[int]:
    """Column widths: narrow columns get their full width, the others share the remainder."""
    widths = list(least)
    for k in sorted(range(len(widths)), key=lambda k: longest[k] - least[k]):
        if longest[k] - least[k] <= width - _total(widths):
            widths[k] = longest[k]
    for _ in range(width - _total(widths)):
        k = max(range(len(widths)), key=lambda k: longest[k] / max(widths[k], 1))
        if longest[k] <= widths[k]:
            break
        widths[k] += 1
    return widths


def _words(text: str) -> list[str]:
    """The words of a text; a number and its % are one."""
    return re.split(r"\s+(?!%)", text.strip()) if text.strip() else []


def _wrapped(cell: str, width: int, fold: bool) -> list[str]:
    """A cell as lines that break between words."""
    lines = [""]
    for word in _words(cell):
        for k, piece in enumerate(_pieces(word, fold and _length(word) > width)):
            longer = f"{lines[-1]} {piece}" if k == 0 and lines[-1] else lines[-1] + piece
            if lines[-1] and _length(longer) > width:
                lines.append(piece)
            else:
                lines[-1] = longer
    return lines


def _lines(table: Sequence[Sequence[str]], widths: Sequence[int], fold: bool) -> list[Line]:
    """The lines of a table that fits."""
    rule = "─" if (sys.stdout.encoding or "").lower().startswith("utf") else "-"
    lines: list[Line] = []
    for place, row in enumerate(zip(*table, strict=True)):
        cells = [_wrapped(cell, wide, fold) for cell, wide in zip(row, widths, strict=True)]
        height = max(map(len, cells))
        if place == 0:
            # Headings stand above the rule.
            cells = [[""] * (height - len(cell)) + cell for cell in cells]
        for k in range(height):
            line: Line = []
            for text, cell, wide in zip(row, cells, widths, strict=True):
                part = cell[k] if k < len(cell) else ""
                style = "bold" if place == 0 else STYLES.get(text, "")
                line += [(part, style), (" " * (wide - _length(part) + GAP), "")]
            lines.append(_without_end(line))
        if place == 0:
            lines.append([(rule * _total(widths), "")])
    return lines


def _without_end(line: Line) -> Line:
    """A line without blanks at its end."""
    while line and not line[-1][0].strip():
        line.pop()
    return line


def _paragraphs(
    columns: Sequence[str], cells: Iterable[Sequence[str]], width: int
) -> Iterator[Line]:
    """Each row as a paragraph: its name, then a line for each other column."""
    for name, *others in cells:
        yield from ([(part, "bold")] for part in _wrapped(name, width, fold=True))
        for heading, cell in zip(columns[1:], others, strict=True):
            for part in _wrapped(f"{heading}: {cell}", width - 2, fold=True):
                yield [("  ", ""), (part, STYLES.get(cell, ""))]
        yield []


def plain(text: str) -> str:
    r"""Prose for a terminal or an attribute: mathematics without dollar signs and backslashes.

    Examples:
        >>> plain(r"Theorem 1, $\eta = C_1^2\, C_2$")
        'Theorem 1, eta = C_1^2 C_2'
        >>> plain(r"a risk $$p \le 1$$ for all")
        'a risk p <= 1 for all'
    """
    text = re.sub(r"\s*\$\$([^$]+)\$\$\s*", lambda match: f" {_read(match.group(1))} ", text)
    return re.sub(r"\$([^$\n]+)\$", lambda match: _read(match.group(1)), text)


def _read(latex: str) -> str:
    spoken = re.sub(r"\\[,;:!]|\\q?quad|~", " ", latex)
    named = r"\\(?:mathrm|operatorname|text|mathcal|hat|bar|tilde)\s*\{([^{}]*)\}"
    spoken = re.sub(named, r"\1", spoken)
    spoken = re.sub(r"\\leq?(?![a-zA-Z])", "<=", spoken.replace(r"\|", "||"))
    spoken = re.sub(r"\\geq?(?![a-zA-Z])", ">=", spoken)
    return re.sub(r"\s+", " ", re.sub(r"\\([a-zA-Z]+)", r"\1", spoken)).strip()
