"""A plot: panels side by side, with one rule for sizes and one for legends."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xarray as xr

from attlas.experiments.experiment import CaptionedFigure
from attlas.experiments.panels.legend_keys import is_key
from attlas.experiments.panels.line_ends import mark_ends
from attlas.experiments.panels.meanings import Meaning, sentences
from attlas.experiments.panels.panel import WIDEST, Panel, in_lines, typeset_length
from attlas.experiments.panels.ticks import readable_ticks
from attlas.experiments.panels.unseen_lines import CUT, cut_bars, lacking, remarks

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import SubFigure

WIDTH, HEIGHT = 3.2, 3.0
"""Inches of one pair of axes, its labels included."""
LEGEND_ROW = 0.2
_LINE, _TALL_LINE, _SHORT_LINE = 34, 28, 20
"""Letters of a label below a panel, beside it, and beside one row of small multiples."""
_LONGEST_ENTRY = 58
"""Letters of a line of a legend, as wide as a telephone shows."""


def no_values(data: xr.Dataset) -> Mapping[str, Any]:
    """The values of a caption that does not depend on the data set."""
    del data
    return {}


@dataclass(frozen=True)
class Plot:
    """A figure of some panels, and the caption that answers the question.

    Each pair of axes has one size. Panels stand side by side, four pairs of axes wide at most.
    A panel's legend stands below it, names each series once, and covers no data; where all
    panels have the same, it stands once. It says which lines lie under another or off the scale.

    Attributes:
        caption: text with $mathematics$, or a function of the data set that returns the text or
            the values of its template in the experiment's prose; by default the template has none.
        height: height of one pair of axes; 1 is the usual one.
    """

    title: str
    panels: Panel | Sequence[Panel]
    caption: str | Callable[[xr.Dataset], str | Mapping[str, Any]] = no_values
    height: float | int = 1.0

    def __call__(self, data: xr.Dataset) -> CaptionedFigure:
        """Draw the figure of an experiment's data set, with its caption."""
        import matplotlib.pyplot as plt

        panels = [self.panels] if isinstance(self.panels, Panel) else list(self.panels)
        lines = _lines_of(panels, data)
        widths = [[_width(panel, data) for panel in line] for line in lines]
        heights = [max(_height(panel, data) for panel in line) * self.height for line in lines]
        figure = plt.figure(layout="constrained")
        grid = figure.add_gridspec(len(lines), 1)
        for k, (line, ratios) in enumerate(zip(lines, widths, strict=True)):
            row = figure.add_subfigure(grid[k, 0])
            columns = _columns(row, ratios, max(map(sum, widths)))
            entries = [_draw(c, panel, data) for c, panel in zip(columns, line, strict=True)]
            if len(entries) > 1 and all(list(e) == list(entries[0]) for e in entries):
                columns, entries, ratios = [row], entries[:1], [sum(ratios)]
            legend_rows = max(map(_legend, columns, entries, ratios))
            heights[k] = HEIGHT * heights[k] + LEGEND_ROW * legend_rows
        grid.set_height_ratios(heights)
        figure.set_size_inches(WIDTH * max(map(sum, widths)) + 0.4, sum(heights))
        caption = self.caption if isinstance(self.caption, str) else self.caption(data)
        reading = sentences(_meanings(panels, data))
        if isinstance(caption, str):
            return CaptionedFigure(self.title, caption, figure, reading=reading)
        return CaptionedFigure(self.title, "", figure, caption, reading)


def _columns(row: "SubFigure", widths: Sequence[float], widest: float) -> Sequence["SubFigure"]:
    """The places of a line of panels; one alone is as wide as in a full line, in the middle."""
    beside = (widest - sum(widths)) / 2
    if len(widths) > 1 or beside < 0.01:
        beside = 0.0
    ratios = [beside, *widths, beside] if beside else [*widths]
    places = row.subfigures(1, len(ratios), width_ratios=ratios, squeeze=False)[0].tolist()
    return places[1:2] if beside else places


