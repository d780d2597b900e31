"""The atlas loads nothing, runs its own script, escapes everything, typesets every statement."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from attlas.display.statements import Untypeset, mathml, split
from attlas.site.atlas import gather
from attlas.site.pages import render_single
from attlas.verify.registry import find_claims

VOID = {"meta", "img", "wbr", "link", "br", "hr", "input"}
PRINTED = "https://arxiv.org/abs/2410.14581"


class Reader(HTMLParser):
    """Collects tags and attributes, and checks that the tags nest."""

    def __init__(self):
        super().__init__()
        self.tags = []
        self.open = []
        self.headings = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page_of():
    """One render a module: drawing takes a second."""
    return {}


@pytest.fixture
def page(page_of, store, claims, errata, experiments):
    if "page" not in page_of:
        page_of["page"] = render_single(gather(store, claims, errata, experiments))
    return page_of["page"]


@pytest.fixture
def reader(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def test_tags_nest_and_headings_do_not_jump(reader):
    assert reader.open == []
    assert reader.headings[0] == 1
    steps = zip(reader.headings, reader.headings[1:], strict=False)
    assert all(after <= before + 1 for before, after in steps)


def test_nothing_is_loaded_and_one_script_runs(page, reader):
    names = {tag for tag, _ in reader.tags}
    assert not names & {"iframe", "object", "embed", "link", "base", "audio"}
    assert [a for tag, a in reader.tags if tag == "script"] == [
        {"type": "application/octet-stream", "id": "index"}, {},
    ]  # fmt: skip
    assert not [a for tag, a in reader.tags if tag == "form" and "action" in a]
    for tag, attributes in reader.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        for name in ("src", "srcset", "href", "xlink:href", "action", "poster", "data"):
            address = attributes.get(name) or "#"
            if (tag, name, address) != ("a", "href", PRINTED):
                assert not re.match(r"(?i)\s*(https?:|//|javascript:|file:)", address), address
        assert (attributes.get("src") or "data:").startswith("data:")
    assert "http://" not in page
    assert "https://" not in page.replace(f'<a href="{PRINTED}">', "")
    assert "@import" not in page


def test_the_policy_allows_this_style_sheet_and_script_and_nothing_else(page, reader):
    (policy,) = [
        a["content"] for t, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for element in ("style", "script"):
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.S)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy


def test_hostile_text_is_text(page):
    assert page.count("<script") == 2
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_names_of_the_page_are_unique_and_links_arrive(reader):
    names = [attributes["id"] for _, attributes in reader.tags if "id" in attributes]
    assert len(names) == len(set(names))
    targets = [a["href"][1:] for _, a in reader.tags if (a.get("href") or "").startswith("#")]
    assert targets
    assert set(targets) <= set(names)


def test_verdicts_are_words_and_pictures_have_text(page, reader):
    for word in ("supported", "violated", "not run", "unexpected", "as expected"):
        assert word in page
    for tag, attributes in reader.tags:
        if tag == "img":
            # A thumbnail beside a question adds nothing to its answer.
            assert attributes["alt"] or attributes["width"] == "144"
        if tag == "svg" and attributes.get("role") == "img":
            assert attributes.get("aria-label")
    assert 'lang="en"' in page


def test_small_witness_arrays_are_shown_whole_and_large_ones_by_range(page):
    assert re.search(r'<td class="num">1</td><td class="num">2</td>', page)
    assert "3 × 4 × 5" in page


def test_every_statement_of_the_atlas_is_typeset():
    claims = find_claims()
    assert claims
    refused = []
    for claim in claims:
        try:
            assert all(mathml(piece) for part in split(claim.statement) for piece in part)
        except Untypeset as reason:
            refused.append(f"{claim.name}: {reason}")
    assert refused == []
