"""Tables in HTML, for the atlas and for notebooks: the only module that writes rows and cells."""

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from attlas.display.numbers import number, plain_number, whole_number
from attlas.display.statements import prose


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], caption: str = "") -> Markup:
    """A table with its caption; numbers with three digits, all text escaped.

    Args:
        heads: names of the columns, prose; empty for a table of names and values.
        rows: cells: numbers, flags, prose, safe markup, None.
        caption: title of the table, prose.

    Returns:
        Markup. A column is right-aligned where all its cells are numbers.

    Examples:
        >>> print(table([], [["loss", 2.0]], "<of> $p$"))  # doctest: +NORMALIZE_WHITESPACE
        <table><caption>&lt;of&gt; <math><mi>p</mi></math></caption>
        <tbody><tr><td>loss</td><td class="num">2</td></tr></tbody></table>
    """
    body = [tuple(row) for row in rows]
    right = [all(_is_number(row[k]) for row in body) for k in range(len(heads))]
    blocks = [Markup("<caption>{}</caption>\n").format(prose(caption))] if caption else []
    if heads:
        cells = (
            Markup('<th scope="col"{}>{}</th>').format(
                Markup(' class="num"') if is_right else "", prose(name)
            )
            for name, is_right in zip(heads, right, strict=True)
        )
        blocks.append(Markup("<thead><tr>{}</tr></thead>").format(Markup("").join(cells)))
    aligned = right if heads else [True] * max(map(len, body), default=0)
    lines = (Markup("<tr>{}</tr>").format(Markup("").join(map(cell, row, aligned))) for row in body)
    blocks.append(Markup("<tbody>{}</tbody>").format(Markup("").join(lines)))
    return Markup("<table>{}</table>").format(Markup("").join(blocks))


def cell(value: object, aligned: bool = True) -> Markup:
    """One cell.

    Args:
        value: a number, a flag, text with `code` and $mathematics$, safe markup, or None.
        aligned: whether a number is right-aligned, unlike one among text.

    Examples:
        >>> print(cell(-3), cell("<b>"), cell(float("nan")))
        <td class="num">−3</td> <td>&lt;b&gt;</td> <td class="none">–</td>
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return Markup('<td class="none">–</td>')
    if isinstance(value, Markup):
        return Markup("<td>{}</td>").format(value)
    if isinstance(value, bool | np.bool_):
        return Markup("<td>{}</td>").format("yes" if value else "no")
    if isinstance(value, numbers.Integral):
        return _number_cell(whole_number(int(value)), aligned)
    if isinstance(value, numbers.Real):
        return _number_cell(number(float(value)), aligned)
    return Markup("<td>{}</td>").format(prose(str(value)))


def _number_cell(text: Markup, aligned: bool) -> Markup:
    return Markup('<td class="num">{}</td>' if aligned else "<td>{}</td>").format(text)


def arrays_table(arrays: Mapping[str, Any], caption: str = "") -> Markup:
    """Arrays by name, each in one row: type, shape, and the value or the range.

    Examples:
        >>> "<td>2 × 3</td>" in arrays_table({"W": np.ones((2, 3))})
        True
    """
    rows = []
    for name, value in arrays.items():
        array = np.asarray(value)
        low, high = _range(array)
        shape = " × ".join(map(str, array.shape)) or "one number"
        rows.append((Markup("<code>{}</code>").format(name), shape, low, high))
    return table(("array", "shape", "least", "largest"), rows, caption)


def described(value: Any) -> str:
    """An array or number in a few characters: a number itself, an array by type and shape.

    Examples:
        >>> described(np.asarray(1.5)), described(np.ones((2, 3)))
        ('1.5', 'float64[2,3]')
    """
    array = np.asarray(value)
    if array.ndim == 0 and array.dtype.kind in "fiub":
        return plain_number(array.item())
    return f"{array.dtype}[{','.join(map(str, array.shape))}]"


def entry(value: object) -> Markup:
    """One entry of an array, exact for an integer or a flag.

    Examples:
        >>> print(entry(np.int64(12345)), entry(np.float64(0.5)), entry(np.bool_(True)))
        12345 0.5 true
    """
    if isinstance(value, np.bool_):
        return Markup("true") if value else Markup("false")
    if isinstance(value, np.integer):
        return Markup("{}").format(int(value))
    if isinstance(value, np.floating):
        return number(float(value))
    return escape(str(value))


def _range(array: np.ndarray) -> tuple[object, object]:
    if not array.size or array.dtype.kind not in "fiu":
        return None, None
    finite = array[~np.isnan(array)]
    return (finite.min(), finite.max()) if finite.size else (None, None)


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, numbers.Real) and not isinstance(value, bool))
