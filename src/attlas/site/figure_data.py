"""The numbers that a figure draws, as CSV."""

import csv
import io
from collections.abc import Iterator

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from attlas.experiments.panels.line_ends import NO_ENTRY

COLUMNS = ("panel", "kind", "series", "x", "y", "value")
MOST_ROWS = 20_000
"""Rows of a file at most; a last row names how many are left out."""


def figure_csv(figure: Figure) -> str:
    r"""Lines, points, bars and cells of a figure with their coordinates, one row for each.

    A series without a label in the legend has a number. Bands, error bars and reference lines
    across a panel are left out.

    Examples:
        >>> figure = Figure(figsize=(2, 1))
        >>> _ = figure.subplots().plot([0, 1], [2, 3], label="a")
        >>> figure_csv(figure).splitlines()
        ['panel,kind,series,x,y,value', '1,line,a,0,2,', '1,line,a,1,3,']
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    rows = 0
    for place, axes in enumerate(figure.axes, 1):
        title = axes.get_title() or axes.get_ylabel()
        panel = f"{place} {title}" if title else str(place)
        for row in _rows_of(axes):
            if any(cell != cell for cell in row):  # a gap of the figure: not a number
                continue
            rows += 1
            if rows <= MOST_ROWS:
                writer.writerow((panel, *(_written(cell) for cell in row)))
    if rows > MOST_ROWS:
        writer.writerow((f"{rows - MOST_ROWS} more rows are left out",))
    return text.getvalue()


def _written(cell: object) -> object:
    return f"{cell:.10g}" if isinstance(cell, float) else cell


def _rows_of(axes: Axes) -> Iterator[tuple[object, ...]]:
    """Kind, series, x, y and value of everything that a panel draws in its own coordinates."""
    for k, line in enumerate(axes.get_lines(), 1):
        if line.get_transform() == axes.transData and line.get_label() != NO_ENTRY:
            for x, y in np.asarray(line.get_xydata(), float):
                yield "line", _name(line.get_label(), k), float(x), float(y), ""
    for k, points in enumerate(axes.collections, 1):
        name = _name(points.get_label(), k)
        if isinstance(points, PathCollection):
            for x, y in np.asarray(np.ma.filled(points.get_offsets(), np.nan), float):
                yield "point", name, float(x), float(y), ""
        if isinstance(points, QuadMesh):
            corners = np.asarray(points.get_coordinates(), float)
            centres = (corners[:-1, :-1] + corners[1:, 1:]) / 2
            values = np.ma.filled(np.ma.asarray(points.get_array(), float), np.nan)
            for (x, y), value in zip(centres.reshape(-1, 2), values.ravel(), strict=False):
                yield "cell", name, float(x), float(y), float(value)
    for k, bars in enumerate(axes.containers, 1):
        if isinstance(bars, BarContainer):
            for bar in bars:
                (x, y), (width, height) = bar.get_xy(), (bar.get_width(), bar.get_height())
                yield "bar", _name(bars.get_label(), k), float(x + width / 2), float(y + height), ""
    for k, image in enumerate(axes.images, 1):
        values = np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan)
        if values.ndim == 2:
            for (row, column), value in np.ndenumerate(values):
                yield "cell", _name(image.get_label(), k), float(column), float(row), float(value)


def _name(label: object, place: int) -> str:
    text = str(label)
    return str(place) if text.startswith("_") or not text else text
