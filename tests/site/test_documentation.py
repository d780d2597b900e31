"""The documentation beside an atlas: what its search finds, and that links lead to files."""

import re
import shutil
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

import pytest

from attlas.experiments.store import Store
from attlas.site import documentation
from attlas.site.atlas import gather, write_atlas
from attlas.site.documentation import documentation_beside, sources_beside
from attlas.site.links import Links
from attlas.site.pages import render_pages
from attlas.site.search_index import search_index

ROOT = Path(__file__).parents[2]


@pytest.fixture
def unbuilt(monkeypatch):
    """The documentation of the checkout as if nobody had built it."""
    monkeypatch.setattr(documentation, "BUILT", Path("docs", "_build", "never"))


@pytest.mark.parametrize("front", [ROOT / "atlas.html", ROOT / "papers" / "atlas.html"])
def test_unbuilt_pages_lead_to_their_sources(unbuilt, front):
    beside = documentation_beside(front)
    assert beside is not None
    assert len(beside.pages) > 15
    assert len(beside.functions) > 40
    addresses = [beside.index, *(each.address for each in (*beside.pages, *beside.functions))]
    assert [a for a in addresses if not (front.parent / unquote(a)).is_file()] == []
    assert all(each.text for each in beside.functions)
    (start,) = [page for page in beside.pages if page.address.endswith("start.md")]
    assert start.title == "Start in five minutes"
    assert "Next" in start.headings


def test_built_pages_are_led_to_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(documentation, "BUILT", Path("docs"))
    beside = documentation_beside(ROOT / "docs" / "atlas.html")
    assert beside is not None
    assert beside.index == "index.html"
    (svm,) = [each for each in beside.functions if each.title == "attlas.attention_svm"]
    assert svm.address == "api/attlas.solvers.html"
    assert svm.anchor == "attlas.solvers.attention_svm.attention_svm"


def test_an_atlas_elsewhere_does_not_tell_where_the_checkout_is(tmp_path):
    assert documentation_beside(tmp_path / "atlas.html") is None
    front = write_atlas(tmp_path / "none", tmp_path / "atlas.html", ["gu2024exploring"])
    assert ">Docs<" not in front.read_text(encoding="utf-8")


def test_every_page_has_the_bar_and_the_index_has_pages_and_functions(
    unbuilt, store, claims, errata, experiments
):
    atlas = gather(Store(store.root), claims, errata, experiments)
    atlas = replace(atlas, title="", documentation=documentation_beside(ROOT / "atlas.html"))
    for name, document in render_pages(atlas, "atlas.html", "atlas"):
        if name.endswith(".csv"):
            continue
        to_docs = '<a href="docs/index.md">Docs</a>'
        assert (to_docs.replace("docs/", "../docs/") if name else to_docs) in document, name
        assert document.count('aria-label="Site"') == 1
    index = search_index(atlas, Links("", {"a": "a.html"}, "atlas", "atlas.html"))
    columns = {column: place for place, column in enumerate(index["columns"])}
    row = next(row for row in index["rows"] if row[columns["title"]] == "attlas.attention_svm")
    assert index["names"]["what"][row[columns["what"]]] == "function"
    assert index["pages"][row[columns["page"]]] == "src/attlas/solvers/attention_svm.py"


def test_sources_are_reached_from_inside_the_checkout_alone(tmp_path):
    assert sources_beside(ROOT / "atlas.html") == ""
    assert sources_beside(ROOT / "papers" / "mine" / "atlas.html") == "../../"
    assert sources_beside(ROOT / documentation.BUILT / "atlas.html") == ""
    assert sources_beside(tmp_path / "atlas.html") is None


@pytest.mark.thorough
def test_links_to_sources_lead_to_files_and_are_left_out_elsewhere(tmp_path):
    names = ["gu2024exploring"]
    elsewhere = write_atlas(tmp_path / "none", tmp_path / "atlas.html", names)
    for page in elsewhere.with_suffix("").glob("*.html"):
        assert ".py#L" not in page.read_text(encoding="utf-8"), page.name
    place = ROOT / ".cache" / "atlas-of-a-test"
    inside = write_atlas(tmp_path / "none", place / "atlas.html", names)
    try:
        links = [
            (page.parent / unquote(link.partition("#")[0])).resolve()
            for page in inside.with_suffix("").glob("*.html")
            for link in re.findall(r'href="([^"]*\.py#L\d+)"', page.read_text(encoding="utf-8"))
        ]
        assert links
        assert [link for link in links if not link.is_file()] == []
    finally:
        shutil.rmtree(place)
