"""A DataFrame or a witness as an HTML table that scrolls in a box."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from markupsafe import Markup

from attlas.core.errors import refuse_misfits, refuse_unreadable
from attlas.display.tables import entry, table

LARGEST = 10
"""Most rows and columns of a witness array that is printed completely."""


@refuse_unreadable
def table_html(frame: pd.DataFrame, caption: str) -> Markup:
    """A table with its caption; numbers right-aligned with three digits, all text escaped.

    Args:
        frame: the table; a named index becomes leading columns.

    Examples:
        >>> frame = pd.DataFrame({"p": [2.0], "ours": [0.00461], "paper's": ["<.005"]})
        >>> "<td>&lt;.005</td>" in table_html(frame, "divergence")
        True
    """
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    heads = [_column_name(column) for column in frame.columns]
    rows = (
        [None if value is pd.NA else value for value in row]
        for row in frame.itertuples(index=False, name=None)
    )
    return Markup('<div class="scroll" role="region" aria-label="{}" tabindex="0">{}</div>').format(
        caption, table(heads, rows, caption)
    )


@refuse_misfits
def witness_html(witness: Mapping[str, np.ndarray]) -> Markup:
    """The arrays of a witness: small ones completely, large ones by shape and range.

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
    names = column if isinstance(column, tuple) else (column,)
    return " ".join(str(name) for name in names if str(name))


def _shape(array: np.ndarray) -> Markup:
    if array.ndim == 0:
        return Markup("")
    return Markup(" <small>{}</small>").format(" × ".join(str(size) for size in array.shape))


def _array(array: np.ndarray, name: str) -> Markup:
    if array.ndim == 0:
        return entry(array[()])
    if not array.size:
        return Markup("empty")
    if array.ndim > 2 or max(array.shape) > LARGEST:
        if array.dtype.kind not in "fiu":
            return Markup("{} entries").format(array.size)
        low, high = np.min(array), np.max(array)
        return Markup("entries between {} and {}").format(entry(low), entry(high))
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(
            Markup("").join(Markup('<td class="num">{}</td>').format(entry(v)) for v in row)
        )
        for row in np.atleast_2d(array)
    )
    return Markup(
        '<div class="scroll" role="region" aria-label="{}" tabindex="0">'
        '<table class="matrix"><tbody>{}</tbody></table></div>'
    ).format(f"array {name}", body)
