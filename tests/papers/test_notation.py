"""A letter that several statements of a paper use is explained in its `notation.md`."""

import re
from collections import Counter
from pathlib import Path

import pytest

from attlas.verify.registry import find_claims

PAPERS = sorted((Path(__file__).parents[2] / "papers").glob("*/notation.md"))
MANY = 3
"""Statements that use a letter; what fewer use, their remarks explain."""
COMMON = set("eioEIOP") | {r"\pi", r"\Theta", r"\Omega"}
"""Euler's number, an index, orders of magnitude, expectation, the identity and probability."""
_WORDS = re.compile(r"\\(?:text|mathrm|operatorname|begin|end)\s*\{[^}]*\}|\{\\rm [^}]*\}|_F\b")
_GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta kappa lambda mu nu xi pi rho sigma "
    "tau phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Phi Psi Omega ell"
)
_LETTER = re.compile(rf"\\(?:{'|'.join(_GREEK.split())})(?![A-Za-z])|\\[A-Za-z]+|[A-Za-z]")


def letters(latex: str) -> set[str]:
    """Latin and Greek letters, without accents and fonts."""
    found = _LETTER.findall(_WORDS.sub(" ", latex))
    return {each for each in found if len(each) == 1 or each[1:] in _GREEK.split()}


def test_letters_are_read_without_accents_and_words():
    assert letters(r"\hat R_{\rm top} \le \|W\|_F + \text{a word} + \alpha_i") == set("RWi") | {
        r"\alpha"
    }


@pytest.mark.parametrize("file", PAPERS, ids=lambda file: file.parent.name)
def test_letters_of_the_statements_are_explained(file):
    statements = [claim.statement for claim in find_claims() if claim.paper == file.parent.name]
    uses = Counter(letter for statement in statements for letter in letters(statement))
    table = file.read_text(encoding="utf-8")
    explained = letters(" ".join(re.findall(r"\$([^$]*)\$", table)))
    explained |= set(re.findall(r"`([A-Za-z])`", table))
    frequent = {letter for letter, count in uses.items() if count >= MANY}
    assert sorted(frequent - explained - COMMON) == []
