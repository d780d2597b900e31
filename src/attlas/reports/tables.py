"""Tables: a DataFrame, or a witness, as an HTML table that scrolls in its own box."""

import math
import numbers
from collections.abc import Mapping

import numpy as np
import pandas as pd
from markupsafe import Markup, escape

from attlas.reports.numbers import MINUS, number
from attlas.reports.statements import prose

LARGEST = 10
"""Rows and columns up to which a witness array is printed whole."""


def table_html(frame: pd.DataFrame, caption: str) -> Markup:
    """A table with its caption; numbers right-aligned with three digits, all text escaped.

    Args:
        frame: the table; a named index becomes leading columns.
        caption: what it shows.

    Returns:
        Safe markup.

    Examples:
        >>> frame = pd.DataFrame({"p": [2.0], "ours": [0.00461], "paper's": ["<.005"]})
        >>> "<td>&lt;.005</td>" in table_html(frame, "divergence")
        True
    """
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    heads = [_column_name(column) for column in frame.columns]
    numeric = [
        pd.api.types.is_numeric_dtype(dtype) and not pd.api.types.is_bool_dtype(dtype)
        for dtype in frame.dtypes
    ]
    head = Markup("").join(
        Markup('<th scope="col"{}>{}</th>').format(_right(right), prose(name))
        for name, right in zip(heads, numeric, strict=True)
    )
    rows = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(_cell(value) for value in row))
        for row in frame.itertuples(index=False, name=None)
    )
    return Markup(
        '<div class="scroll" role="region" aria-label="{}" tabindex="0"><table>'
        "<caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>"
    ).format(caption, caption, head, rows)


def witness_html(witness: Mapping[str, np.ndarray]) -> Markup:
    """The arrays of a witness: small ones whole, large ones by shape and range.

    Args:
        witness: arrays by name.

    Returns:
        Safe markup, one row for each array.

    Examples:
        >>> print(witness_html({"p": np.asarray(1.5)}))
        <dl class="witness"><div><dt>p</dt><dd>1.5</dd></div></dl>
    """
    rows = Markup("").join(
        Markup("<div><dt>{}{}</dt><dd>{}</dd></div>").format(
            name, _shape(np.asarray(array)), _array(np.asarray(array), name)
        )
        for name, array in sorted(witness.items())
    )
    return Markup('<dl class="witness">{}</dl>').format(rows)


def _column_name(column: object) -> str:
    parts = column if isinstance(column, tuple) else (column,)
    return " ".join(str(part) for part in parts if str(part))


def _right(right: bool) -> Markup:
    return Markup(' class="num"') if right else Markup("")


def _cell(value: object) -> Markup:
    if value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value)):
        return Markup('<td class="none">–</td>')
    if isinstance(value, bool | np.bool_):
        return Markup("<td>{}</td>").format("yes" if value else "no")
    if isinstance(value, numbers.Integral):
        return Markup('<td class="num">{}</td>').format(str(int(value)).replace("-", MINUS))
    if isinstance(value, numbers.Real):
        return Markup('<td class="num">{}</td>').format(number(float(value)))
    return Markup("<td>{}</td>").format(prose(str(value)))


def _shape(array: np.ndarray) -> Markup:
    if array.ndim == 0:
        return Markup("")
    return Markup(" <small>{}</small>").format(" × ".join(str(size) for size in array.shape))


def _array(array: np.ndarray, name: str) -> Markup:
    if array.ndim == 0:
        return _entry(array[()])
    if not array.size:
        return Markup("empty")
    if array.ndim > 2 or max(array.shape) > LARGEST:
        if array.dtype.kind not in "fiu":
            return Markup("{} entries").format(array.size)
        low, high = np.min(array), np.max(array)
        return Markup("entries between {} and {}").format(_entry(low), _entry(high))
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup('<td class="num">{}</td>').format(_entry(v)) for v in row)
        )
        for row in np.atleast_2d(array)
    )
    return Markup(
        '<div class="scroll" role="region" aria-label="{}" tabindex="0">'
        '<table class="matrix"><tbody>{}</tbody></table></div>'
    ).format(f"array {name}", body)


def _entry(value: object) -> Markup:
    if isinstance(value, np.bool_):
        return Markup("true") if value else Markup("false")
    if isinstance(value, np.integer):
        return Markup("{}").format(int(value))
    if isinstance(value, np.floating):
        return number(float(value))
    return escape(str(value))
