"""A note of an experiment says what was run: no sentence of it is a result of its records.

Each sentence with a concluding word is listed in `sentences_of_notes.json` as a construction of
the program, a deduction from what is assumed, or a quotation of the paper; each number stands in
the module of the experiment. A result stands in an answer or a caption, under a condition.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from concluding_sentences import concluding_words
from literal_results import FORMULA, literal_results

from attlas.experiments.find import find_experiments

PAPERS = Path(__file__).parents[2] / "papers"
LISTED = json.loads((Path(__file__).parent / "sentences_of_notes.json").read_text(encoding="utf-8"))
KINDS = {"construction", "deduction", "quotation"}
NOTES = {each.name: each.note for each in find_experiments() if each.note}
CONNECTIVE = re.compile(r"\b(?:so|hence|therefore|thus|shows?)\b")
PLACES = {path.stem: path for path in PAPERS.glob("*/experiments/*.py")}
ELSEWHERE = {
    "convergence": ["7"],
    "digit_patches": ["16", "0.95"],
    "digits": ["32"],
    "direction": ["16"],
    "factored": ["2023"],
    "landscape": ["0.03"],
    "language_model": ["26"],
    "luong_reviews": ["32", "100"],
    "margin_ledger": ["2.41", "8.24"],
    "noisy_grid": ["95"],
    "norm_projection": ["95"],
    "patches": ["10", "48", "512", "1,000", "1,797"],
    "path": ["40"],
    "rademacher_length": ["1,1", "2,1"],
    "reviews": ["500", "2,000", "1,000", "10,000", "25,000"],
    "score_estimation": ["59"],
    "sparse_majority": ["2.41", "8.24"],
    "text": ["1,797", "2,500", "2024", "83.65", "82.23", "81.97"],
}
"""Numbers of data sets, of papers that a note quotes, and settings that a library holds."""


def concluding(note: str) -> list[str]:
    """The sentences of a note that conclude, or say why."""
    said = [sentence for _, sentence in concluding_words(note)]
    for sentence in re.split(r"(?<=[.?;])\s+(?=\S)", " ".join(note.split())):
        if CONNECTIVE.search(re.sub(FORMULA, "x", sentence)):
            said.append(sentence)
    return list(dict.fromkeys(said))


def constants(source: str) -> Iterator[float]:
    """The numbers that stand in a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield float(node.value)


def listed(name: str) -> list[str]:
    return [sentence for kind in LISTED.get(name, {}).values() for sentence in kind]


def test_which_sentences_of_a_note_conclude():
    note = "The kernel is that of width $m$. The gap is smaller, hence useful. It falls with $d$."
    assert concluding(note) == ["The gap is smaller, hence useful.", "It falls with $d$."]


@pytest.mark.parametrize("name", NOTES)
def test_each_sentence_that_concludes_is_no_result(name):
    assert [said for said in concluding(NOTES[name]) if said not in listed(name)] == []


def test_each_listed_sentence_is_in_its_note():
    assert {kind for kinds in LISTED.values() for kind in kinds} == KINDS
    assert [n for n in LISTED if set(listed(n)) - set(concluding(NOTES.get(n, "")))] == []


@pytest.mark.parametrize("name", NOTES)
def test_each_number_of_a_note_is_a_setting(name):
    held = {0.0, 1.0, 2.0, *constants(PLACES[name].read_text(encoding="utf-8"))}
    numbers = [text.rstrip(".,") for text in literal_results(NOTES[name])]
    unknown = {text for text in numbers if float(text.replace(",", "")) not in held}
    assert unknown - {*ELSEWHERE.get(name, ())} == set()
    assert {*ELSEWHERE.get(name, ())} - unknown == set()
