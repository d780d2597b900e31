"""Logarithmic axes of less than two decades have plain numbers, longer ones powers of ten."""

import pytest
from matplotlib.figure import Figure

from attlas.experiments.panels.ticks import readable_ticks


def texts(**settings):
    figure = Figure()
    axes = figure.subplots()
    axes.set(**settings)
    readable_ticks(axes)
    figure.draw_without_rendering()
    low, high = axes.get_ylim()
    shown = zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)
    minor = [label.get_text() for label in axes.get_yticklabels(minor=True)]
    return [label.get_text() for tick, label in shown if low <= tick <= high], "".join(minor)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"yscale": "log", "ylim": (2, 60)}, ["2", "5", "10", "20", "50"]),
        ({"yscale": "log", "ylim": (0.02, 0.3)}, ["0.02", "0.05", "0.1", "0.2"]),
        ({"yscale": "linear", "ylim": (0, 1)}, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_a_short_axis_has_plain_numbers(settings, expected):
    assert texts(**settings) == (expected, "")


def test_a_long_axis_has_powers_and_no_names_between():
    major, minor = texts(yscale="log", ylim=(1e-9, 1))
    assert all("10^" in text for text in major)
    assert not minor


def test_ticks_that_were_set_stay():
    set_by_hand = {"yscale": "log", "ylim": (1, 50), "yticks": [3.0], "yticklabels": ["three"]}
    assert texts(**set_by_hand)[0] == ["three"]
