"""Panels draw what the data set holds; nothing is drawn where it holds nothing."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attlas.experiments.panels.heat_map import HeatMap
from attlas.experiments.panels.histogram import Histogram
from attlas.experiments.panels.image_strip import ImageStrip
from attlas.experiments.panels.lines import Lines
from attlas.experiments.panels.palette import PALETTE
from attlas.experiments.panels.panel import View
from attlas.experiments.panels.plot import Plot
from attlas.experiments.panels.points import Points
from attlas.experiments.panels.reference import Reference
from attlas.experiments.panels.summary import (
    extremes,
    geometric_extremes,
    interval,
    quartiles,
    stated,
)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.uniform(1, 2, (2, 3, 5, 4)) * np.arange(1, 4)[:, None, None]
    y[1, 2] = np.nan
    return xr.Dataset(
        {"y": (("start", "p", "member", "step"), y)},
        {"start": ["zero", "Gaussian"], "p": [1.5, 2.0, 3.0], "step": [1, 2, 4, 8]},
    )


def drawn(data, *panels):
    figure = Plot("title", panels, "caption").__call__(data).figure
    figure.draw_without_rendering()
    axes = [a for a in figure.axes if a.has_data()]
    plt.close(figure)
    return figure, axes


def test_lines_are_medians_with_quartiles_by_label(data):
    _, (first, second) = drawn(data, Lines("y", "step", colour="p", panel="start", title="{start}"))
    lines = [line for line in first.lines if len(line.get_xdata())]
    assert [line.get_color() for line in lines] == list(PALETTE[:3])
    np.testing.assert_allclose(lines[1].get_ydata(), np.median(data.y.values[0, 1], axis=0))
    band = first.collections[1].get_paths()[0].vertices
    low, high = np.quantile(data.y.values[0, 1], [0.25, 0.75], axis=0)
    assert {*low.round(9), *high.round(9)} <= set(band[:, 1].round(9))
    # The series without data keeps its colour free.
    assert sum(len(line.get_xdata()) > 0 for line in second.lines) == 2
    assert (first.get_title(), second.get_title()) == ("zero", "Gaussian")


def test_members_are_drawn_each_along_a_variable(data):
    data["x"] = data.y * 2
    _, (axes,) = drawn(data, Lines("y", "x", colour="p", at={"start": "zero"}, band=None))
    lines = [line for line in axes.lines if len(line.get_xdata()) > 1]
    assert len(lines) == 15
    np.testing.assert_allclose(axes.lines[0].get_xdata(), 2 * axes.lines[0].get_ydata())


def test_an_axis_that_is_not_there_yet_has_one_empty_pair_of_axes(data):
    for title in ("{sweep:g}", {"l1": "penalty"}):
        panel = Lines(lambda d: d["swept"], "step", panel="sweep", title=title)
        figure, axes = drawn(data, panel)
        assert not axes
        assert [a.get_title() for a in figure.axes] == [""]


def test_small_multiples_that_share_an_axis_share_the_end_that_is_not_set(data):
    data["rising"] = data.y * xr.DataArray([1.0, 9.0], {"start": data.start}, ["start"])
    _, axes = drawn(data, Lines("rising", "step", panel="start", ylim=(0, None)))
    shown = max(
        np.nanmax(line.get_ydata()) for axis in axes for line in axis.lines if line.get_xdata().size
    )
    assert all(axis.get_ylim()[0] == 0 and axis.get_ylim()[1] >= shown for axis in axes)


def test_a_lower_limit_has_an_arrow_and_a_legend_says_what_bars_are(data):
    data["ratio"] = ("start", "end"), [[2.0, 1.0, 5.0], [3.0, 3.0, 3.0]]
    data["censored"] = "start", [0.0, 1.0]
    points = Points("ratio", "start", band=stated, spread="a range", lower_limit="censored")
    figure, (axes,) = drawn(data, points)
    labels = [text.get_text() for text in figure.subfigs[0].subfigs[0].legends[0].get_texts()]
    assert labels == ["a range", "arrow: at least this value"]
    (arrow,) = (
        line for line in axes.lines if "uparrow" in str(line.get_marker()) and len(line.get_xdata())
    )
    assert arrow.get_xydata().tolist() == [[1.0, 3.0]]


def test_marks_without_an_interval_have_no_bars_in_the_legend(data):
    data["exact"] = "start", [2.0, 3.0]
    _, (axes,) = drawn(data, Points("exact", "start", label="exact"))
    assert not axes.containers[0].has_yerr


def test_a_band_that_the_quantity_holds_is_drawn_as_it_is(data):
    data["ratio"] = ("start", "end"), [[2.0, 1.0, 5.0], [3.0, 3.0, 3.0]]
    _, (axes,) = drawn(data, Points("ratio", "start", band=stated))
    bars = axes.collections[0].get_segments()
    np.testing.assert_allclose([bar[:, 1] for bar in bars], [[1.0, 5.0], [3.0, 3.0]])


def test_a_label_that_is_not_there_yet_draws_nothing(data):
    figure, axes = drawn(data, Lines("y", "step", at={"start": "ones"}))
    assert not axes
    assert not figure.legends


def test_points_have_intervals_and_text_has_ticks(data):
    _, (axes,) = drawn(data, Points(lambda d: d.y.isel(step=-1), "start", colour="p", dodge=0.1))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["zero", "Gaussian"]
    places = axes.containers[0][0].get_xdata()
    np.testing.assert_allclose(places, [-0.1, 0.9])


def test_histogram_of_values_and_of_counts_agree(data):
    edges = np.linspace(0, 6, 7)
    counts, _ = np.histogram(data.y.values[np.isfinite(data.y.values)], edges)
    data["counts"] = ("bin", counts)
    panels = Histogram("y", edges=edges), Histogram("counts", edges=edges, counted="bin")
    _, (raw, counted) = drawn(data, *panels)
    for a, b in zip(raw.patches, counted.patches, strict=True):
        np.testing.assert_array_equal(a.get_data().values, b.get_data().values)
        assert a.get_data().values.sum() == pytest.approx(1.0)


def test_heat_maps_images_and_references(data):
    data["image"] = (("start", "member", "pixel"), np.arange(2 * 5 * 9.0).reshape(2, 5, 9))
    lines = Lines("y", "step", panel="start")
    _, (heat, *_) = drawn(data, HeatMap("y", "p", "step", signed=True, at={"start": "zero"}))
    assert heat.images[0].get_array().shape == (4, 3)
    strip = ImageStrip("image", rows="start", columns="member", pixels="pixel", most=3)
    _, (sheet,) = drawn(data, strip)
    assert sheet.images[0].get_array().shape == (2 * 4 - 1, 3 * 4 - 1)
    _, (first, second) = drawn(
        data, lines + Reference(x=2.0) + Reference(y={"zero": 1.0}, label="level")
    )
    heights = [line for line in first.lines if line.get_label() == "level"]
    assert heights[0].get_ydata() == [1.0, 1.0]
    assert not [line for line in second.lines if line.get_label() == "level"]


def test_a_strip_lies_between_two_levels(data):
    strip = Reference(y=lambda d: d.y.min(), to=3.0, label="vacuous")
    _, (axes,) = drawn(data, Lines("y", "step", at={"start": "zero"}) + strip)
    low, high = axes.patches[0].get_extents().transformed(axes.transData.inverted()).intervaly
    assert (low, high) == pytest.approx((float(data.y.min()), 3.0))


def test_bands_leave_out_what_is_not_there():
    values = xr.DataArray([[1.0, np.nan, 3.0], [np.nan] * 3], dims=("k", "member"))
    for band in (quartiles, extremes, interval):
        found = band(values, ["member"])
        assert float(found.middle[0]) == 2.0
        assert np.isnan(found.middle[1])


def test_geometric_means_lie_between_the_least_and_the_largest():
    values = xr.DataArray([[1.0, 100.0, np.nan], [np.nan] * 3], dims=("x", "member"))
    middle, low, high = geometric_extremes(values, ["member"])
    np.testing.assert_allclose(middle, [10.0, np.nan], rtol=1e-14)
    np.testing.assert_array_equal(low, [1.0, np.nan])
    np.testing.assert_array_equal(high, [100.0, np.nan])


def test_an_interval_over_all_axes_is_one_number():
    middle, low, high = interval(xr.DataArray([1.0, 3.0], dims="member"), ["member"])
    # Student's t at 97.5 % with one degree of freedom, times an error of one.
    np.testing.assert_allclose([low, middle, high], [2 - 12.7062, 2, 2 + 12.7062], rtol=1e-5)


def test_ticks_are_the_labels_of_an_axis():
    data = xr.Dataset({"y": ("m", [1.0, 2.0])}, {"m": [64, 4096]})
    figure = Plot("t", Lines("y", "m", xscale="log2", xticks="m"), "c.")(data).figure
    axis = figure.axes[0]
    assert axis.get_xticks().tolist() == [64, 4096]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["64", "4096"]
    plt.close(figure)


def test_points_are_shifted_by_a_share_of_their_spacing():
    y = xr.DataArray(np.zeros((2, 3)), {"q": [1.0, 2.0], "T": [20, 60, 200]})
    axes = plt.figure().subplots()
    Points("y", "T", colour="q", dodge=0.1).draw(axes, View(xr.Dataset({"y": y})))
    first, second = (line.get_xdata() for line in axes.lines if line.get_marker() in "os")
    np.testing.assert_allclose(np.asarray(second) - np.asarray(first), 4.0)
    plt.close("all")


def test_intervals_over_all_axes_are_numbers():
    middle, low, high = interval(xr.DataArray([1.0, 2.0, np.nan, 3.0], dims="member"), ["member"])
    assert (float(middle), middle.ndim) == (2.0, 0)
    assert float(high - middle) == pytest.approx(float(middle - low))
