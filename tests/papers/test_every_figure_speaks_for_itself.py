"""Every figure of a published record is understood by a stranger who sees its caption alone."""

import re

import matplotlib.pyplot as plt
import pytest
from figure_looks import look_faults
from figure_reading import reading_faults, typed_numbers
from figure_texts import faults
from matplotlib.figure import Figure
from perturbed_records import published, recorded

from attlas.experiments.experiment import CaptionedFigure

EXPERIMENTS = recorded()
FIGURES = [
    pytest.param(name, k, id=f"{name}-{k}")
    for name, experiment in EXPERIMENTS.items()
    for k in range(len(experiment.figures))
]


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "place"), FIGURES)
def test_a_figure_and_its_caption_need_nothing_else(name, place):
    experiment = EXPERIMENTS[name]
    data = published(experiment)
    assert data is not None
    captioned = experiment.captioned(experiment.figures[place], data.copy())
    try:
        assert faults(captioned, experiment.captions.get(captioned.title, "")) == []
        assert reading_faults(captioned) == []
        assert look_faults(captioned) == []
    finally:
        plt.close(captioned.figure)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_no_number_of_a_reading_is_typed(name):
    readings = EXPERIMENTS[name].readings.values()
    assert [number for text in readings for number in typed_numbers(text)] == []


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_a_word_of_verdicts_has_no_other_sense_beside_a_figure(name):
    """Pages explain these words as those of claims: a control is a wrong version of a statement."""
    texts = EXPERIMENTS[name].readings.values()
    assert [text for text in texts if re.search(r"\b(?:controls?|strengths?)\b", text)] == []


def test_typed_numbers_are_seen():
    assert [*typed_numbers("With 95 % of $2^{10}$ weights below 0.001, {{ 0.5 * n }} steps.")] == [
        "95 %",
        "0.001",
    ]
    assert [*typed_numbers("Table 12 of Doe (2023) and Theorem 4.1, one of 3.")] == []


def drawn(**texts):
    """A figure of two lines with the texts of one who knows what they mean."""
    figure = Figure()
    axes = figure.subplots()
    for label, height in (("sharp bound", 1.0), ("2,1 sharp", 1.0), ("line at 9", 9.0)):
        axes.plot([0, 1], [0, height], label=label)
    axes.plot([0, 1], [20, 30], "--", label="rate of NTK")
    axes.set(ylim=(0, 10), **texts)
    figure.legend(loc="outside lower center")
    return figure


def test_what_a_stranger_misses_is_seen():
    figure = drawn(title=r"$\zeta = 0.1$", xlabel="$n$", ylabel="gap")
    asked = "Is the gap of masked_words small? It needs $10^{3.7}$ samples, or 2e9 with H = 4."
    assert faults(CaptionedFigure("A title", asked, figure), asked) == [
        "broken power of ten: " + asked,
        "caption asks",
        "caption begins without the record: Is the gap of masked_words small?",
        "line without a meaning: line at 9",
        "norm as in the code: 2,1 sharp",
        "number as in the code: " + asked,
        "of what?: gap",
        "one line hides another: 2,1 sharp and sharp bound",
        "outside the frame: rate of NTK",
        "undefined H",
        "undefined NTK",
        "undefined n",
        "undefined zeta",
        "underscore: " + asked,
    ]


@pytest.mark.parametrize(
    "text",
    [
        "share $\\zeta$ of relevant tokens",
        "$\\zeta$, share of relevant tokens",
        "sparsity, $\\zeta$",
        "the share $\\zeta = 0.1$",
    ],
)
def test_a_symbol_beside_its_noun_is_defined(text):
    figure = Figure()
    figure.subplots().set(title=r"$\zeta$", xlabel=text)
    assert faults(CaptionedFigure("A title", "It falls.", figure)) == []


def test_a_caption_of_many_words_is_seen():
    captioned = CaptionedFigure("A title", 41 * "It " + "falls.", Figure())
    assert faults(captioned) == ["no caption of at most 40 words"]


def test_what_troubles_the_eye_is_seen():
    figure = Figure()
    axes = figure.subplots()
    for colour, label in (("#3366aa", "near"), ("#3366bb", "nearer"), ("#d55e00", "far")):
        axes.plot([0, 1], [0, 1], color=colour, label=label)
    reading = "Up, left: The loss.\nMarks: Lines are medians over 8 runs; others: means over 2."
    captioned = CaptionedFigure("A title", "It falls (above).", figure, reading=reading)
    assert [fault.partition(":")[0] for fault in look_faults(captioned)] == [
        "colours 0.027 apart (dark)",
        "colours 0.027 apart (light)",
        "two summaries in one figure",
        "words for columns in a figure of one",
        "words for rows in a figure of one",
    ]


def test_what_a_reading_misses_is_seen():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    for axes in (left, right):
        axes.plot([0, 1], [0, 1], label="bound")
        axes.set_xlabel("step")
    left.plot([0, 1], [1, 2], label="rate of Theorem 2")
    left.imshow([[1.0, float("nan")], [1.0, 1.0]])
    left.set(title="few", ylabel="loss")
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center")
    captioned = CaptionedFigure("A title", "It falls.", figure, reading="Marks are means")
    assert reading_faults(captioned) == [
        "a theorem in place of words: rate of Theorem 2",
        "absent from a panel: rate of Theorem 2",
        "axis y without a label: ",
        "blank cell: few",
        "item that ends without a full stop: Marks are means",
        "item without a label: Marks are means",
        "reading that does not say what is shown and on which axes",
        "reading without a model",
        "reading without a number of runs",
        "reading without data",
        "whose theorem?: rate of Theorem 2",
    ]