def _meanings(panels: Sequence[Panel], data: xr.Dataset) -> Iterator[Meaning | None]:
    """What the layers of all panels summarise, each in its first view."""
    for panel in panels:
        view = panel.views(data)[0][0]
        for layer in (panel, *panel.added):
            yield from layer.meanings(view)


def _width(panel: Panel, data: xr.Dataset) -> float:
    return panel.width * len(panel.views(data)[0])


def _height(panel: Panel, data: xr.Dataset) -> float:
    """Relative height; rows of small multiples share the tick labels below and need less each."""
    rows = len(panel.views(data))
    return 1.0 if rows == 1 else 0.8 * rows


def _lines_of(panels: Sequence[Panel], data: xr.Dataset) -> list[list[Panel]]:
    """The panels in lines of at most the full width."""
    lines: list[list[Panel]] = [[]]
    for panel in panels:
        used = sum(_width(neighbour, data) for neighbour in lines[-1])
        if lines[-1] and used + _width(panel, data) > WIDEST + 0.01:
            lines.append([])
        lines[-1].append(panel)
    return lines


def _draw(figure: "SubFigure", panel: Panel, data: xr.Dataset) -> dict[str, "Artist"]:
    """Draw a panel's small multiples; returns the entries of its legend."""
    views = panel.views(data)
    axes = figure.subplots(
        len(views),
        len(views[0]),
        squeeze=False,
        sharex="col",
        sharey="row" if panel.shared else False,
    )
    entries: dict[str, "Artist"] = {}
    for k, (line, line_views) in enumerate(zip(axes, views, strict=True)):
        for j, (axis, view) in enumerate(zip(line, line_views, strict=True)):
            panel.draw_all(axis, view)
            mark_ends(axis)
            axis.tick_params(labelsize=8.5)
            if j == 0 or not panel.shared:
                axis.set_ylabel(
                    in_lines(
                        panel.vertical_name(view), _TALL_LINE if len(views) == 1 else _SHORT_LINE
                    )
                )
            if k == len(views) - 1:
                axis.set_xlabel(in_lines(panel.xlabel, panel.letters(axis, len(line), _LINE)))
            for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
                entries.setdefault(label, handle)
    for axis in axes.flat:
        panel.limit(axis)
        readable_ticks(axis)
    unseen = remarks(axes.flat)
    for label, remark in lacking([*axes.flat]).items():
        unseen[label] = "; ".join(filter(None, [unseen.get(label, ""), remark]))
    entries = {
        f"{label} ({unseen[label]})" if label in unseen else label: handle
        for label, handle in entries.items()
    }
    for label in cut_bars(axes.flat):
        entries[f"{label} ({CUT})"] = entries.pop(label)
    # What bars, bands and arrows mean stands behind the series.
    return dict(sorted(entries.items(), key=lambda entry: is_key(entry[1])))


def _legend(figure: "SubFigure", entries: dict[str, "Artist"], width: float) -> int:
    """Draw a legend below the figure; returns its number of lines, as few as the width allows."""
    if not entries:
        return 0
    letters = min(int(WIDTH * width / 0.068) - 9, _LONGEST_ENTRY)
    labels = [in_lines(label, letters) for label in entries]
    # Typeset mathematics is shorter than its source.
    longest = max(typeset_length(line) for label in labels for line in label.split("\n"))
    columns = max(1, min(len(entries), int(WIDTH * width / (0.55 + 0.068 * longest))))
    rows = math.ceil(len(entries) / columns)
    columns = math.ceil(len(entries) / rows)  # lines of equal length
    figure.legend(
        list(entries.values()), labels, loc="outside lower center", ncols=columns,
        frameon=False, fontsize=8.5,
    )  # fmt: skip
    # Entries go down the columns, and the tallest of a line makes it so tall.
    return rows + sum(max(label.count("\n") for label in labels[k::rows]) for k in range(rows))
