"""No sentence of an answer or a caption concludes outside a condition on its record."""

from pathlib import Path

import pytest
from concluding_sentences import CHANGES, concluding_words, concluding_words_of_code

from attlas.experiments.find import find_experiments

TEMPLATES = [
    pytest.param(template, id=f"{experiment.name}-{title}")
    for experiment in find_experiments()
    for title, template in {"answer": experiment.answer_text, **experiment.captions}.items()
]
NOTES = [pytest.param(each.note, id=each.name) for each in find_experiments() if each.note]
DEFINITIONS = (
    "in lower case",
    "attention whose score falls off linearly",
    "lets $W$ grow without bound",
    "cannot exceed the NTK margin",
    "so every step lowers the risk",
    "a ratio of samples only where errors fall as $1/n$",
)
"""Sentences of notes with a word of change that define, or follow from what is assumed."""
MODULES = sorted(Path(__file__).parents[2].glob("papers/*/experiments/*.py"))


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("Does it grow? It grows with $T$.", ["grows"]),
        ("Does it grow? {% if grows %}It grows{% else %}It does not grow{% endif %}.", []),
        ("{% if stand_in %}It grows.{% endif %}", ["grows"]),
        ("It grows {{ factor }} times.", ["grows"]),
        ("It grows in {{ count }} of {{ total }} runs; dots: smaller runs.", []),
        ("The least bound is {{ least }}, at $n = {{ n }}$.", []),
        ("{% for one in each %}{{ one.name }} is larger than the gap. {% endfor %}", ["larger"]),
        ("{{ share }} % of the rows have no such weight.", []),
        ("The bound is above the gap, {{ gap }}.", ["above"]),
    ],
)
def test_which_words_conclude(template, words):
    assert [word for word, _ in concluding_words(template)] == words


@pytest.mark.parametrize("template", TEMPLATES)
def test_what_concludes_stands_under_a_condition(template):
    assert list(concluding_words(template)) == []


def test_which_words_of_code_conclude():
    source = """
said = [f"{name} exceeds the bound" for name in names]
also = [f"{name} exceeds the bound" for name in names if above]
more = f"the gap falls {k} times" if falls else f"the gap rises {k} times"
"""
    assert [word for word, _ in concluding_words_of_code(source)] == ["exceeds"]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_what_a_module_concludes_stands_under_a_condition(module):
    assert list(concluding_words_of_code(module.read_text(encoding="utf-8"))) == []


def results_in(note):
    """Sentences of a note that say in which direction a quantity goes, and define nothing."""
    said = [text for word, text in concluding_words(note) if word.lower() in CHANGES.split()]
    return [text for text in said if not any(part in text for part in DEFINITIONS)]


def test_which_sentences_of_a_note_are_results():
    assert results_in("The kernel is that of width $m$. With $d$ fixed it falls.") != []
    assert results_in("The score is one whose size is $1/n$.") == []


@pytest.mark.parametrize("note", NOTES)
def test_a_note_has_no_result(note):
    assert results_in(note) == []


def test_each_definition_is_in_a_note():
    notes = " ".join(case.values[0] for case in NOTES)
    assert [text for text in DEFINITIONS if text not in notes] == []
