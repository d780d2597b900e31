"""The documentation, as a reader finds his way in it: in a browser, from the front page."""

import re
import time
import unicodedata
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from headless_browser import Browser, browser

SITE = Path(__file__).parent.parent / "docs" / "_build" / "html"
CLICKS = {
    "which p should I choose": (
        ["Which p should I choose?"],
        "Choose p for the geometry",
    ),
    "do more heads help": (["Do more heads help?"], "more heads did not help"),
    "which heads of my model can go": (
        ["What do the heads of my model do, and which can go?"],
        "could be removed together",
    ),
    "why is every bound vacuous": (
        ["Which bound is non-vacuous?", "Why is every bound vacuous?"],
        "A norm-based bound on the gap is",
    ),
    "what is a tangent-kernel margin": (["What do these words mean?"], "tangent-kernel margin"),
    "is Theorem 4.2 of gu2024 right": (
        [
            "The papers",
            "Exploring the Frontiers of Softmax: Provable Optimization, Applications "
            "in Diffusion Model, and Beyond",
        ],
        "Theorem 4.2",
    ),
}
"""The links to follow from the front page, at most three, and what is then read."""
SEARCHES = {
    "which p should I choose": "choose/exponent.html",
    "do more heads help": "choose/heads.html",
    "audit my model": "choose/audit.html",
    "why is every bound vacuous": "choose/bound.html",
    "what is a tangent-kernel margin": "glossary.html",
    "is Theorem 4.2 of gu2024 right": "papers/gu2024exploring.html",
    "vacuous": "choose/bound.html",
    "tangent-kernel margin": "glossary.html",
}
"""What is typed on the front page, and a page that is among the first three answers."""


def test_no_page_has_a_part_of_a_papers_key_as_a_word():
    """The search looks for parts of words only where no page has the part as a word of its own."""
    root = SITE.parents[2]
    keys = [folder.parent.name for folder in root.glob("papers/*/README.md")]
    shortened = [match[0] for key in keys if (match := re.match(r"[a-z]+\d{4}(?=[a-z])", key))]
    assert len(shortened) >= 5
    words = re.compile(rf"\b(?:{'|'.join(shortened)})\b")
    pages = [
        *root.glob("docs/**/*.md"),
        *root.glob("papers/*/*.md"),
        *root.glob("papers/*/proofs/*"),
    ]
    pages = [file for file in pages if "_build" not in file.parts]
    assert [(file.name, words.findall(text)) for file in pages
            if words.search(text := file.read_text(encoding="utf-8"))] == []  # fmt: skip


@pytest.fixture(scope="module")
def page():
    if not (SITE / "index.html").exists():
        pytest.skip("documentation in a browser: it is not built, see `make docs`")
    with browser() as found:
        yield found


def said(page: Browser) -> str:
    shown = page.run("return document.querySelector('article').innerText")
    return unicodedata.normalize("NFKC", " ".join(shown.split()))  # letters of mathematics


@pytest.mark.parametrize("question", CLICKS)
def test_a_question_is_answered_within_three_clicks(page, question):
    links, answer = CLICKS[question]
    assert len(links) <= 3
    page.open(SITE / "index.html")
    for text in links:
        page.run(
            "[...document.querySelectorAll('a')].find(a => a.innerText.trim() === arguments[0])"
            ".click()",
            text,
        )
        page.settle()
    assert answer in said(page)
    assert page.messages() == []


@pytest.mark.parametrize("words", SEARCHES)
def test_one_search_from_the_front_page_finds_it(page, words):
    page.open(SITE / "index.html")
    page.run(
        "const box = document.querySelector('input[name=q]'); box.value = arguments[0];"
        "box.form.submit()",
        words,
    )
    hits: list[str] = []
    until = time.monotonic() + 60
    while len(hits) < 3 and time.monotonic() < until:
        time.sleep(0.2)
        hits = page.run(
            "return [...document.querySelectorAll('#search-results li a')].map(a => a.href)"
        )
    assert any(SEARCHES[words] in hit for hit in hits[:3]), hits[:3]


def test_the_explorer_is_one_click_away(page):
    page.open(SITE / "index.html")
    links = "return [...document.querySelectorAll('article a')].map(a => a.getAttribute('href'))"
    assert "atlas/explorer.html" in page.run(links)
    page.messages()  # those of earlier tests
    page.open(SITE / "atlas" / "explorer.html")
    assert "recomputed as you change it" in page.run("return document.body.innerText")
    page.slide("bounds-m", 9)
    assert "Smallest" in page.text("bounds-standing")
    assert page.messages() == []


