"""Lines that a reader cannot see: under another line, or beyond the frame; a legend says so."""

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attlas.experiments.panels.legend_keys import BARS, is_key

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

SHORTENED = 32
"""Letters of a line's name in a remark on another."""
CUT = "cut at the frame"
"""What the legend adds to the meaning of bars that end beyond it."""
_SLACK = 1e-6
NEAR = 0.008
"""Distance below which two lines are one to the eye, as a share of the frame."""


def remarks(frames: Iterable["Axes"]) -> dict[str, str]:
    """What the legend adds to the label of a line that cannot be seen in some of the frames.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> for label, height in (("bound", 1.0), ("sharp bound", 1.0), ("far", 9.0)):
        ...     _ = axes.plot([0, 1], [0, height], label=label)
        >>> _ = axes.set_ylim(0, 1)
        >>> _ = axes.plot([0, 1], [3, 4], label="rate")
        >>> remarks([axes])
        {'sharp bound': 'same line as bound', 'rate': 'off the scale'}
    """
    places: dict[str, dict[str, list[str]]] = {}
    drawn: dict[str, int] = {}
    for axes in frames:
        curves = _curves(axes)
        for label in curves:
            drawn[label] = drawn.get(label, 0) + 1
        for label, remark in _unseen(curves):
            titles = places.setdefault(label, {}).setdefault(remark, [])
            titles.append(" ".join(axes.get_title().split()))
    return {label: _phrase(titles, drawn[label]) for label, titles in places.items()}


def lacking(frames: Sequence["Axes"]) -> dict[str, str]:
    """In which panels a series of the legend has no value, where others of its row have some.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> left, right = Figure().subplots(1, 2)
        >>> for axes, title in ((left, "few"), (right, "many")):
        ...     _ = axes.plot([0, 1], [0, 1], label="bound")
        ...     _ = axes.set_title(title)
        >>> _ = left.plot([0, 1], [0, 2], label="rate")
        >>> lacking([left, right])
        {'rate': 'no value: many'}
    """
    frames = [axes for axes in frames if axes.has_data()]
    present = [_drawn_labels(axes) for axes in frames]
    titles = [" ".join(axes.get_title().split()) for axes in frames]
    phrases: dict[str, str] = {}
    for label in dict.fromkeys(label for labels in present for label in labels):
        without = [
            title for title, labels in zip(titles, present, strict=True) if label not in labels
        ]
        if len(without) == 1 and without[0]:
            phrases[label] = f"no value: {without[0]}"
        elif without:
            phrases[label] = f"no value in {len(without)} of {len(frames)} panels"
    return phrases


def cut_bars(frames: Iterable["Axes"]) -> list[str]:
    """The keys of bars of which some end beyond their frame, as at zero on a logarithmic axis.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> _ = axes.errorbar([1.0], [1.0], yerr=[[2.0], [0.5]])
        >>> _ = axes.plot([], [], ls="", marker="|", label="mean and range")
        >>> cut_bars([axes])
        []
        >>> _ = axes.set_ylim(0, 2)
        >>> cut_bars([axes])
        ['mean and range']
    """
    from matplotlib.container import ErrorbarContainer

    labels: dict[str, None] = {}
    for axes in frames:
        bars = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
        if any(_cut(axes, bar) for container in bars for bar in container[2]):
            entries = zip(*axes.get_legend_handles_labels(), strict=True)
            labels |= {label: None for key, label in entries if is_key(key) and _of_bars(key)}
    return list(labels)


def _of_bars(key: "Artist") -> bool:
    from matplotlib.lines import Line2D

    return isinstance(key, Line2D) and key.get_marker() == BARS["marker"]


def _cut(axes: "Axes", bars: "LineCollection") -> bool:
    """Whether a bar goes on beyond the frame."""
    segments = [np.asarray(segment, dtype=float) for segment in bars.get_segments()]
    finite = [segment for segment in segments if segment.size and np.isfinite(segment).all()]
    if not finite:
        return False
    ends = np.concatenate(finite)
    axes.autoscale_view()
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = axes.transLimits.transform(axes.transScale.transform(ends))
    return bool((~np.isfinite(shares) | (shares < -_SLACK) | (shares > 1 + _SLACK)).any())


