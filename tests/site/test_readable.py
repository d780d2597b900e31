"""No text of a figure is smaller than ten pixels where a page shows it."""

import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from attlas.site.figures import pixels_per_point
from attlas.site.readable import LEAST, enlarge_small_text


@pytest.mark.parametrize("width", [3, 8, 14])
def test_labels_numbers_and_legends_have_ten_pixels(width):
    figure = Figure(figsize=(width, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot([1, 1000], label="a")
    axes.set(xscale="log", title="title", xlabel="steps")
    axes.tick_params(labelsize=5)
    figure.legend(fontsize=6)
    enlarge_small_text(figure, pixels_per_point(figure))
    figure.draw_without_rendering()
    shown = [t for t in figure.findobj(Text) if isinstance(t, Text) and t.get_text()]
    assert len(shown) > 5
    assert min(t.get_fontsize() for t in shown) * pixels_per_point(figure) >= LEAST - 1e-9


def test_larger_text_stays():
    figure = Figure(figsize=(3, 3))
    label = figure.subplots().set_xlabel("steps", fontsize=17)
    enlarge_small_text(figure, pixels_per_point(figure))
    assert label.get_fontsize() == 17
