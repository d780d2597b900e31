"""Articles on papers: symbols are defined, targets exist, and numbers are computed."""

import re
from dataclasses import replace
from inspect import getsource
from pathlib import Path

import pytest
from tests.site.test_atlas_in_browser import answered

from attlas.claims.verdict import Outcome
from attlas.experiments.panels import Plot
from attlas.experiments.store import Store
from attlas.site.article import FILE, SHARED, article_of, sections, shared_article
from attlas.site.atlas import gather
from attlas.site.content import Atlas, Drawing, PaperEntry
from attlas.site.links import Links, anchor
from attlas.site.live_figures import LIVE
from attlas.site.pages import places_of, render_pages
from attlas.site.theorem_page import Addresses
from attlas.site.theorems import theorems_of

PAPERS = Path(__file__).parents[2] / "papers"
KEYS = sorted(file.parent.name for file in PAPERS.glob(f"*/{FILE}"))
PAGES = ("page:explorer.html", "page:one-token.html")
NUMBERED = re.compile(r"(?:Theorem|Corollary|Lemma|Assumption)s? [A-Z\d.]+")
TARGET = re.compile(r"!?\[[^\[\]]*\]\[([^\[\]\n]+)\]")


@pytest.fixture(scope="module")
def atlas(tmp_path_factory) -> Atlas:
    return gather(Store(tmp_path_factory.mktemp("empty") / "results"))


def the_paper(atlas: Atlas, key: str) -> PaperEntry:
    return answered(next(paper for paper in atlas.papers if paper.key == key))


def written(paper: PaperEntry, links: Links):
    return article_of(paper, {theorem.name: theorem for theorem in theorems_of(paper)}, links)


@pytest.mark.parametrize("key", KEYS)
def test_no_symbol_of_an_article_stands_without_its_definition(atlas, key):
    article = written(the_paper(atlas, key), Links())
    assert article.undefined == ()
    for wrong in ("untypeset", "$", "**", "{{", "]["):
        assert wrong not in re.sub(r"<math.*?</math>", "", article.text, flags=re.S), wrong


@pytest.mark.parametrize("key", KEYS)
def test_links_and_pictures_of_an_article_exist(atlas, key):
    paper, places = the_paper(atlas, key), places_of(atlas)
    theorems = {theorem.name for theorem in theorems_of(paper)}
    experiments = {entry.experiment.name: entry.experiment for entry in paper.experiments}
    text = (PAPERS / key / FILE).read_text(encoding="utf-8")
    for target in TARGET.findall(text):
        kind, _, name = target.partition(":")
        if kind == "theorem":
            assert name.strip() in theorems, target
        elif kind == "claim":
            whole = name if "/" in name else f"{key}/{name}"
            assert any(entry.claim.name == whole for entry in atlas.claims), target
        elif kind in experiments:
            assert any(has_title(draw, name.strip()) for draw in experiments[kind].figures), target
        elif kind == "paper":
            assert anchor("paper", name) in places, target
        else:
            assert target in PAGES or target.startswith("https://"), target
    assert places[paper.anchor]


def has_title(draw, title: str) -> bool:
    return draw.title == title if isinstance(draw, Plot) else f'"{title}"' in getsource(draw)


@pytest.mark.parametrize("key", KEYS)
def test_names_of_evidence_exist(atlas, key):
    expected = {entry.slug: entry.claim.expect.outcome for entry in atlas.claims
                if entry.claim.paper == key}  # fmt: skip
    experiments = {entry.experiment.name for entry in atlas.experiments}
    text = (PAPERS / key / FILE).read_text(encoding="utf-8")
    for function, names in re.findall(r"(holds|fails|tightness|loss|statement)\(([^()]*)\)", text):
        outcome = Outcome.VIOLATED if function == "fails" else Outcome.SUPPORTED
        for slug in re.findall(r'"([^"]+)"', names):
            assert expected[slug] is outcome, slug
    assert set(re.findall(r'value\("([^"]+)"', text)) <= experiments


@pytest.mark.parametrize("key", KEYS)
def test_every_number_that_was_measured_comes_from_a_record(key):
    """No sentence holds a number with a decimal point or a percentage; those of records do."""
    text = (PAPERS / key / FILE).read_text(encoding="utf-8")
    plain = NUMBERED.sub("", text)
    plain = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\$.*?\$", "", plain, flags=re.S)
    listed = re.findall(r"(?<![\w.])\d+\.\d+(?![\w.]*\))|\d+ %", plain)
    assert [number for number in listed if number not in STATED] == []


STATED = {"0.001"}
"""Numbers of an instance that a sentence states, which a reader can compute by hand."""


def test_the_shared_article_is_whole(atlas):
    papers = tuple(map(answered, atlas.papers))
    whole = replace(atlas, papers=papers)
    places = places_of(whole)
    article = shared_article(whole, Links("one-token.html", places, "atlas", "atlas.html"))
    assert article.undefined == ()
    text = (PAPERS / "julistiono2024optimizing" / SHARED).read_text(encoding="utf-8")
    experiments = {entry.experiment.name: entry.experiment for entry in atlas.experiments}
    anchors = set(places)
    for target in TARGET.findall(text):
        kind, _, name = target.partition(":")
        if kind in experiments:
            assert any(has_title(draw, name.strip()) for draw in experiments[kind].figures), target
        elif kind == "live":
            assert name.strip() in LIVE, target
        elif kind != "page":
            fragment = Addresses(Links(), "")(target).removeprefix("#")
            assert fragment in anchors, target
    names = {entry.claim.name: entry.claim.expect.outcome for entry in atlas.claims}
    for listed in re.findall(r"holds\(([^()]*)\)", text):
        for name in re.findall(r'"([^"]+)"', listed):
            assert names[name] is Outcome.SUPPORTED, name
    pages = dict(render_pages(whole, "atlas.html", "atlas"))
    assert 'href="./atlas/one-token.html"' in pages[""]
    assert "untypeset" not in article.text


def test_a_block_without_its_evidence_is_left_out(atlas):
    paper = the_paper(atlas, "julistiono2024optimizing")
    whole = written(paper, Links()).text
    without = written(replace(paper, claims=tuple(
        entry for entry in paper.claims if entry.slug != "lemma-24-gap"
    )), Links()).text  # fmt: skip
    assert "does not exist for all data at once" in whole
    assert "does not exist for all data at once" not in without


def test_a_figure_has_its_caption_and_leads_to_its_experiment(atlas):
    paper = the_paper(atlas, "julistiono2024optimizing")
    links = Links("paper.html", places_of(atlas), "atlas", "atlas.html")
    assert "It needs records: attlas run direction" in written(paper, links).text
    drawing = Drawing("Direction against step", "caption", "picture")
    drawn = replace(paper, experiments=tuple(
        replace(entry, drawings=(drawing,)) if entry.experiment.name == "direction" else entry
        for entry in paper.experiments
    ))  # fmt: skip
    page = written(drawn, links).text
    assert "<figure>picture<figcaption>Each panel" in page
    assert 'href="experiment-direction.html#experiment-direction"' in page


def test_what_precedes_the_first_section_is_not_shown():
    assert sections("# Title\n\nFor readers.\n\n## One\n\nText.") == ["## One", "Text."]
    assert sections("No section.") == []
