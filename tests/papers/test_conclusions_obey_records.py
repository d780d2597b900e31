"""No sentence of an answer or a caption concludes outside a condition on its record."""

from pathlib import Path

import pytest
from concluding_sentences import concluding_words, concluding_words_of_code

from attlas.experiments.find import find_experiments

TEMPLATES = [
    pytest.param(template, id=f"{experiment.name}-{title}")
    for experiment in find_experiments()
    for title, template in {"answer": experiment.answer_text, **experiment.captions}.items()
]
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
