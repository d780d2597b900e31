"""A statement that was not read in its paper is never called printed, and its form comes first."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.site.conftest import PAPER, toy_claim

import attlas.claims
import attlas.experiments
from attlas.claims.claim import OUR_WORDING, Claim, Source, Status, provenance_of, wording_sentence
from attlas.claims.verdict import Provenance
from attlas.site.atlas import gather
from attlas.site.links import Links
from attlas.site.pages import places_of, render_single
from attlas.site.paper import paper_page, render_paper
from attlas.site.search_index import search_index
from attlas.site.verdict_rows import HEADS
from attlas.verify.registry import find_claims, find_errata

PRINT = re.compile(r"(?<![-\w\"])[Pp]rint(ed)?\b|as stated")


@pytest.fixture(scope="module")
def unread():
    """The papers of which no statement was read."""
    claims = find_claims()
    return {c.paper for c in claims} - {
        c.paper for c in claims if provenance_of(c) is Provenance.PRINTED
    }


def texts(claim: Claim) -> Iterator[str]:
    yield from (claim.locator, claim.statement, claim.remark, claim.expect.reason)
    yield from (control.description for control in claim.controls)
    yield from (assumption.text for assumption in claim.assumptions)


@pytest.mark.parametrize(
    ("status", "source", "form"),
    [
        (Status.AS_PRINTED, Source.FOUND, Provenance.PRINTED),
        (Status.ERRATUM, Source.FOUND, Provenance.PRINTED),
        (Status.RECONSTRUCTED, Source.FOUND, Provenance.RECONSTRUCTED),
        (Status.RECONSTRUCTED, Source.DERIVED, Provenance.RECONSTRUCTED),
        (Status.RECONSTRUCTED, Source.RECALLED, Provenance.RECALLED),
        (Status.SUSPECTED_ERRATUM, Source.RECALLED, Provenance.RECALLED),
        (Status.SUSPECTED_ERRATUM, Source.DERIVED, Provenance.RECONSTRUCTED),
        (Status.SHARPENED, Source.RECALLED, Provenance.OWN),
        (Status.NEW, Source.RECALLED, Provenance.RECALLED),
        (Status.NEW, Source.DERIVED, Provenance.OWN),
    ],
)
def test_only_what_was_read_is_as_printed(status, source, form):
    assert provenance_of(toy_claim("a", "Lemma 1", status=status, source=source)) is form


def test_a_locator_says_printed_only_of_what_was_read(unread):
    for claim in find_claims():
        if claim.paper in unread or provenance_of(claim) in OUR_WORDING:
            assert not PRINT.search(claim.locator), claim.name


def test_texts_of_a_paper_that_was_not_read_do_not_quote_its_print(unread):
    assert {"gu2024exploring", "julistiono2024optimizing"} <= unread
    found = [
        (claim.name, text)
        for claim in find_claims()
        if claim.paper in unread
        for text in texts(claim)
    ]
    found += [(e.locator, e.text) for e in find_errata() if e.paper in unread]
    for package in (attlas.claims, attlas.experiments):
        for file in (f for name in unread for f in Path(package.__path__[0], name).glob("*.md")):
            prose = file.read_text(encoding="utf-8")
            found.append((file.name, re.sub(r"\{[{%].*?[%}]\}", "", prose, flags=re.DOTALL)))
    found = [(name, hit.group()) for name, text in found for hit in PRINT.finditer(text)]
    assert not found


def test_pages_say_the_form_before_the_verdict(store, claims, errata, experiments):
    claims = [replace(claim, source=Source.RECALLED) for claim in claims]
    atlas = gather(store, claims, errata, experiments)
    text = render_single(atlas)
    refuted = text.split('<ul class="refuted">')[1].split("</ul>")[0]
    assert "suspected, the statement is as recalled" in refuted
    card = text.split(f'id="paper-{PAPER}-erratum-1"')[1].split("</header>")[0]
    assert card.index("suspected") < card.index("refuted")
    assert "A verdict on a statement as recalled is about our wording of the paper." in text
    index = search_index(atlas, Links("", places_of(atlas), "atlas", "atlas.html"))
    assert "suspected: refuted" in index["names"]["status"]
    page = render_paper(paper_page(atlas, "One", {}))
    lists = page.split('<div class="lists">')[1].split("</div>")[0]
    assert lists.count("as recalled: ") == len(claims)


def test_pages_do_not_suspect_what_was_read(store, claims, errata, experiments):
    read = [replace(c, source=Source.FOUND, status=Status.ERRATUM) for c in claims]
    text = render_single(gather(store, read, errata, experiments))
    assert '<ul class="refuted">' in text
    assert "suspected, the statement" not in text
    assert '<span class="badge tone-quiet">suspected</span>' not in text
    assert "our wording of the paper" not in text
    assert wording_sentence(map(provenance_of, read)) == ""


def test_tables_say_the_provenance_before_the_verdict():
    assert HEADS.index("provenance") < HEADS.index("verdict")
