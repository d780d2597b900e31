"""A remark of a claim holds no number that was measured: a verdict's ratio and records print those.

A figure of a remark or an erratum is a number of the claim's statement, of its module or of one
that this imports, or is compared with its formula here, quotes the paper, or belongs to an exact
example that `exact_examples.py` computes. No sentence says which part of a bound was reached, how a
number lies in what was drawn, or which wrong constant a check would notice.
"""

import ast
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
from exact_examples import OF_CLAIMS, OF_ERRATA
from literal_results import FORMULA, NO_RESULT, NUMBERED
from scipy.special import iv
from scipy.stats import norm

from attlas.claims.claim import Claim
from attlas.verify.registry import find_claims, find_errata
from julistiono2024optimizing.regularisation_paths import MULTIPLES, PAST

FIGURE = re.compile(
    r"(?<![\w.,-])\d+\.\d+(?:e-?\d+)?|\b\d+e-?\d+|\b\d[\d,]*(?= (?:%|per ?cent\b|times\b))"
    r"|(?<![\w.,^_-])\d[\d,]*(?= of (?:the )?\d)"
)
REFERENCE = re.compile(r"\([A-Z]?\d\.\d\)|\b(?:Table|Figure|Appendix|Case)s? \d[\d.]*|\b[A-Z]\.\d+")
SHARE = (
    r"(?:half|third|quarter|fifth|sixth|seventh|eighth|ninth|tenth|\w+eenth|\w+ieth|hundredth"
    r"|thousandth|fifths|tenths|quarters|thirds|% of [^.;:]*)"
)
OBSERVED = re.compile(
    rf"\b{SHARE}(?: (?:of|to) [^.;:]*)? (?:is|are) reached(?!,? (?:by|at|where)\b)"
    r"|\d %[^.;:]* (?:is|are) reached|\d of (?:it|the bound|the right side) (?:is|are) reached"
    r"|\breaches 0?\.\d|\b(?:ratios?|distance) (?:\w+ ){0,4}(?:met|found) is\b|\bratios found"
    r"|\bin the median\b|\bmedians? (?:over|slope)\b|\bpercentile\b|\bmeasured (?:from|between|to)"
    r"|\btimes the gap\b|\bcomes? to 0?\.\d|\bwould (?:not )?(?:be noticed|pass|do here)\b"
    r"|\bis not noticed\b|\bwhat is met\b",
    re.IGNORECASE,
)
"""Words with which remarks told what runs came to."""
CLAIMS = {claim.name: claim for claim in find_claims([]) if claim.remark}
ERRATA = {f"{each.paper}/{each.locator}, {each.kind.name}": each.text for each in find_errata()}
MODULES = sorted((Path(__file__).parents[2] / "papers").glob("*/*.py"))
KAPPA = 4 / (3 * math.sqrt(3))
CUBIC = (2 - math.sqrt(2)) / 3
"""The constant of Lemma 13 at p = 3."""


def _wide(d: int) -> float:
    return d * math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2)) / math.sqrt(math.pi)


def _second_order(x: float) -> float:
    return (math.expm1(x) - x) / x**2


