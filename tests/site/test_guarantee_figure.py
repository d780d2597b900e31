"""The figure of certified means: every bar in its row, and the limit that was asked for in view."""

from attlas.site.guarantee_figure import MOST_ROWS, GuaranteeBar, guarantee_figure


def test_bars_stand_from_above_and_the_limit_asked_for_is_in_view():
    bars = [GuaranteeBar("first", 1.0, 2.0), GuaranteeBar("second", 3.0, 2.5)]
    (axes,) = guarantee_figure(bars, "bits", asked=8.0, asked_text="8 bits").axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["second", "first"]
    limits = {line.get_ydata()[0]: line.get_xdata()[0] for line in axes.lines[2::3]}
    assert limits == {0: 2.5, 1: 2.0}
    assert axes.get_xlim()[0] == 0
    assert axes.get_xlim()[1] > 8


def test_more_rows_than_can_be_read_are_left_out():
    bars = [GuaranteeBar(str(k), 0.1, 0.2) for k in range(MOST_ROWS + 5)]
    (axes,) = guarantee_figure(bars, "%", asked=None, asked_text=None).axes
    assert len(axes.get_yticks()) == MOST_ROWS
