"""What a stranger finds beside a figure: its question, full names of its axes, and its terms."""

import re
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from attlas.site.figure_terms import (
    KINDS,
    MOST_TERMS,
    TERMS,
    listed_items,
    question_of,
    texts_of,
)

PAPERS = Path(__file__).parents[2] / "papers"

READING = "Shown: Whether a bound holds.\nUp, left: The loss.\nData: Random words."
USES = (
    "attention SVM, tangent kernel, mirror descent, margin, each score, Rademacher complexity, "
    "bound by norms, parameter counting, log of the length, vacuous, "
    "stability, PAC-Bayes, [CLS], ramp loss, Frobenius and nuclear norm, logits times 5"
)


def test_the_question_stands_apart_from_the_list():
    assert question_of(READING) == "It shows whether a bound holds."
    assert question_of("Shown: ReLU networks.") == "It shows ReLU networks."
    assert question_of("") == ""
    names = [item.name for item in listed_items(READING, [])]
    assert names == ["Vertical axis, left", "Data and model"]


def test_a_figure_without_a_reading_has_no_terms():
    assert listed_items("", ["a bound by norms is vacuous"]) == []


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_term_is_found_and_is_one_clause(term):
    assert re.search(term.pattern, USES)
    assert not term.text.endswith(".")
    assert len(re.sub(r"\$[^$]*\$", "formula", term.text).split()) <= 25


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_of_bound_is_explained_by_one_sentence_wherever_it_is_named(kind):
    places = [("", [f"bound by norms, {kind} (Theorem 4.1)"]), (f'\nMarks: "{kind}" bounds.', [])]
    lists = [listed_items(READING + reading, texts) for reading, texts in places]
    (explained,) = {item.text for items in lists for item in items if "Kinds" in item.name}
    assert explained == f"{kind[0].upper()}{kind[1:]}: {KINDS[kind][1]}."


def test_all_kinds_of_a_figure_are_explained_in_one_item():
    items = listed_items(READING, ["Theorem 4.1, corrected", "Theorem 4.1, sharp", "vacuous"])
    assert [item.name for item in items[2:]] == ["Kinds of bounds", "Vacuous"]
    assert "corrected: an error" in items[2].text.lower()
    assert "sharp: with" in items[2].text


def test_no_figure_has_words_of_its_own_for_a_kind_of_bound():
    own = re.compile(r"(?:least|smallest)\s+(?:constants\s+)?(?:that\s+)?we\s+(?:can\s+)?prove")
    texts = [path for path in PAPERS.glob("*/experiments/*.md") if own.search(path.read_text())]
    assert texts == []


def test_at_most_a_few_terms_are_explained():
    texts = ["bounds by norms, by parameter counting, by the log of the length, by PAC-Bayes"]
    texts += ["they are vacuous on the ramp loss, by stability"]
    items = listed_items(READING, texts)
    assert len(items) == 2 + MOST_TERMS


def test_what_the_reading_explains_is_not_explained_again():
    reading = READING + '\nMarks: "PAC-Bayes" bounds the error of random weights.'
    names = [item.name for item in listed_items(reading, ["PAC-Bayes"])]
    assert "PAC-Bayes" not in names


def test_the_score_of_a_word_is_no_score_of_a_density():
    items = listed_items(READING, ["bound from the complexity of one score"])
    assert [item.name for item in items] == ["Vertical axis, left", "Data and model"]


def test_all_texts_of_a_figure_are_read():
    figure = Figure()
    figure.subplots().set(title="a title", xlabel="a step")
    assert {"a title", "a step"} <= set(texts_of(figure))
