"""Wide figures are cut between their panels, and nothing of a panel is lost."""

import io
from itertools import pairwise

import numpy as np
import pytest
from matplotlib.figure import Figure

from attlas.site.narrow_screen import LEAST, segments_of


def drawn(figure):
    figure.savefig(io.StringIO(), format="svg")
    return figure


def test_subfigures_are_cut_and_cover_the_figure():
    figure = Figure(figsize=(10, 4), layout="constrained")
    top, bottom = np.ravel(figure.subfigures(2, 1))
    for part in (*top.subfigures(1, 2, width_ratios=[1, 3]), bottom):
        part.subplots()
    segments = segments_of(drawn(figure), 800.0)
    # Constrained layout leaves a few points between subfigures.
    for segment, left, right, top in zip(
        segments, (0, 180, 0), (180, 720, 720), (0, 0, 144), strict=True
    ):
        assert segment.pieces == (pytest.approx((left, right), abs=8),)
        assert segment.band == pytest.approx((top, top + 144), abs=8)


def test_columns_share_the_numbers_of_the_first_and_have_their_legend_apart():
    figure = Figure(figsize=(10, 3), layout="constrained")
    for k, axes in enumerate(figure.subplots(2, 3, sharey="row").ravel()):
        axes.plot([0, 1], label=f"a line of some length, number {k}")
    figure.legend(loc="outside lower center", ncols=3)
    segments = segments_of(drawn(figure), 300.0)
    columns, legend = segments[:3], segments[3:]
    assert [len(segment.pieces) for segment in columns] == [1, 2, 2]
    ends = [segment.pieces[-1] for segment in columns]
    assert ends[0][0] == 0
    assert ends[-1][1] == 720
    assert all(first[1] == then[0] for first, then in pairwise(ends))
    numbers = columns[1].pieces[0]
    assert numbers[0] == 0
    assert 0 < numbers[1] < 72
    assert len(legend) == 3
    assert all(segment.band[0] == pytest.approx(columns[0].band[1]) for segment in legend)
    assert all(one.pieces[0][1] == then.pieces[0][0] for one, then in pairwise(legend))
    assert all(segment.width <= 300 for segment in legend)


def test_numbers_of_their_own_are_not_repeated_and_a_bar_stays_with_its_panel():
    figure = Figure(figsize=(10, 3), layout="constrained")
    axes = figure.subplots(1, 2)
    image = axes[0].imshow([[0, 1]])
    axes[1].plot([0, 1])
    figure.colorbar(image, ax=axes[0], aspect=30)
    segments = segments_of(drawn(figure), 300.0)
    assert figure.axes[2].bbox.width * 72 / figure.dpi < LEAST
    assert [len(segment.pieces) for segment in segments] == [1, 1]


def test_a_narrow_figure_stays_whole_and_its_resolution_as_it_was():
    figure = Figure(figsize=(4, 3), dpi=130)
    figure.subplots(1, 2)
    (segment,) = segments_of(drawn(figure), 300.0)
    assert (segment.width, segment.height) == (288, 216)
    assert figure.dpi == 130


def test_no_number_of_a_neighbour_is_seen_beside_a_column():
    figure = Figure(figsize=(10, 3), layout="constrained")
    for axes in figure.subplots(1, 3, sharey=True):
        axes.plot([0, 1], [0, 1])
        axes.set(xlim=(0, 1), xticks=[0, 1], xticklabels=["at zero", "at one"])
    segments = segments_of(drawn(figure), 300.0)
    figure.dpi = 72
    for axes, segment in zip(figure.axes, segments, strict=True):
        assert segment.pieces[-1][0] < axes.bbox.x0 < axes.bbox.x1 < segment.pieces[-1][1]
    words = [[tick.get_window_extent() for tick in axes.get_xticklabels()] for axes in figure.axes]
    for (_, last), (first, _), segment in zip(words, words[1:], segments, strict=False):
        assert last.x1 <= segment.pieces[-1][1] + 0.1
        assert segment.pieces[-1][1] <= first.x0 + 0.1
    # The numbers beside the first column are shown again, as little of those below as can be.
    beside = [tick.get_window_extent().x1 for tick in figure.axes[0].get_yticklabels()]
    assert segments[1].pieces[0][1] <= max(*beside, words[0][0].x0) + 0.1


def test_a_place_that_is_kept_free_is_no_segment():
    figure = Figure(figsize=(10, 4), layout="constrained")
    figure.subfigures(1, 3, width_ratios=[1, 2, 1])[1].subplots()
    assert len(segments_of(drawn(figure), 800.0)) == 1


def test_a_frame_is_whole_where_its_neighbour_has_a_wide_first_number():
    figure = Figure(figsize=(10, 3), layout="constrained")
    for axes in figure.subplots(1, 3, sharey=True):
        axes.plot([1, 5e3], [0, 1])
        axes.set(xscale="log", xlim=(0.9, 5e3))
    segments = segments_of(drawn(figure), 300.0)
    figure.dpi = 72
    for axes, segment in zip(figure.axes, segments, strict=True):
        assert segment.pieces[-1][0] < axes.bbox.x0 < axes.bbox.x1 < segment.pieces[-1][1]
