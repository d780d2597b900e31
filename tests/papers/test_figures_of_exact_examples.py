"""Figures of exact examples in remarks, reasons and errata are those that a computation gives."""

import re

import pytest
from exact_examples import OF_CLAIMS, OF_ERRATA
from literal_results import FORMULA

from attlas.verify.registry import find_claims, find_errata

CLAIMS = {each.name: each for each in find_claims([])}
REASONS = {name: each.expect.reason for name, each in CLAIMS.items() if each.expect.reason}
ERRATA = {f"{each.paper}/{each.locator}": each.text for each in find_errata()}
FIGURE = re.compile(
    r"(?<!= )(?<![\d.])(?:\d*\.\d+|(?<![_{])\d{2,})|\^\{-?\d[^}]*\}|n/\d+"
    r"|\b(?:is|leaves|against|rank|has length) \$?\d(?![\d/.])"
)
"""Decimals, numbers of several digits and exponents that no letter equals, and what a side is."""


REFERENCE = re.compile(r"\([A-Z]\d\.\d\)|\$C = 10.01\$, 100, 1000|recalled \$[^$]*\$")
"""Numbers of assumptions, and constants that an example tries or that the paper has."""


IN_FORMULA = re.compile(
    r"\d[\d.]*\s*\\cdot\s*10\^\{?-?\d+|10\s*\^\{?-?[\d.]+|(?<!= )(?<![\d.])\d*\.\d+"
)
"""Powers of ten, and decimals that no letter equals, of a formula."""
QUOTED = {
    "liu2021analyzing/Appendix A.1, numerical check of (A3)": {r"3.13 \cdot 10^{-8"},
    "liu2021analyzing/Theorem 3": {"10^{-5"},
    "trauger2023sequence/Sections 1, 2.5 and 3.4, comparison with Edelman et al. 2022": {"10^6"},
    "trauger2023sequence/Section 2.4 (Dudley) and Theorem 4.1": {"2.414", "8.243"},
}
"""A number of the paper, settings, and constants whose formula the test of remarks has."""


def one_line(text: str) -> str:
    return " ".join(text.split())


def left_over(reason: str, said: list[str]) -> list[str]:
    """Figures of a reason outside what a computation says."""
    reason = REFERENCE.sub(" ", reason)
    for words in said:
        reason = reason.replace(words, " ")
    return FIGURE.findall(reason)


def test_which_figures_of_a_reason_are_left_over():
    reason = "the ratio is 1.23, the bound is 2 at $S = 4$, and it grows like $S^4$"
    assert left_over(reason, ["ratio is 1.23"]) == ["is 2"]
    assert left_over(reason, ["ratio is 1.24"]) == ["1.23", "is 2"]


@pytest.mark.parametrize("name", OF_CLAIMS)
def test_the_words_of_a_claim_are_those_of_its_example(name):
    claim = CLAIMS[name]
    text = one_line(f"{claim.expect.reason} {claim.remark}")
    assert [words for words in OF_CLAIMS[name]() if words not in text] == []


@pytest.mark.parametrize("name", OF_ERRATA)
def test_the_words_of_an_erratum_are_those_of_its_example(name):
    text = one_line(ERRATA[name])
    assert [words for words in OF_ERRATA[name]() if words not in text] == []


@pytest.mark.parametrize("name", REASONS)
def test_no_figure_of_a_reason_is_typed_alone(name):
    said = OF_CLAIMS[name]() if name in OF_CLAIMS else []
    assert left_over(one_line(REASONS[name]), said) == []


@pytest.mark.parametrize("name", ERRATA)
def test_no_figure_in_a_formula_of_an_erratum_is_typed_alone(name):
    text = one_line(ERRATA[name])
    for words in OF_ERRATA[name]() if name in OF_ERRATA else []:
        text = text.replace(words, " ")
    said = {each for formula in re.findall(FORMULA, text) for each in IN_FORMULA.findall(formula)}
    assert said == QUOTED.get(name, set())