def _drawn_labels(axes: "Axes") -> list[str]:
    """The labels of the legend that have a finite point in a frame; keys have none anywhere."""
    from matplotlib.container import Container
    from matplotlib.lines import Line2D

    labels = []
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        line = handle[0] if isinstance(handle, Container) else handle
        points = np.asarray(line.get_xydata() if isinstance(line, Line2D) else [[0.0]], dtype=float)
        if np.isfinite(points).all(axis=-1).any():
            labels.append(label)
    return labels


def _phrase(places: Mapping[str, Sequence[str]], panels: int) -> str:
    return "; ".join(
        remark
        if len(titles) == panels
        else f"{remark}: {titles[0]}"
        if len(titles) == 1 and titles[0]
        else f"{remark} in {len(titles)} of {panels} panels"
        for remark, titles in places.items()
    )


def _curves(axes: "Axes") -> dict[str, list[np.ndarray]]:
    """The points of each label's lines, as shares of the frame; thin lines share a look."""
    labels: dict[tuple[object, str], str] = {}
    curves: dict[str, list[np.ndarray]] = {}
    for line in filter(is_curve, axes.lines):
        label, look = str(line.get_label()), (line.get_color(), str(line.get_linestyle()))
        label = labels.setdefault(look, label) if label.startswith("_") else label
        labels[look] = label
        points = in_frame(axes, line)
        if not label.startswith("_") and np.isfinite(points).all(axis=-1).any():
            curves.setdefault(label, []).append(points)
    return curves


def _unseen(curves: Mapping[str, Sequence[np.ndarray]]) -> Iterator[tuple[str, str]]:
    labels = list(curves)
    for place, label in enumerate(labels):
        same = (n for n in labels[:place] if _covered(curves[label], curves[n]))
        if not any(map(_inside, curves[label])):
            yield label, "off the scale"
        # Of a bundle of lines some may lie under others, and the reader still sees the bundle.
        elif len(curves[label]) == 1 and (name := next(same, None)) is not None:
            head, colon, _ = name.partition(": ")
            short = head if colon else textwrap.shorten(name, SHORTENED, placeholder="…")
            yield label, f"same line as {short}"


def _covered(lines: Sequence[np.ndarray], over: Sequence[np.ndarray]) -> bool:
    return all(any(coincide(points, beside) for beside in over) for points in lines)


def is_curve(line: "Line2D") -> bool:
    """Whether a line joins at least two points."""
    dashed = line.get_linestyle() not in ("None", "", " ")
    return dashed and not is_key(line) and len(np.atleast_1d(line.get_xdata())) > 1


def in_frame(axes: "Axes", line: "Line2D") -> np.ndarray:
    """The points of a line of data as shares of the frame, shape (k, 2); of other lines none.

    Examples:
        >>> from matplotlib.figure import Figure
        >>> axes = Figure().subplots()
        >>> (line,) = axes.plot([0.0, 1.0], [2.0, 4.0])
        >>> _ = axes.set(xlim=(0, 2), ylim=(0, 4))
        >>> in_frame(axes, line).tolist()
        [[0.0, 0.5], [0.5, 1.0]]
    """
    if line.get_transform() != axes.transData:  # a line across the frame, or a shifted mark
        return np.empty((0, 2))
    points = np.column_stack([np.asarray(each, dtype=float) for each in line.get_data()])
    axes.autoscale_view()
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(axes.transLimits.transform(axes.transScale.transform(points)))


def coincide(points: np.ndarray, beside: np.ndarray) -> bool:
    """Whether two lines have the same points, to the eye.

    Args:
        points: points of a line as shares of the frame, shape (k, 2).
        beside: those of the other line, shape (m, 2).

    Examples:
        >>> line = np.array([[0.0, 0.1], [1.0, 0.5]])
        >>> coincide(line, line + 0.001), coincide(line, line + 0.1), coincide(line, line[:1])
        (True, False, False)
    """
    if points.shape != beside.shape or not points.size:
        return False
    return bool(np.nanmax(np.abs(points - beside)) < NEAR)


def _inside(points: np.ndarray) -> bool:
    slack = 1e-9
    return not points.size or bool(((points >= -slack) & (points <= 1 + slack)).all(axis=1).any())
