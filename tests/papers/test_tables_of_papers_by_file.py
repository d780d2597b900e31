"""READMEs of the papers by file say what the published record of their checks says."""

import math
import re
from pathlib import Path

import pytest
from documentation_scripts import documentation_script
from scipy.optimize import brentq

ROOT = Path(__file__).parents[2]
FIGURE = re.compile(r"\d+e-?\d+|\d+\.\d+|\d+ (?:times|%)|\d{2,}")
NUMBERED = re.compile(r"(?:Theorem|Proposition|equation) \(?\d+(?:\.\d+)?")


def _halved(x: float, n: float) -> float:
    """How much smaller the sharpened mean-field bound is."""
    odds = math.exp(2 * x)
    sharp = math.sqrt(n * odds / (odds + n - 1)) * (1 + x) + x
    return (1 + 3 * x) * odds / sharp


def _spread() -> float:
    """The root of e^D = 1 + 2 D."""
    return float(brentq(lambda D: math.exp(D) - 1 - 2 * D, 1, 2))


def _constant(D: float) -> float:
    """The constant of the sharpened bound of one layer in the composite norm."""
    return math.sqrt(math.expm1(D) / D + math.expm1(2 * D) / (2 * D))


COMPUTED = {
    "castin2024smooth": {"40 times": _halved(2.5, 128)},
    "dong2021attention": {"1.256": _spread(), "2.56": _constant(_spread())},
}
CHOSEN = {
    "castin2024smooth": {"2.5", "128", "1.4"},
    "dong2021attention": {"12", "1e-60"},
    "gu2025attention_sink": {
        "1.59", "24", "1.29", "1.26", "64", "0.98", "0.72", "16", "0.457", "0.3", "0.074",
    },
    "zhai2023stabilizing": {"10", "83 times"},
}  # fmt: skip
"""Sizes of examples, constants of theorems, and numbers that `test_papers_by_file` computes."""
by_file = documentation_script("papers_by_file")


def page(folder: str) -> str:
    return (ROOT / "papers" / folder / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("folder", CHOSEN)
def test_a_table_is_rendered_from_the_record(folder):
    text = page(folder)
    assert text == by_file.renewed(text, folder, by_file.published()), (
        "run: python docs/papers_by_file.py"
    )
    named = {row["name"] for row in by_file.ROW.finditer(text)}
    below = {name for name in by_file.published() if folder.startswith(name.split("/")[0])}
    assert {name.split("/")[1] for name in below} == named
    assert text.count("\n| ") == len(named) + 1


def test_the_record_has_each_claim_and_no_defect():
    texts = [
        file.read_text(encoding="utf-8")
        for folder in CHOSEN
        for file in (ROOT / "papers" / folder).glob("claims_*.py")
    ]
    decorated = sum(len(re.findall(r"^@at\.", text, re.MULTILINE)) for text in texts)
    assert len(by_file.published()) == decorated
    assert [name for name, entry in by_file.published().items() if entry["defects"]] == []


def test_which_numbers_are_figures():
    said = "Theorem 3.1 fails by 336 times, 5 % or 0.02, 3 times at 1e-60."
    assert FIGURE.findall(NUMBERED.sub("", said)) == [
        "336 times",
        "5 %",
        "0.02",
        "3 times",
        "1e-60",
    ]


@pytest.mark.parametrize("folder", CHOSEN)
def test_each_number_of_a_finding_is_computed_or_chosen(folder):
    findings = re.sub(r"`[^`]*`", "", page(folder).partition("Findings:")[2])
    figures = set(FIGURE.findall(NUMBERED.sub("", findings)))
    assert figures == {*COMPUTED.get(folder, ()), *CHOSEN[folder]}


@pytest.mark.parametrize(("figure", "value"), [i for of in COMPUTED.values() for i in of.items()])
def test_a_number_is_that_of_its_formula(figure, value):
    printed = figure.split()[0]
    assert abs(float(printed) - value) < 10.0 ** -len(printed.partition(".")[2])
