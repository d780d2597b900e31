"""What one must know to read a figure comes from the settings of its record and from its panels."""

from dataclasses import replace

import pytest
import xarray as xr
from jinja2 import Environment, meta
from matplotlib.figure import Figure

from attlas.core.errors import UserError
from attlas.experiments.experiment import CaptionedFigure
from attlas.experiments.find import find_experiments
from attlas.experiments.reading import UNRECORDED, reading_of, rendering


def figure(**texts):
    drawn = Figure()
    drawn.subplots().set(**texts)
    return CaptionedFigure("The gap", "It falls.", drawn, reading="Marks are means over 8 runs.")


def test_the_settings_of_the_record_and_the_marks_stand_together():
    data = xr.Dataset({"gap": ("n", [0.5, 0.4])}, {"n": [10, 20]}, {"steps": 4000})
    templates = {
        "": "Trained on {{ labels.n }} texts for {{ steps }} steps.",
        "The gap": "Shown: It has {{ count.n }} sizes.\nMarks: Full ones are means.",
        "Another": "It has {{ nothing }}.",
    }
    assert reading_of(templates, figure(), data, "doe2026") == (
        "Shown: It has 2 sizes.\n"
        "Marks: Full ones are means. Marks are means over 8 runs.\n"
        "Data: Trained on 10 and 20 texts for 4,000 steps."
    )


@pytest.mark.parametrize(
    ("label", "cited"),
    [
        ("bound (Theorem 4.1)", "Cited: Theorem 4.1 is of Trauger, Tewari (2023)."),
        ("Table 2, Lemma B.3", "Cited: Table 2 and Lemma B.3 are of Trauger, Tewari (2023)."),
        ("as the paper's text", "Cited: The paper is Trauger, Tewari (2023)."),
        ("bound by Deora et al. (Theorem 2)", ""),
        ("bound", ""),
    ],
)
def test_a_theorem_without_an_author_is_said_to_be_of_the_paper(label, cited):
    text = reading_of({}, figure(ylabel=label), None, "trauger2023sequence")
    assert text.removeprefix("Marks: Marks are means over 8 runs.").strip() == cited


def test_a_value_of_the_caption_stands_in_the_reading():
    captioned = replace(figure(), values={"heads": "many"})
    text = reading_of(
        {"The gap": "Marks: Dashed ones have {{ heads }} heads."}, captioned, None, ""
    )
    assert text.startswith("Marks: Dashed ones have many heads. Marks are")


def test_a_setting_that_the_record_lacks_breaks_no_page():
    text = "It has {{ nothing }} of {{ labels.n[-1] }}{% if nothing == 1 %} once{% endif %}."
    assert rendering(text, {}) == f"It has {UNRECORDED} of {UNRECORDED}."
    with pytest.raises(UserError, match="nothing"):
        rendering("It has {{ nothing + 1 }}.", {})


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
    assert rendering("{{ value }}", {"value": value}) == shown


@pytest.mark.parametrize("experiment", find_experiments(), ids=lambda found: found.name)
def test_templates_read_settings_that_every_record_of_today_has(experiment):
    known = {"count", "labels"} | experiment.grid.settings_values().keys()
    for title, template in experiment.readings.items():
        names = {*known, *variables(experiment.captions.get(title, ""))}
        assert variables(template) - names == set()


def variables(template):
    return meta.find_undeclared_variables(Environment().parse(template))
