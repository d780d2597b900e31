"""Pages of theorems: every numbered theorem of a paper that states it has its page and its text."""

import re
from pathlib import Path

import pytest
from tests.site.conftest import toy_claim

from attlas.projects.bibliography import find_reference
from attlas.site.atlas import gather
from attlas.site.blocks import rendered
from attlas.site.content import Atlas
from attlas.site.links import Links
from attlas.site.pages import places_of, render_pages
from attlas.site.symbols import Hints, read_symbols
from attlas.site.theorem_page import Addresses, no_picture, theorem_pages
from attlas.site.theorem_texts import FILE, read_theorem_texts
from attlas.site.theorems import theorem_names, theorems_of
from attlas.verify.registry import find_claims

PAPERS = Path(__file__).parents[2] / "papers"
KEYS = sorted(folder.parent.name for folder in PAPERS.glob(f"*/{FILE}"))


@pytest.fixture(scope="module")
def atlas(tmp_path_factory) -> Atlas:
    from attlas.experiments.store import Store

    return gather(Store(tmp_path_factory.mktemp("empty") / "results"))


def test_the_five_papers_state_their_theorems():
    assert KEYS == [
        "deora2023optimization", "gu2024exploring", "julistiono2024optimizing",
        "liu2021analyzing", "trauger2023sequence",
    ]  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_every_theorem_that_a_claim_names_is_stated_and_no_other(key):
    named = {
        name for claim in find_claims() if claim.paper == key
        for name in theorem_names(claim.locator)
    }  # fmt: skip
    assert read_theorem_texts([PAPERS / key]).keys() == named


@pytest.mark.parametrize("key", KEYS)
def test_no_symbol_of_a_statement_stands_without_its_definition(key):
    symbols = read_symbols([PAPERS / key])
    for text in read_theorem_texts([PAPERS / key]).values():
        hints = Hints(symbols)
        page = hints(rendered(text.texts, 3, str, no_picture))
        assert not hints.undefined, text.name
        assert "untypeset" not in page, text.name
        assert "$" not in page, text.name


def test_experiments_and_pages_of_theorems_exist(atlas):
    places = places_of(atlas)
    for paper in atlas.papers:
        theorems = theorems_of(paper)
        names = {entry.experiment.name for entry in paper.experiments}
        for theorem in theorems:
            assert places[theorem.anchor] == f"{theorem.anchor}.html"
            assert theorem.text is None or set(theorem.text.experiments) <= names, theorem.name


@pytest.mark.thorough
def test_a_page_has_provenance_statement_verdict_claims_and_the_entry_for_citing(atlas):
    pages = dict(render_pages(atlas, "atlas.html", "atlas"))
    page = pages["theorem-trauger2023sequence-4-1.html"]
    sections = ("statement", "verdict", "errata", "claims", "experiments")
    headings = (f'id="{section}"' for section in sections)
    parts = ("We read the statement in the paper.", *headings, "@article{trauger2023sequence,")
    assert [page.index(part) for part in parts] == sorted(page.index(part) for part in parts)
    reference = find_reference("trauger2023sequence")
    assert f'href="{reference.url}"' in page
    names = re.findall(r'\sid="([^"]+)"', page)
    assert len(names) == len(set(names))


def test_a_theorem_without_a_text_is_stated_by_its_claims(tmp_path):
    from attlas.experiments.store import Store

    claim = toy_claim("one", "Theorem 1", paper="toy", place=(str(tmp_path / "toy.py"), 1))
    atlas = gather(Store(tmp_path / "results"), [claim], [], [])
    (page,) = theorem_pages(atlas.papers[0], theorems_of(atlas.papers[0]), lambda theorem: Links())
    assert (page.title, page.statement, page.headline) == ("Theorem 1", "", "Not run")
    pages = dict(render_pages(atlas, "atlas.html", "atlas"))
    assert "The claims below state it." in pages["theorem-toy-1.html"]


def test_a_target_that_the_atlas_lacks_leads_to_the_front_page():
    links = Links("a.html", {"claim-a-x": "b.html"}, "atlas", "atlas.html")
    addresses = Addresses(links, "a")
    assert addresses("claim:x") == "b.html#claim-a-x"
    assert addresses("claim:other/x") == "../atlas.html"
    assert addresses("page:explorer.html") == "explorer.html"
    assert Addresses(Links(), "a")("theorem:Theorem 4.1") == "#theorem-a-4-1"
