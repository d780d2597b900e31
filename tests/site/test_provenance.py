"""The provenance of a statement stands before its verdict, and no number adds over provenances."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import chain, combinations

import pytest
from tests.site.conftest import toy_claim, toy_report

from attlas.claims.claim import Expectation, Source, Status
from attlas.claims.report_text import report_text
from attlas.claims.verdict import Outcome, Provenance, by_provenance
from attlas.site.claim_entry import ClaimEntry
from attlas.site.claim_entry import Source as Place
from attlas.site.content import Atlas, PaperEntry
from attlas.site.evidence_level import standing
from attlas.site.pages import render_pages
from attlas.site.paper import paper_page, render_paper
from attlas.site.verdict_rows import HEADS

STATUS = {
    Provenance.PRINTED: (Status.AS_PRINTED, Source.FOUND),
    Provenance.RECALLED: (Status.RECONSTRUCTED, Source.RECALLED),
    Provenance.RECONSTRUCTED: (Status.RECONSTRUCTED, Source.DERIVED),
    Provenance.OWN: (Status.SHARPENED, Source.DERIVED),
}
SIZES = {
    (Provenance.PRINTED, "one"): (7, 0, 0),
    (Provenance.PRINTED, "two"): (33, 0, 0),
    (Provenance.RECALLED, "one"): (21, 0, 0),
    (Provenance.RECONSTRUCTED, "one"): (23, 11, 0),
    (Provenance.OWN, "one"): (18, 0, 6),
    (Provenance.OWN, "two"): (4, 0, 8),
}
"""Claims of each provenance and paper that held, have a counterexample, or were not run.

No sum over several provenances is a sum within one.
"""
EVERYTHING = (("one",), ("two",), ("one", "two"))
NUMBER = re.compile(r"(?<![\w.,-])\d+(?![\w.,-]*\d)")


class Visible(HTMLParser):
    """The texts that a reader sees, outside the cards of single claims and pictures."""

    def __init__(self):
        super().__init__()
        self.open: list[tuple[str, bool]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "br", "img", "input", "wbr", "rect", "link"):
            classes = (dict(attrs).get("class") or "").split()
            single = "claim" in classes or tag in ("script", "style", "svg", "math")
            self.open.append((tag, single))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if not any(single for _, single in self.open):
            self.texts.append(data)


def entry(provenance, paper, number, outcome):
    status, source = STATUS[provenance]
    slug = f"{provenance.name.lower()}-{'abc'[number % 3]}{'x' * (number // 3)}"
    expect = Expectation(outcome, "false") if outcome is Outcome.VIOLATED else Expectation()
    claim = toy_claim(slug, "Theorem A", paper=paper, status=status, source=source, expect=expect)
    report = None if outcome is None else toy_report(claim, outcome)
    return ClaimEntry(claim, report, (), Place("own.py", 1, ""))


@pytest.fixture(scope="module")
def atlas():
    papers = []
    for key in ("one", "two"):
        entries = []
        for (provenance, paper), sizes in SIZES.items():
            kinds = (Outcome.SUPPORTED, Outcome.VIOLATED, None)
            counted = chain.from_iterable([k] * n for k, n in zip(kinds, sizes, strict=True))
            if paper == key:
                entries += [entry(provenance, key, *pair) for pair in enumerate(counted)]
        papers.append(PaperEntry(key, None, tuple(entries), (), (), ()))
    return Atlas(papers=tuple(papers))


def sums(papers):
    """The numbers of claims in some evidence levels, of one provenance and of several."""
    alone, mixed = set(), set()
    for many in range(1, 5):
        for provenances in combinations(Provenance, many):
            for levels in chain.from_iterable(combinations(range(3), k) for k in (1, 2, 3)):
                parts = [
                    sum(SIZES.get((p, paper), (0, 0, 0))[k] for paper in papers for k in levels)
                    for p in provenances
                ]
                several = sum(map(bool, parts)) > 1
                (mixed if several else alone).add(sum(parts))
    return alone, mixed


def mixed_numbers(page, papers):
    reader = Visible()
    reader.feed(page)
    shown = {int(number) for text in reader.texts for number in NUMBER.findall(text)}
    return shown & sums(papers)[1]


def test_no_number_of_a_page_adds_claims_of_different_provenance(atlas):
    pages = dict(render_pages(atlas, "atlas.html", "atlas"))
    for name in ("", "paper-one.html", "paper-two.html"):
        for papers in EVERYTHING:
            assert mixed_numbers(pages[name], papers) == set(), (name, papers)
    for paper in atlas.papers:
        page = render_paper(paper_page(replace(atlas, papers=(paper,)), paper.key, {}))
        assert mixed_numbers(page, (paper.key,)) == set(), paper.key


def test_the_numbers_of_each_provenance_are_on_the_pages(atlas):
    pages = dict(render_pages(atlas, "atlas.html", "atlas"))
    table = pages[""].split('id="overview"')[1].split("</table>")[0]
    for (provenance, _), sizes in SIZES.items():
        assert f'<td>{provenance}</td><td class="num">{sum(sizes)}</td>' in table
    page = render_paper(paper_page(replace(atlas, papers=atlas.papers[1:]), "two", {}))
    assert "As printed: 33 held; own: 4 held, 8 open. Every" in page
    assert "<small>33 as printed, 4 own</small>" in page.split('<div class="lists">')[1]


def test_a_number_that_adds_over_provenances_is_noticed():
    alone = set[int]().union(*(sums(papers)[0] for papers in EVERYTHING))
    for papers in EVERYTHING:
        assert sums(papers)[1].isdisjoint(alone)
    for wrong in (33 + 4, 33 + 12):
        assert mixed_numbers(f"<p>Of the claims {wrong} held.</p>", ("two",)) == {wrong}


def test_the_provenance_is_before_the_verdict(atlas):
    pages = dict(render_pages(atlas, "atlas.html", "atlas"))
    cards = pages["paper-one.html"].split('<article class="card claim"')[1:]
    assert len(cards) == len(atlas.papers[0].claims)
    for card, shown in zip(cards, atlas.papers[0].claims, strict=True):
        badges = re.findall(r'<span class="badge [^>]*>(.*?)</span>\s', card)[0]
        assert badges.startswith(str(shown.provenance))
    heads = re.findall(
        r'<th scope="col"[^>]*>([^<]*)</th>', render_paper(paper_page(atlas, "x", {}))
    )
    assert heads.index("provenance") < heads.index("verdict")
    assert HEADS.index("provenance") < HEADS.index("verdict")
    report = replace(atlas.claims[0].report, provenance=Provenance.PRINTED)
    assert report_text(report).startswith("one/printed-a: as printed: SUPPORTED (")


def test_groups_are_in_order_and_empty_ones_are_omitted():
    groups = by_provenance([(Provenance.OWN, 1), (Provenance.PRINTED, 2), (Provenance.OWN, 3)])
    assert list(groups.items()) == [(Provenance.PRINTED, (2,)), (Provenance.OWN, (1, 3))]
    assert standing([]) == "no claims"
