"""No text prints an exponent without an interval: of a curve that bends there is none.

An interval says that a bend was tested: the texts of `power_law` are an exponent with its interval,
or the first and the last local slope with theirs.
"""

import re
from functools import cache
from pathlib import Path

import pytest
from tests.papers.test_captions_obey_records import EXPERIMENTS, caption, record

from attlas.experiments.panels import Plot

PAPERS = Path(__file__).parents[2] / "papers"
TEXTS = [
    file
    for name in ("article.md", "one_token.md", "findings.md", "questions.md", "cards.md")
    for file in sorted(PAPERS.glob(f"*/{name}"))
]
PLOTS = [
    pytest.param(name, place, id=f"{name}-{place}")
    for name, experiment in EXPERIMENTS.items()
    for place, figure in enumerate(experiment.figures)
    if isinstance(figure, Plot)
]
"""Plots whose caption has its values without drawing."""
_NEXT = re.compile(
    r"(?:\bslopes?\b[^.;:\[\]]{0,70}?"
    r"|\b(?:mean|the|an) exponents?(?: (?:of|in) \S+)?(?: is| are)? )"
    r"(?<![\w.=])([-−]?\d+\.\d+)(?P<interval> \[| \(no interval\)| \(two scales\)| ±| to [-−]?\d)?"
)
"""The first number with decimals after an exponent or a slope is named."""
_VALUE = re.compile(r'\{\{ value\("(\w+)", "(\w+)"\) \}\}')


def bare(text: str) -> list[str]:
    """Exponents and slopes of a text without an interval."""
    plain = re.sub(r"\$[^$]*\$", "x", " ".join(text.split()))
    return [match[1] for match in _NEXT.finditer(plain) if not match["interval"]]


@cache
def answer_values(name: str) -> dict[str, object]:
    if name not in EXPERIMENTS or not (answer := EXPERIMENTS[name].answer):
        return {}
    return dict(answer(record(name)))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("as a power of $x$ with the mean exponent -1.01, -2.00 at $p = 2$.", ["-1.01"]),
        ("the mean exponent of $\\|W\\|$ -1.01, -2.00 at $p = 2$.", ["-1.01"]),
        ("with the log-log slope in $n$ -1.63 [-1.86, -1.41] first to -1.05", []),
        ("its slope is 0.5. A loss of 0.25", ["0.5"]),
        ("for 3 of 3 exponents, with the median divergence 0.0011", []),
    ],
)
def test_which_exponents_are_bare(text, numbers):
    assert bare(text) == numbers


@pytest.mark.parametrize("name", [name for name in EXPERIMENTS if EXPERIMENTS[name].answer])
def test_an_exponent_of_an_answer_has_its_interval(name):
    assert bare(EXPERIMENTS[name].answered(record(name))) == []


@pytest.mark.parametrize(("name", "place"), PLOTS)
def test_an_exponent_of_a_caption_has_its_interval(name, place):
    assert bare(caption(name, place, record(name))[0]) == []


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_an_exponent_of_an_article_or_a_finding_has_its_interval(file):
    text = file.read_text(encoding="utf-8")
    if re.search(r"\b(?:slopes?|exponents?)\b", text):
        text = _VALUE.sub(lambda match: str(answer_values(match[1]).get(match[2], "")), text)
    assert bare(text) == []
