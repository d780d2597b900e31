"""What one must know to read a figure comes from the settings of its record and from its panels."""

import pytest
import xarray as xr
from matplotlib.figure import Figure

from attlas.core.errors import UserError
from attlas.experiments.experiment import CaptionedFigure
from attlas.experiments.reading import filled, reading_of


def figure(**texts):
    drawn = Figure()
    drawn.subplots().set(**texts)
    return CaptionedFigure("The gap", "It falls.", drawn, reading="Marks are means over 8 runs.")


def test_the_settings_of_the_record_and_the_marks_stand_together():
    data = xr.Dataset({"gap": ("n", [0.5, 0.4])}, {"n": [10, 20]}, {"steps": 4000})
    templates = {
        "": "Trained on {{ labels.n }} texts for {{ steps }} steps.",
        "The gap": "It has {{ count.n }} sizes.",
        "Another": "It has {{ nothing }}.",
    }
    assert reading_of(templates, figure(), data, "doe2026") == (
        "Trained on 10 and 20 texts for 4,000 steps. It has 2 sizes. Marks are means over 8 runs."
    )


def test_a_theorem_in_the_figure_is_said_to_be_of_the_paper():
    whose = "Theorems and tables without a name are those of Trauger, Tewari (2023)."
    key = "trauger2023sequence"
    assert reading_of({}, figure(ylabel="bound (Theorem 4.1)"), None, key).endswith(whose)
    assert not reading_of({}, figure(ylabel="bound"), None, key).endswith(whose)


def test_a_setting_that_the_record_lacks_is_refused():
    with pytest.raises(UserError, match="nothing"):
        filled("It has {{ nothing }}.", {})


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "True"),
        (0.05, "0.05"),
        (4_194_304, "4.2 million"),
        (10_000, "10,000"),
        ([1, 4, 16], "1, 4 and 16"),
        ((0.5,), "0.5"),
    ],
)
def test_numbers_and_lists_are_words(value, shown):
    assert filled("{{ value }}", {"value": value}) == shown
