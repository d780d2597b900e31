"""Every line, bar and band of a figure of a published record has a meaning inside the figure."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.collections import FillBetweenPolyCollection
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D
from perturbed_records import published, recorded

from attlas.experiments.panels import Plot
from attlas.experiments.panels.legend_keys import is_key

EXPERIMENTS = recorded()
PLOTS = [
    pytest.param(e.name, k, id=f"{e.name}-{k}")
    for e in EXPERIMENTS.values()
    for k, draw in enumerate(e.figures)
    if isinstance(draw, Plot)
]
BRIEF = {"margin_ledger", "sample_complexity", "inconsistency", "convergence", "digits"}
"""Drawn quickly; the others are thorough."""


def unexplained(figure):
    """What a figure draws without an entry in a legend, and axes without a quantity."""
    problems = []
    for axes in figure.axes:
        drawn = [line for line in axes.lines if len(np.atleast_1d(line.get_xdata()))]
        if not axes.has_data() or not drawn:
            continue
        legends = [legend for part in parts(axes.figure) for legend in part.legends]
        texts = [" ".join(text.get_text().split()) for each in legends for text in each.get_texts()]
        shown = set(texts)
        entries = [entry for beside in neighbours(axes) for entry in entries_of(beside)]
        problems += [
            f"not in a legend: {label}"
            for _, label in entries
            if not any(text.startswith(label) for text in shown)
        ]
        known = {style for handle, _ in entries for style in styles([line_of(handle)])}
        if len({(line.get_linestyle(), line.get_color()) for line in drawn}) > 1:
            problems += [f"no legend for {style}" for style in styles(drawn) - known]
        bars = [each for each in axes.containers if isinstance(each, ErrorbarContainer)]
        banded = any(isinstance(each, FillBetweenPolyCollection) for each in axes.collections)
        if banded or any(each.has_xerr or each.has_yerr for each in bars):
            keys = [label for handle, label in entries if is_key(handle)]
            problems += [] if keys else ["bars or a band without a meaning"]
    return sorted(set(problems)) + sorted(set(nameless(figure)))


def parts(figure):
    """A subfigure and those that hold it."""
    while figure is not None:
        yield figure
        parent = getattr(figure, "_parent", None)
        figure = parent if parent is not figure else None


def neighbours(axes):
    """The small multiples of a panel, which have one legend."""
    return [each for each in axes.figure.get_figure(root=True).axes if each.figure is axes.figure]


def entries_of(axes):
    """Handles and labels of the legend entries of axes."""
    return list(zip(*axes.get_legend_handles_labels(), strict=True))


def line_of(handle):
    """The line of an entry."""
    return handle[0] if isinstance(handle, ErrorbarContainer) else handle


def styles(artists):
    """Dashes of the lines among artists."""
    lines = [artist for artist in artists if isinstance(artist, Line2D) and not is_key(artist)]
    return {line.get_linestyle() for line in lines} - {"None", ""}


def nameless(figure):
    """Axes whose quantity is written neither on an axis of the panel nor in the title."""
    for axes in figure.axes:
        if not axes.has_data() or axes.get_label() == "<colorbar>":
            continue
        for which, text, shared in (
            ("x", axes.get_xlabel(), axes.get_shared_x_axes()),
            ("y", axes.get_ylabel(), axes.get_shared_y_axes()),
        ):
            beside = [each for each in figure.axes if shared.joined(axes, each)]
            beside += [each for each in figure.axes if each.figure is axes.figure]
            named = [getattr(each, f"get_{which}label")() for each in beside]
            ticks = [tick.get_text() for tick in getattr(axes, f"get_{which}ticklabels")()]
            words = any(any(sign.isalpha() for sign in tick) for tick in ticks)
            if (
                not (text or axes.get_title())
                and not any(named)
                and not words
                and getattr(axes, f"get_{which}ticks")().size
            ):
                yield f"an axis {which} without a quantity: {axes.get_title()}"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    ("name", "place"),
    [
        pytest.param(
            *each.values, id=each.id, marks=[] if each.values[0] in BRIEF else pytest.mark.thorough
        )
        for each in PLOTS
    ],
)
def test_everything_drawn_is_explained_in_the_figure(name, place):
    data = published(EXPERIMENTS[name])
    assert data is not None
    figure = EXPERIMENTS[name].figures[place](data).figure
    try:
        assert unexplained(figure) == []
    finally:
        plt.close(figure)


def test_what_is_not_explained_is_seen():
    figure, axes = plt.subplots()
    axes.plot([0, 1], [0, 1], label="a")
    axes.plot([0, 1], [1, 1], "--")
    axes.fill_between([0, 1], [0, 0], [1, 2])
    axes.set_ylabel("error")
    assert unexplained(figure) == [
        "bars or a band without a meaning",
        "no legend for --",
        "not in a legend: a",
        "an axis x without a quantity: ",
    ]
    plt.close(figure)