FORMULAS = {
    "0.7364": math.sqrt((1 + (1 + KAPPA) ** 2 / 5) / 3),
    "1.0645": math.exp(1 / 16),
    "4.6": 2.30 / 0.5,
    "0.213": math.log(2) / 3.25,
    "1.052": math.expm1(0.1) / 0.1,
    "0.483": _second_order(-0.1),
    "0.518": _second_order(0.1),
    "0.0017": _second_order(0.01) - 0.5,
    "6.2e-6": 1.0034 * math.exp(-12),
    "6.3e-6": 1.0305 * math.exp(-12),
    "0.54": 4 * (norm.cdf(2) - norm.cdf(1)),
    "0.031": 10 * sum(iv(k - 1, 1) + iv(k + 1, 1) for k in range(5, 40)),
    "0.195": CUBIC,
    "0.042": 1 / 24,
    "9.7": 1.1 * 2 ** (2 / 1.1 - 2) / 0.1,
    "4.7": 24 * CUBIC,
    "5.3": 64 / 12,
    "1.92": math.log(119 / 11 / (1 / 0.81 - 1)) / 2,
    "0.29": math.sqrt(11 / 130),
    "0.826": 0.909**2,
    "82.6": 100 * 0.909**2,
    "0.436": math.sqrt(0.19),
    "0.32": 2 * norm.sf(1),
    "6.4": _wide(64),
    "41": _wide(64) ** 2,
    "2.414": 1 + math.sqrt(2),
    "8.243": math.sqrt(2) * (1 + math.sqrt(2)) ** 2,
    "8.24": math.sqrt(2) * (1 + math.sqrt(2)) ** 2,
    "1.086": math.sqrt(math.log(64 * 300 * 200) / math.log(64 * 300 * 20)),
    "0.720": (math.log1p(math.exp(-2)) + math.log1p(math.e)) / 2,
    "0.313": math.log1p(math.exp(-1)),
    "1.13": norm.cdf(math.sqrt(2)) + math.sqrt(2) * norm.pdf(math.sqrt(2)),
    "8.94": 4 * math.sqrt(10 / 2),
    "44.4": 64 * math.log(2),
    "0.999": 1 - 1e-3,
    "0.015": PAST / MULTIPLES[0],
}
"""Numbers that mathematics gives, to one unit of their last digit."""
PRINTED = {"6.1", "6.5", "0.909", "90.9"}
"""Assumptions and statistics of the papers."""
POWER = re.compile(r"(?:(\d[\d.]*)\s*\\cdot\s*)?10\s*\^(?:\{(-?[\d.]+)\}|(\d))")
QUOTED = {"liu2021analyzing/conditional-variance-wide": {r"3.13 \cdot 10^{-8}"}}
"""A power of ten of the paper."""
COMPUTED = {
    "deora2023optimization/corollary-2-gap": {"830"},
    "gu2024exploring/claim-e-6": {"9e-7"},
    "gu2024exploring/claim-e-7": {"5.9e-7"},
    "gu2024exploring/lemma-c-4": {"0.002", "9e6"},
    "liu2021analyzing/theorem-1-corrected": {"2e7"},
}
"""What vacuous bounds lose, which `test_what_vacuous_bounds_lose.py` computes."""


def outside(text: str) -> str:
    """A text without its formulas, code and references."""
    text = REFERENCE.sub(" x ", NUMBERED.sub(" x ", NO_RESULT.sub(" x ", text)))
    return re.sub(FORMULA, " x ", text)


def figures(text: str) -> set[str]:
    return {each.rstrip(".,") for each in FIGURE.findall(outside(text))}


def of_example(words: Mapping[str, Callable[[], list[str]]], name: str) -> set[str]:
    """The figures in the words that a computation gives."""
    return set[str]().union(*map(figures, words[name]())) if name in words else set()


def observed(text: str) -> list[str]:
    """The parts of sentences that say what was observed."""
    parts = re.split(r"(?<=[.?;])\s+(?=\S)", " ".join(text.split()))
    return [each for each in parts if OBSERVED.search(each)]


@cache
def constants(module: Path) -> frozenset[float]:
    """The numbers that stand in a module's code."""
    nodes = ast.walk(ast.parse(module.read_text(encoding="utf-8")))
    values = (node.value for node in nodes if isinstance(node, ast.Constant))
    return frozenset(float(each) for each in values if isinstance(each, int | float))


@cache
def powers_of_ten(module: Path) -> frozenset[float]:
    """The numbers of a module's code, and ten to the exponents that stand there above a ten."""
    powers = set(constants(module))
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)):
            continue
        if ast.unparse(node.left) in ("10", "10.0"):
            exponents = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?!\w)", ast.unparse(node.right))
            powers |= {10.0 ** float(each) for each in exponents if abs(float(each)) < 300}
    return frozenset(powers)


@cache
def modules_of(module: Path) -> frozenset[Path]:
    """A module and those of its paper that it imports, directly or not."""
    reached, left = set[Path](), [module]
    while left:
        reached.add(module := left.pop())
        paper = next(each for each in module.parents if each.parent.name == "papers")
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{each.name}" for each in node.names)]
                files = [paper.parent / f"{name.replace('.', '/')}.py" for name in names]
                left += [each for each in files if each.exists() and each not in reached]
    return frozenset(reached)


