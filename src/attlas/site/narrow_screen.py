"""Split a wide figure between its panels, which a telephone then shows one below the other."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import BboxBase

PAD = 3.0
"""Points of a gap that belong to its left panel."""
LEAST = 36.0
"""Narrower axes, in points, are the colour bar of the panel on their left."""

_EDGE = 1.0
"""Points of the line around a frame."""
Interval = tuple[float, float]
AnyFigure = Figure | SubFigure


class Segment(NamedTuple):
    """A part of a figure: a band of its height, and pieces of its width to put side by side.

    Lengths are in points, from the left and from the top.
    """

    band: Interval
    pieces: tuple[Interval, ...]

    @property
    def width(self) -> float:
        """Width of all pieces together."""
        return sum(right - left for left, right in self.pieces)

    @property
    def height(self) -> float:
        """Height of the band."""
        return self.band[1] - self.band[0]


def segments_of(figure: Figure, widest: float) -> tuple[Segment, ...]:
    """Split a figure, in its last layout, into segments in reading order.

    A segment is a subfigure; a wide subfigure with several columns is split into these, each with
    the numbers of a shared axis, and its legend.

    Args:
        widest: width in points up to which a subfigure is not split.

    Examples:
        >>> figure = Figure(figsize=(10, 2))
        >>> _ = [part.subplots() for part in figure.subfigures(1, 2)]
        >>> [segment.pieces for segment in segments_of(figure, 400.0)]
        [((0.0, 360.0),), ((360.0, 720.0),)]
    """
    resolution = figure.dpi
    figure.dpi = 72  # as in the SVG: pixels are points, and text has the same positions
    try:
        leaves = [(_box(part, figure), part) for part in _leaves(figure)]
        leaves.sort(key=lambda leaf: (round(leaf[0][1][0]), leaf[0][0][0]))
        return tuple(segment for box, part in leaves for segment in _cut(part, figure, box, widest))
    finally:
        figure.dpi = resolution


def _leaves(part: AnyFigure) -> list[AnyFigure]:
    """The subfigures that hold others no more, without empty ones, which keep a place free."""
    inner: list[SubFigure] = list(part.subfigs)
    leaves = [leaf for subfigure in inner for leaf in _leaves(subfigure)] if inner else [part]
    return [leaf for leaf in leaves if leaf.axes or leaf.legends]


def _box(part: AnyFigure | Axes, figure: Figure) -> tuple[Interval, Interval]:
    """The interval from the left and that from the top."""
    return _intervals(part.bbox, figure)


def _intervals(box: BboxBase, figure: Figure) -> tuple[Interval, Interval]:
    height = float(figure.bbox.height)
    return (float(box.x0), float(box.x1)), (height - float(box.y1), height - float(box.y0))


def _cut(
    part: AnyFigure, figure: Figure, box: tuple[Interval, Interval], widest: float
) -> list[Segment]:
    (left, right), (top, bottom) = box
    frames = [axes for axes in part.axes if axes.get_visible()]
    columns = _columns([_box(axes, figure)[0] for axes in frames])
    if len(columns) < 2 or right - left <= widest:
        return [Segment((top, bottom), ((left, right),))]
    edge = min([bottom, *(_extent(legend, figure)[1][0] for legend in part.legends)])
    widths = [_overhang(column, frames, figure) for column in columns]
    ends = [min((before[1] + after[0]) / 2, before[1] + PAD) for before, after in pairwise(widths)]
    # A frame is whole, also where a number of its neighbour is before its edge.
    ends = [
        min(max(end, before[1] + _EDGE), after[0] - _EDGE)
        for end, (before, after) in zip(ends, pairwise(columns), strict=True)
    ]
    starts = [left, *ends]
    numbers = (left, _numbers_end(columns[0], widths[0][0], frames, figure))
    segments = [Segment((top, edge), ((left, ends[0]),))]
    shared = _share_numbers(part, columns[0][1])
    for start, end in zip(starts[1:], [*ends[1:], right], strict=True):
        pieces = (numbers, (start, end)) if shared else ((start, end),)
        segments.append(Segment((top, edge), pieces))
    for legend in part.legends:
        segments += [
            Segment((edge, bottom), (column,)) for column in _legend_columns(legend, figure, widest)
        ]
    return segments


def _overhang(column: Interval, frames: list[Axes], figure: Figure) -> Interval:
    """A column with the numbers below its axes, which overhang."""
    spans = [column]
    for axes in frames:
        if column[0] <= _box(axes, figure)[0][0] < column[1]:
            spans += _ticks(axes.get_xticklabels(), figure)
    return min(start for start, _ in spans), max(end for _, end in spans)


def _numbers_end(column: Interval, least: float, frames: list[Axes], figure: Figure) -> float:
    """Where the numbers beside a column end; from there on it may have others below it."""
    first = [axes for axes in frames if _box(axes, figure)[0][0] < column[1]]
    ends = [end for axes in first for _, end in _ticks(axes.get_yticklabels(), figure)]
    return min(column[0], max([least, *ends]))


def _ticks(texts: Sequence[Text], figure: Figure) -> list[Interval]:
    seen = (text for text in texts if text.get_visible() and text.get_text())
    return [_extent(text, figure)[0] for text in seen]


def _columns(spans: list[Interval]) -> list[Interval]:
    """The columns of axes one above the other; a panel and its colour bar are one column."""
    columns: list[Interval] = []
    for start, end in sorted(spans):
        if columns and (start < columns[-1][1] or end - start < LEAST):
            columns[-1] = (columns[-1][0], max(end, columns[-1][1]))
        else:
            columns.append((start, end))
    return columns


def _share_numbers(part: AnyFigure, end: float) -> bool:
    """Whether the other columns share the vertical axis of the first, which ends at `end`."""
    first = [axes for axes in part.axes if float(axes.bbox.x0) < end]
    others = [axes for axes in part.axes if axes not in first]
    return all(any(axis.get_shared_y_axes().joined(axis, o) for axis in first) for o in others)


def _legend_columns(legend: Legend, figure: Figure, widest: float) -> list[Interval]:
    """The legend's columns, in groups that fit side by side."""
    spans = [_extent(text, figure)[0] for text in legend.get_texts()]
    ends = sorted({max(end for begin, end in spans if begin == start) for start, _ in spans})
    groups: list[Interval] = []
    start = last = _extent(legend, figure)[0][0]
    for end in ends:
        if last > start and end + PAD - start > widest:
            groups.append((start, last))
            start = last
        last = end + PAD
    return [*groups, (start, last)]


def _extent(artist: Artist, figure: Figure) -> tuple[Interval, Interval]:
    return _intervals(artist.get_window_extent(), figure)
