"""Errata in four lines: each grave one has them, and each line is of an erratum."""

import re
from pathlib import Path

import pytest

from attlas.claims.claim import ErratumClass
from attlas.display.statements import prose
from attlas.site.erratum_lines import FILE, LINES, read_lines
from attlas.verify.registry import find_errata

PAPERS = Path(__file__).parents[2] / "papers"
KEYS = sorted(file.parent.name for file in PAPERS.glob(f"*/{FILE}"))
GRAVE = (ErratumClass.REFUTED, ErratumClass.INVALID_PROOF)


def test_every_grave_erratum_has_four_lines():
    shown = {}
    for erratum in find_errata():
        if erratum.kind in GRAVE:
            paper, slug = erratum.claim.split("/", 1)
            shown.setdefault(paper, set()).add(slug)
    assert sorted(shown) == KEYS
    for key in KEYS:
        lines = read_lines([PAPERS / key])
        assert lines.keys() == shown[key]
        for slug, written in lines.items():
            assert tuple(written) == LINES, slug


@pytest.mark.parametrize("key", KEYS)
def test_lines_are_typeset(key):
    for slug, written in read_lines([PAPERS / key]).items():
        for text in written.values():
            assert "<code>" not in prose(text), slug
            # Nothing but mathematics is marked up: an asterisk would be shown.
            assert "*" not in re.sub(r"\$[^$]*\$", "", text), slug


@pytest.mark.parametrize("key", KEYS)
def test_what_an_erratum_leaves_standing_is_not_among_the_affected(key):
    """The page of a theorem shows the errata whose last line names it."""
    for slug, written in read_lines([PAPERS / key]).items():
        for sentence in re.split(r"(?<=\.) ", written["Affected"]):
            named = re.search(r"(?:Theorem|Lemma|Corollary|Proposition)s? [A-Z\d]", sentence)
            assert not (named and re.search(r"\bstands?\b", sentence)), slug
