"""Pages that are written by hand hold no measured number: records and benchmarks print those."""

import re
from pathlib import Path

import pytest
from literal_results import FORMULA, NO_RESULT, NUMBERED

from attlas.verify.registry import find_claims

ROOT = Path(__file__).parents[1]
ELSEWHERE = {"benchmarks", "errata", "open_questions"}
"""Pages of `docs` that are rendered, or that the test of proofs reads."""
BY_FILE = {"castin2024smooth", "dong2021attention", "gu2025attention_sink", "zhai2023stabilizing"}
"""Folders whose READMEs `tests/papers/test_tables_of_papers_by_file.py` reads."""
REFERENCE = re.compile(r"\([A-Z]\d\.\d\)")
PAGES = [
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.stem not in ELSEWHERE),
    *sorted(ROOT.glob("papers/*/notation.md")),
    ROOT / "papers" / "README.md",
    *(page for page in sorted(ROOT.glob("papers/*/README.md")) if page.parent.name not in BY_FILE),
    ROOT / "src" / "attlas" / "site" / "glossary.md",
]
FIGURE = re.compile(r"\d*\.\d+|\d+ %|\d+ times|\d+e-?\d+")
SETTINGS = {
    "docs/certify": {"95 %", "5 %"},
    "docs/start": {"3.11", "0.9"},
    "papers/julistiono2024optimizing/README": {"0.001"},
}
"""Levels, versions, and the step of a counterexample."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix(""))


def figures(text: str) -> set[str]:
    """Decimals, percentages and factors of a page, outside code and formulas."""
    text = REFERENCE.sub("", NUMBERED.sub("", NO_RESULT.sub(" x ", text)))
    return set(FIGURE.findall(re.sub(FORMULA, " ", text)))


def test_which_numbers_are_figures():
    assert figures("The gap falls by 8 %, 3 times as fast, to 0.02 at `p = 1.5` or $0.3$.") == {
        "8 %", "3 times", "0.02",
    }  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_each_number_is_a_setting(page):
    said = figures(page.read_text(encoding="utf-8"))
    assert said == SETTINGS.get(name_of(page), set())


@pytest.mark.thorough
def test_the_step_of_the_counterexample_is_that_of_its_claim():
    (claim,) = find_claims(["julistiono2024optimizing/lemma-24-gap"])
    assert r"\eta = 0.001" in claim.statement
