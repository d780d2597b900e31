"""Errata in four lines: each grave one has them, and each line is of an erratum."""

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
