"""What names and places mean for a page or a list."""

import pytest

from attlas.core.errors import UserError
from attlas.site.selection import select

FILE = """
import attlas as at
from attlas.claims.claim import Erratum, ErratumClass

@at.inequality(
    sample=lambda rng, count: {"x": rng.uniform(size=count)},
    controls=[at.Control("half", factor=0.5)],
)
def squares(x, *, factor=1.0):
    "The square of a number below 1 is smaller."
    return x**2, factor * x

SLIP = Erratum("own_paper", "Lemma 1", ErratumClass.TYPO, "A digit.")
"""


def test_a_place_gives_its_claims_and_errata_and_a_paper_all_that_is_its(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)  # puts the path of imports back
    file = tmp_path / "own_paper.py"
    file.write_text(FILE)
    own = select([str(file)])
    assert [claim.name for claim in own.claims] == ["own_paper/squares"]
    assert ([e.locator for e in own.errata], own.experiments) == (["Lemma 1"], ())
    both = select([f"{file}:squares", "julistiono2024optimizing"])
    assert both.claims[0] == own.claims[0]
    assert {each.paper for each in both.experiments} == {"julistiono2024optimizing"}
    assert {each.paper for each in both.errata} == {"julistiono2024optimizing"}


def test_an_unknown_name_is_one_line():
    with pytest.raises(UserError, match="there is no claim or paper 'lemma-1x2'"):
        select(["lemma-1x2"])
