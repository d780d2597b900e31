"""Marks where a line ends before the others of its frame, or is constant up to its end."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.experiments.panels.legend_keys import add_key
from attlas.experiments.panels.unseen_lines import in_frame, is_curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

NO_ENTRY = "_end of a line"
"""The label of these marks, which stands in no legend and in no table of a figure's numbers."""
SHORT, LEVEL = "cross: the line has no value beyond", "tick: constant from here on"
CROSS: dict[str, Any] = {"ls": "", "marker": "x", "ms": 5, "mew": 1.2}
TICK: dict[str, Any] = {"ls": "", "marker": "|", "ms": 9, "mew": 1.6}
GAP, PIECE = 0.03, 0.05
"""Shares of the frame: of a gap behind a line that is seen, and of a level piece that is."""
_SHARE_ENDS = (0.0, 1.0)
"""Ends of a share, which a line reaches without an explanation."""
_NEAR = 1e-6


def mark_ends(axes: "Axes") -> None:
    """Add a cross where a line ends early, and a tick where it becomes constant.

    Lines whose points have marks need neither, and those at 0 or 1 no tick.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> for y in ([1, 2, 3, 4], [2, 3], [5, 4, 3, 3, 3]):
        ...     _ = axes.plot(range(len(y)), y)
        >>> mark_ends(axes)
        >>> axes.get_legend_handles_labels()[1]
        ['cross: the line has no value beyond', 'tick: constant from here on']
    """
    curves = [*_curves(axes)]
    if not curves:
        return
    last = max(points[-1, 0] for _, points in curves)
    for line, points in curves:
        colour = line.get_color()
        x, y = (np.asarray(values, dtype=float) for values in line.get_data())
        finite = np.isfinite(x) & np.isfinite(y)
        x, y = x[finite], y[finite]
        has_marks = line.get_marker() not in ("None", "", None)
        if points[-1, 0] < last - GAP and not has_marks:
            axes.plot(x[-1:], y[-1:], color=colour, label=NO_ENTRY, **CROSS)
            add_key(axes, SHORT, CROSS)
        first = level_from(y)
        is_linear = axes.get_yscale() == "linear"
        at_share_end = is_linear and min(abs(y[-1] - end) for end in _SHARE_ENDS) < _NEAR
        if points[-1, 0] - points[first, 0] > PIECE and not (at_share_end or has_marks):
            axes.plot(x[first : first + 1], y[-1:], color=colour, label=NO_ENTRY, **TICK)
            add_key(axes, LEVEL, TICK)


def level_from(values: np.ndarray) -> int:
    """The place from which values are constant up to their end; the last place if all are equal.

    Args:
        values: finite, shape (k,), at least one.

    Examples:
        >>> level_from(np.array([3.0, 2.0, 1.0, 1.0])), level_from(np.ones(4))
        (2, 3)
    """
    other = np.flatnonzero(np.abs(values - values[-1]) > 1e-9 * np.abs(values[-1]))
    return int(other[-1]) + 1 if other.size else len(values) - 1


def _curves(axes: "Axes") -> Iterator[tuple["Line2D", np.ndarray]]:
    """The lines of a frame with their finite points as shares of it."""
    for line in filter(is_curve, list(axes.lines)):
        points = in_frame(axes, line)
        points = points[np.isfinite(points).all(axis=1)]
        if len(points) > 1:
            yield line, points
