"""A waterfall: each bar begins where the one above ends, and the last reaches the whole."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.experiments.panels.waterfall import waterfall


def bars(figure):
    found = [(p.get_x(), p.get_x() + p.get_width()) for p in figure.axes[0].patches]
    plt.close(figure)
    return np.array(found)


def test_bars_hang_together():
    figure = waterfall(["a", "b", "c"], [2.0, 1.0, 3.0])
    texts = [text.get_text().strip() for text in figure.axes[0].texts]
    assert texts == ["÷ 2", "attained", "÷ 3", "÷ 6"]
    assert bars(figure) == pytest.approx(np.array([[1, 2], [2, 6], [1, 6]]))


def test_what_the_steps_do_not_explain_is_a_bar_of_its_own():
    figure = waterfall(["a", "b"], [1.5, None], total=6.0)
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == ["a", "b", "between the steps", "the whole"]
    assert "no ratio" in [text.get_text().strip() for text in figure.axes[0].texts]
    assert bars(figure) == pytest.approx(np.array([[1, 1.5], [1.5, 6], [1, 6]]))


@pytest.mark.parametrize("factor", [1.0, 1.01, 4.0, 1e3, 1e200])
def test_ticks_are_few_and_within(factor):
    axes = waterfall(["a"], [factor]).axes[0]
    ticks = axes.xaxis.get_major_locator().tick_values(1, factor)
    assert 1 <= len(ticks) <= 6
    assert ticks[0] == 1
    assert axes.get_xlim()[1] > factor or factor > 1e100