def prose(source: str) -> Iterator[str]:
    """The texts and the blocks of comments of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
    for block in re.findall(r"(?:^ *#.*\n)+", source, re.MULTILINE):
        yield re.sub(r"^ *# ?", "", block, flags=re.MULTILINE)


def unknown(claim: Claim) -> set[str]:
    """Figures of a remark that stand neither in the module nor in the statement."""
    statement = {float(each) for each in re.findall(r"\d*\.\d+|\d+", claim.statement)}
    held = set[float]().union(statement, *map(constants, modules_of(Path(claim.place[0]))))
    return {each for each in figures(claim.remark) if float(each.replace(",", "")) not in held}


def unknown_powers(claim: Claim) -> set[str]:
    """Powers of ten in a remark that neither code, statement nor a computed example holds."""
    text = " ".join(claim.remark.split())
    for words in OF_CLAIMS[claim.name]() if claim.name in OF_CLAIMS else []:
        text = text.replace(words, " ")

    def value(power: re.Match[str]) -> float:
        return float(power[1] or 1) * 10 ** float(power[2] or power[3])

    held = set[float]().union(*map(powers_of_ten, modules_of(Path(claim.place[0]))))
    held |= set(map(value, POWER.finditer(claim.statement)))
    return {
        each[0]
        for each in POWER.finditer(text)
        if not any(math.isclose(value(each), number) for number in held)
    }


@pytest.mark.parametrize("name", CLAIMS)
def test_no_power_of_ten_of_a_remark_is_typed_alone(name: str):
    assert unknown_powers(CLAIMS[name]) == QUOTED.get(name, set[str]())


def test_what_figures_are():
    text = "By (5.1) and $x = 0.3$ it is 0.57 of it, 8 % or 1,400 times, on 3 of 40, with 12 runs."
    assert figures(text) == {"0.57", "8", "1,400", "3"}


@pytest.mark.parametrize(
    "said",
    [
        "0.57 of it is reached in 288 runs.",
        "A fifth of the bound is reached.",
        "The largest ratio found is 1.39.",
        "It moves 500 times less in the median.",
        "The triangle comes to 0.78 of the bound.",
        "A wrong 4 would not be noticed here.",
    ],
)
def test_what_is_observed(said: str):
    assert observed(f"It is exact. {said}") == [said]


def test_a_bound_that_is_attained_is_no_observation():
    assert observed("The bound is reached by two tokens; half of it is reached at $U = 0$.") == []


@pytest.mark.parametrize("figure", FORMULAS)
def test_a_figure_is_its_formula(figure: str):
    digits, _, power = figure.partition("e")
    unit = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    assert abs(float(figure) - FORMULAS[figure]) < unit


def test_which_texts_of_a_module_are_read():
    source = '"""One."""\n# Two\n# lines.\nx = 1\n'
    assert [*prose(source)] == ["One.", "Two\nlines.\n"]


@pytest.mark.parametrize("name", CLAIMS)
def test_no_remark_says_what_was_measured(name: str):
    assert observed(CLAIMS[name].remark) == []
    left = unknown(CLAIMS[name]) - {*FORMULAS} - PRINTED
    assert left - of_example(OF_CLAIMS, name) == COMPUTED.get(name, set[str]())


@pytest.mark.parametrize("name", ERRATA)
def test_no_erratum_says_what_was_measured(name: str):
    assert observed(ERRATA[name]) == []
    left = figures(ERRATA[name]) - {*FORMULAS} - PRINTED
    assert left - of_example(OF_ERRATA, name.rpartition(", ")[0]) == set()


@pytest.mark.parametrize(
    "module", MODULES, ids=lambda module: f"{module.parent.name}-{module.stem}"
)
def test_no_comment_or_docstring_says_what_was_measured(module: Path):
    assert [
        each for text in prose(module.read_text(encoding="utf-8")) for each in observed(text)
    ] == []


def test_what_is_listed_is_said():
    said = set[str]().union(*(unknown(each) for each in CLAIMS.values()))
    errata = set[str]().union(*map(figures, ERRATA.values()))
    assert {*FORMULAS} | PRINTED <= said | errata