def bar(page: Browser) -> dict[str, str]:
    """The links of the bar by their texts; the files that they lead to exist."""
    links = page.run(
        "return [...document.querySelectorAll('nav.site a')].map(a => [a.innerText, a.href])"
    )
    for _, address in links:
        assert Path(unquote(urlparse(address).path)).is_file(), address
    return dict(links)


def test_documentation_atlas_and_explorer_share_one_bar(page):
    places = ("index", "choose/heads", "api/attlas.solvers", "atlas", "atlas/gallery",
              "atlas/explorer", "atlas/paper-gu2024exploring")  # fmt: skip
    for place in places:
        page.open(SITE / f"{place}.html")
        links = bar(page)
        assert {"Atlas", "Docs", "Explorer", "Gallery", "Search"} <= links.keys(), place
        assert links["Docs"].partition("#")[0] in ((SITE / "index.html").as_uri(), page.run(
            "return location.href.split('#')[0]")), place  # fmt: skip


def test_the_search_of_the_atlas_finds_pages_and_functions(page):
    """From disk: the first results, and that their pages exist."""
    for words, target in (
        ("start in five minutes", "start.html"),
        ("attlas.attention_svm", "api/attlas.solvers.html"),
    ):
        page.open(SITE / "atlas.html")
        page.run(
            "const f = document.getElementById('q'), form = document.getElementById('search');"
            "return new Promise(done => { const look = () => { if (form.hidden)"
            " return setTimeout(look, 5); f.value = arguments[0];"
            " f.dispatchEvent(new Event('input', {bubbles: true})); done(); }; look(); })",
            words,
        )
        hits = page.run("return [...document.querySelectorAll('a.hit')].map(a => a.href)")
        assert target in hits[0]
        assert Path(unquote(urlparse(hits[0]).path)).is_file()


def test_a_page_of_the_library_leads_to_the_figures_that_it_made(page):
    page.open(SITE / "api" / "attlas.solvers.html")
    links = page.run("return [...document.querySelectorAll('.figures a')].map(a => a.href)")
    assert any(link.endswith("atlas/experiment-direction.html") for link in links)
    assert all(Path(unquote(urlparse(link).path)).is_file() for link in links)


def test_no_letter_with_a_full_stop_in_a_docstring_became_a_numbered_list():
    """A size such as `H.` is one word to reStructuredText's reader of lists: the eighth item."""
    if not (SITE / "index.html").exists():
        pytest.skip("pages of the library: they are not built, see `make docs`")
    pages = sorted((SITE / "api").glob("*.html"))
    assert len(pages) > 10
    assert [page.name for page in pages if "<ol" in page.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_its_screen(page, width):
    for name in ("index", "choose/exponent", "papers/deora2023optimization", "errata"):
        page.open(SITE / f"{name}.html", width=width)
        assert page.run("return document.documentElement.scrollWidth") <= width, name


def test_every_local_link_leads_to_a_file_and_to_a_place_in_it():
    """Pages, sources, data and pictures: the site can be published as it is."""
    if not (SITE / "index.html").exists():
        pytest.skip("links of the documentation: it is not built, see `make docs`")
    root = SITE.resolve()
    names = {page: anchors(page) for page in root.rglob("*.html")}
    dead = []
    for page in names:
        for address in set(LINK.findall(SCRIPT.sub("", page.read_text("utf-8")))):
            parts = urlparse(unescape(address))
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            there = target.is_relative_to(root) and target.is_file()
            place = unquote(parts.fragment)
            if not there or (target in names and place and place not in names[target]):
                dead.append((page.relative_to(root).as_posix(), address))
    assert dead == []


LINK = re.compile(r'<[^<>]*?\s(?:href|src)="([^"]*)"')
SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)
STATES = re.compile(r"(?:p=[\d.]+&.*|top)?\Z")
"""Fragments without an element: the state of the explorer, and the top of any page."""


def anchors(page: Path) -> set[str]:
    """The places of a page that an address can name."""
    text = page.read_text("utf-8")
    return {unescape(name) for name in re.findall(r'\b(?:id|name)="([^"]+)"', text)}


def test_no_page_asks_the_network():
    if not (SITE / "index.html").exists():
        pytest.skip("documentation without a network: it is not built, see `make docs`")
    outside = re.compile(r'(?:src|href)="(?:https?:)?//[^"]*\.(?:js|css|woff2?)')
    found = [str(path) for path in SITE.rglob("*.html") if outside.search(path.read_text("utf-8"))]
    assert found == []
