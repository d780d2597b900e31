"""Tiles: a wide figure cut between its panels, for a telephone to show one below the other."""

from itertools import pairwise
from typing import NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.legend import Legend
from matplotlib.transforms import BboxBase

PAD = 6.0
"""Points of a gap that belong to the panel on its left: the last number below an axis overhangs."""
LEAST = 36.0
"""Points of width below which axes are the colour bar of the panel on their left."""

Interval = tuple[float, float]
Whole = Figure | SubFigure


class Tile(NamedTuple):
    """A part of a figure: a band of its height, and what of its width is put side by side.

    Lengths are in points, from the left and from the top.
    """

    band: Interval
    pieces: tuple[Interval, ...]

    @property
    def width(self) -> float:
        """Of the pieces together."""
        return sum(right - left for left, right in self.pieces)

    @property
    def height(self) -> float:
        """Of the band."""
        return self.band[1] - self.band[0]


def tiles_of(figure: Figure, widest: float) -> tuple[Tile, ...]:
    """How to cut a figure, as it was drawn last.

    It is cut into its subfigures; one of several columns that is wide is cut into these, each
    with the numbers of the axis that they share, and into its legend.

    Args:
        figure: any matplotlib figure.
        widest: points up to which a subfigure stays whole.

    Returns:
        The tiles in reading order, a single one where there is nothing to cut.

    Examples:
        >>> figure = Figure(figsize=(10, 2))
        >>> _ = [part.subplots() for part in figure.subfigures(1, 2)]
        >>> [tile.pieces for tile in tiles_of(figure, 400.0)]
        [((0.0, 360.0),), ((360.0, 720.0),)]
    """
    resolution = figure.dpi
    figure.dpi = 72  # that of the SVG: pixels are points, and words are where they were put
    try:
        parts = [(_box(part, figure), part) for part in _leaves(figure)]
        parts.sort(key=lambda each: (round(each[0][1][0]), each[0][0][0]))
        return tuple(tile for box, part in parts for tile in _cut(part, figure, box, widest))
    finally:
        figure.dpi = resolution


def _leaves(part: Whole) -> list[Whole]:
    inner: list[SubFigure] = list(part.subfigs)
    return [leaf for each in inner for leaf in _leaves(each)] if inner else [part]


def _box(part: Whole | Axes, figure: Figure) -> tuple[Interval, Interval]:
    """The interval from the left and that from the top."""
    return _intervals(part.bbox, figure)


def _intervals(box: BboxBase, figure: Figure) -> tuple[Interval, Interval]:
    height = float(figure.bbox.height)
    return (float(box.x0), float(box.x1)), (height - float(box.y1), height - float(box.y0))


def _cut(part: Whole, figure: Figure, box: tuple[Interval, Interval], widest: float) -> list[Tile]:
    (left, right), (top, bottom) = box
    columns = _columns([_box(axes, figure)[0] for axes in part.axes if axes.get_visible()])
    if len(columns) < 2 or right - left <= widest:
        return [Tile((top, bottom), ((left, right),))]
    edge = min([bottom, *(_extent(legend, figure)[1][0] for legend in part.legends)])
    ends = [min(own[1] + PAD, later[0]) for own, later in pairwise(columns)]
    starts = [left, *ends]
    numbers = (left, columns[0][0])
    tiles = [Tile((top, edge), ((left, ends[0]),))]
    shared = _share_numbers(part, columns[0][1])
    for start, end in zip(starts[1:], [*ends[1:], right], strict=True):
        pieces = (numbers, (start, end)) if shared else ((start, end),)
        tiles.append(Tile((top, edge), pieces))
    for legend in part.legends:
        tiles += [Tile((edge, bottom), (own,)) for own in _legend_columns(legend, figure, widest)]
    return tiles


def _columns(spans: list[Interval]) -> list[Interval]:
    """Axes that stand one above the other are one column, and so is a panel with its bar."""
    columns: list[Interval] = []
    for start, end in sorted(spans):
        if columns and (start < columns[-1][1] or end - start < LEAST):
            columns[-1] = (columns[-1][0], max(end, columns[-1][1]))
        else:
            columns.append((start, end))
    return columns


def _share_numbers(part: Whole, end: float) -> bool:
    """Whether the numbers of the first column, which ends there, serve the others too."""
    first = [axes for axes in part.axes if float(axes.bbox.x0) < end]
    others = [axes for axes in part.axes if axes not in first]
    return all(any(own.get_shared_y_axes().joined(own, o) for own in first) for o in others)


def _legend_columns(legend: Legend, figure: Figure, widest: float) -> list[Interval]:
    """The legend's columns, as many side by side as fit."""
    spans = [_extent(text, figure)[0] for text in legend.get_texts()]
    ends = sorted({max(end for begin, end in spans if begin == start) for start, _ in spans})
    parts: list[Interval] = []
    start = last = _extent(legend, figure)[0][0]
    for end in ends:
        if last > start and end + PAD - start > widest:
            parts.append((start, last))
            start = last
        last = end + PAD
    return [*parts, (start, last)]


def _extent(artist: Artist, figure: Figure) -> tuple[Interval, Interval]:
    return _intervals(artist.get_window_extent(), figure)
