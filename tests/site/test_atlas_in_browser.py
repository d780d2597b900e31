"""The atlas in a browser, from disk: five questions, keys, filters, widths, print, accessibility.

It is made of the real claims, errata and experiments with verdicts and answers that are made up,
so that it has its real size and no record is needed.
"""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from headless_browser import BOOKLET, SHEET, browser
from tests.site.conftest import toy_report
from tests.site.typed_queries import QUERIES

from attlas.claims.verdict import ChallengeReport, Outcome, Verdict
from attlas.experiments.store import Store
from attlas.site.atlas import gather
from attlas.site.claim_entry import ClaimEntry
from attlas.site.content import Atlas, PaperEntry
from attlas.site.documentation import documentation_beside
from attlas.site.findings import answered_questions, findings_of
from attlas.site.folder import write_pages
from attlas.site.pages import render_pages, render_single

pytestmark = pytest.mark.thorough  # writing the pages takes long, browser or not

DOWN, UP, ENTER, ESCAPE, TAB = "\ue015", "\ue013", "\ue007", "\ue00c", "\ue004"
LARGEST, SECOND = 400_000, 1.0
VALUES = {
    "direction": {"own": 3, "total": 3, "ends": "0.1"},
    "text": {"better": False, "worse": False, "task": "digits", "gap": "0.1", "reach": "2.0"},
    "heads": {"helps": False, "hurts": True, "power": "0.32 [0.27, 0.37]", "best": 2,
              "demanded": "5e+12"},
    "sparse_majority": {"below": 0, "largest": "0.11", "trained": 300, "least": "$10^{18}$",
                        "fewest": "$10^{13}$", "name": "parameter counting"},
    "rademacher_length": {"low": "436", "high": "1083"},
}  # fmt: skip
"""Values that the answers to the questions of users are made of, by experiment."""


def made_up(entry: ClaimEntry) -> ClaimEntry:
    """The claim as it is expected to come out."""
    report = toy_report(entry.claim, entry.claim.expect.outcome, tightness=0.5)
    controls = tuple(replace(each, verdict=replace(each.verdict, outcome=each.expect))
                     for each in report.controls)  # fmt: skip
    held = entry.claim.expect.outcome is Outcome.SUPPORTED
    search = ChallengeReport(0.8, False, 8, 50, Verdict(Outcome.SUPPORTED, "none found"))
    return replace(
        entry, report=replace(report, controls=controls, challenge=search if held else None)
    )


def answered(paper: PaperEntry) -> PaperEntry:
    claims = tuple(map(made_up, paper.claims))
    experiments = tuple(
        replace(entry, answer=f"The answer of {entry.experiment.name}, at $n = 8$. " * 4, done=1,
                total=1, scale="quick", values=VALUES.get(entry.experiment.name, {}))
        for entry in paper.experiments
    )  # fmt: skip
    return replace(paper, claims=claims, experiments=experiments,
                   findings=findings_of(claims, experiments))  # fmt: skip


@pytest.fixture(scope="module")
def atlas(tmp_path_factory) -> Atlas:
    empty = gather(Store(tmp_path_factory.mktemp("empty") / "results"))
    papers = tuple(map(answered, empty.papers))
    # As in the checkout: its pages and functions compete in the search.
    beside = documentation_beside(Path(__file__).parents[2] / "atlas.html")
    whole = replace(empty, papers=papers, documentation=beside)
    return replace(whole, questions=answered_questions(whole.claims, whole.experiments))


@pytest.fixture(scope="module")
def front(atlas, tmp_path_factory) -> Path:
    """A folder whose name must be written as an address."""
    place = tmp_path_factory.mktemp("the pages") / "my atlas.html"
    write_pages(place, place.with_suffix(""), render_pages(atlas, place.name, place.stem))
    place.with_name("single.html").write_text(render_single(atlas), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture
def page(chromium, front):
    """The front page, freshly opened; what the policy or a script refuses is an error."""
    chromium.open(front)
    ready(chromium)
    yield chromium
    assert chromium.messages() == []


def ready(page):
    """Wait for the search, whose index is unpacked after the page is shown."""
    page.run(
        "const form = document.getElementById('search');"
        "return new Promise(done => { const look = () => form.hidden ? setTimeout(look, 5)"
        " : requestAnimationFrame(done); look(); })"
    )


def ask(page, words):
    page.press("/")
    page.press(*words)
    return page.run("return [...document.querySelectorAll('#hits li')].map(e => e.innerText)")


def arrived(page):
    """The element that the address names: whether it is on the screen, and its text."""
    return page.run(
        "const e = document.getElementById(decodeURIComponent(location.hash.slice(1)));"
        "const b = e.getBoundingClientRect();"
        "return [b.top >= -1 && b.top < innerHeight, e.innerText]"
    )


def test_the_front_page_is_small(front):
    assert front.stat().st_size < LARGEST


SEARCHES = {
    "which p should I choose": ("Which p should I choose?", "decides which solution"),
    "do more heads help": ("Do more heads help?", "the test loss rises with the number of heads"),
    "why is every bound vacuous": ("Why is every bound vacuous?", "every bound is vacuous at"),
    "what is a tangent-kernel margin": ("tangent-kernel margin", "norm 1"),
    "is Theorem 4.2 of gu2024 right": ("Theorem 4.2", "A width of this size"),
}
"""What is typed on the front page, the first result, and what is read where it leads."""


@pytest.mark.parametrize("words", SEARCHES)
def test_one_search_answers_a_question(page, words):
    title, answer = SEARCHES[words]
    assert ask(page, words)[0].startswith(title)
    page.press(ENTER)
    time.sleep(0.5)
    page.settle()
    on_screen, said = arrived(page)
    assert on_screen
    assert answer in " ".join(said.split())


FIRST_HITS = (
    "const field = document.getElementById('q');"
    "return arguments[0].map(words => { field.value = words;"
    " field.dispatchEvent(new Event('input', {bubbles: true}));"
    " return [...document.querySelectorAll('a.hit')].slice(0, 3).map(a => a.hash.slice(1)); })"
)


def test_what_people_type_has_the_right_page_among_the_first_three(page):
    assert len(QUERIES) == 33
    hits = dict(zip(QUERIES, page.run(FIRST_HITS, [*QUERIES]), strict=True))
    missed = {
        words: hits[words]
        for words, pages in QUERIES.items()
        if not any(hit.startswith(pages) for hit in hits[words])
    }
    assert len(missed) <= 4, missed


CLICKS = {
    "which p should I choose": ([], "Which p should I choose?"),
    "do more heads help": ([], "Do more heads help?"),
    "why is every bound vacuous": ([], "Why is every bound vacuous?"),
    "what is a tangent-kernel margin": (["Glossary"], "tangent-kernel margin"),
    "is Theorem 4.2 of gu2024 right": (
        ["Theorems", "Theorem 4.2: training reaches zero loss"],
        "as reconstructed",
    ),
}
"""The links to follow from the front page, and what is read on the page then."""


@pytest.mark.parametrize("question", CLICKS)
def test_a_question_is_answered_within_three_clicks(page, question):
    links, answer = CLICKS[question]
    assert len(links) <= 3
    for text in links:
        page.run(
            "[...document.querySelectorAll('a')].find(a => a.innerText.trim() === arguments[0])"
            ".click()",
            text,
        )
        time.sleep(0.5)
        page.settle()
    assert answer in page.run("return document.querySelector('main').innerText")


def test_an_address_of_a_claim_opens_its_fold(chromium, front, atlas):
    (paper,) = [paper for paper in atlas.papers if paper.key == "trauger2023sequence"]
    chromium.open(front.with_suffix("") / f"paper-{paper.key}.html")
    shown = "return document.getElementById(arguments[0]).checkVisibility()"
    first, last = paper.claims[0].anchor, paper.claims[-1].anchor
    assert [chromium.run(shown, name) for name in (first, last)] == [False, False]
    chromium.run("location.hash = arguments[0]", last)
    chromium.settle()
    assert arrived(chromium)[0]
    assert [chromium.run(shown, name) for name in (first, last)] == [False, True]
    assert chromium.messages() == []


def test_keys_go_through_the_results_and_back(page):
    ask(page, "mirror descent")
    focus = "return document.activeElement.id || document.activeElement.innerText"
    titles = page.run("return [...document.querySelectorAll('a.hit')].map(a => a.innerText)")
    page.press(DOWN, DOWN)
    assert page.run(focus) == titles[1]
    page.press(UP, UP)
    assert page.run(focus) == "q"
    page.press(DOWN, ESCAPE)
    assert page.run(focus) == "q"
    page.press(ESCAPE)
    assert page.run("return document.getElementById('q').value") == ""
    assert page.run("return document.querySelectorAll('#hits li').length") == 0


def test_a_filtered_view_is_a_link(page, front, atlas):
    page.run(
        "const s = document.getElementById('verdict'); s.value = 'violated';"
        "s.dispatchEvent(new Event('input', {bubbles: true}))"
    )
    wrong = sum(entry.outcome is Outcome.VIOLATED for entry in atlas.claims)
    assert page.text("count") == f"{wrong} results"
    assert page.run("return document.getElementById('count').getAttribute('aria-live')") == "polite"
    address = page.run("return location.href")
    assert address.endswith("#verdict=violated")
    page.send("POST", "/url", {"url": "about:blank"})
    page.send("POST", "/url", {"url": f"{address}&paper=liu2021analyzing"})
    ready(page)
    page.settle()
    own = sum(e.outcome is Outcome.VIOLATED for e in atlas.claims if e.claim.paper[:3] == "liu")
    assert page.text("count") == f"{own} results"
    page.run("document.getElementById('clear').click()")
    assert page.text("count") == ""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_no_page_is_wider_than_its_screen(chromium, front, width, scheme):
    pages = [front, *front.with_suffix("").glob("paper-[dt]*.html"),
             *front.with_suffix("").glob("experiment-heads.html")]  # fmt: skip
    for place in pages:
        chromium.open(place, width, prefers_color_scheme=scheme)
        assert chromium.run("return document.documentElement.scrollWidth") <= width, place.name
    assert chromium.messages() == []


def test_a_term_tells_its_meaning_to_the_focus_and_escape_ends_it(page):
    page.run("document.querySelector('a.term').focus()")
    page.settle()
    shown = "const b = document.querySelector('.tip'); return b.hidden ? '' : b.innerText"
    told = page.run(
        "const a = document.querySelector('a.term');"
        "return document.getElementById(a.getAttribute('aria-describedby')).innerText"
    )
    assert told
    assert page.run(shown) == told
    page.press(ESCAPE)
    assert page.run(shown) == ""


def test_the_front_page_is_usable_within_a_second(page):
    """The time of the browser's own work, which other processes do not lengthen much."""
    chromium = page
    chromium.tool("Performance.enable", timeDomain="threadTicks")
    chromium.send("POST", "/refresh")
    ready(chromium)
    found = {m["name"]: m["value"] for m in chromium.tool("Performance.getMetrics")["metrics"]}
    assert 0 < found["TaskDuration"] < SECOND


MOVES = (
    "return new Promise(done => setTimeout(() => done("
    "[document.getElementById('hero-at-value').textContent,"
    " document.getElementById('hero-plane').getBoundingClientRect().top < innerHeight]), 700))"
)


def test_the_first_screen_moves_within_a_second_and_ends_on_one_word(page):
    page.send("POST", "/refresh")
    step, on_screen = page.run(MOVES)
    assert step != "step 0"
    assert on_screen
    for _ in range(200):
        page.settle()
        if page.text("hero-at-value") == "step 1000":
            break
        time.sleep(0.1)
    assert "“brilliant” has 100 %" in page.text("hero-told")


def test_less_motion_shows_the_end_at_once(chromium, front):
    chromium.open(front, prefers_reduced_motion="reduce")
    assert chromium.text("hero-at-value") == "step 1000"


@pytest.mark.parametrize("p", [1.1, 1.5, 3, 4])
def test_the_address_keeps_exponent_step_and_words(chromium, front, p):
    chromium.open(front, prefers_reduced_motion="reduce")
    chromium.slide("hero-p", p)
    chromium.drag(".of-word", 30, 20)
    chromium.slide("hero-at", 20)
    told, address = chromium.text("hero-told"), chromium.run("return location.href")
    assert f"p={p}&step=" in address
    where = "return document.querySelector('.of-word').getAttribute('aria-valuetext')"
    place = chromium.run(where)
    chromium.send("POST", "/url", {"url": "about:blank"})
    chromium.send("POST", "/url", {"url": address})
    chromium.settle()
    assert chromium.text("hero-told") == told
    assert chromium.run(where) == place
    assert chromium.messages() == []


def test_a_broken_address_plays_the_film(chromium, front):
    chromium.open(front, prefers_reduced_motion="reduce")
    for fragment in ("p=0", "p=x&step=2", "p=2&step=-4&words=1,2;3", "p=2&words=9,9"):
        chromium.send(
            "POST", "/url", {"url": f"{front.resolve().as_uri()}?{len(fragment)}#{fragment}"}
        )
        chromium.settle()
        assert "attention" in chromium.text("hero-told")
    assert chromium.messages() == []


def test_the_drawing_is_a_file_that_needs_no_style_sheet(page):
    page.run(
        "window.saved = null; const make = URL.createObjectURL;"
        "URL.createObjectURL = (blob) => { window.saved = blob.text(); return make(blob); };"
        "HTMLAnchorElement.prototype.click = () => {};"
        "document.getElementById('hero-svg').click()"
    )
    text = page.run("return window.saved")
    assert text.startswith("<svg")
    assert "brilliant" in text
    assert "var(" not in text
    assert " class=" not in text


def test_the_front_page_prints_as_a_booklet(chromium, front):
    chromium.open(front, SHEET, media="print")
    assert chromium.run("return document.documentElement.scrollWidth") <= SHEET
    assert 1 < chromium.sheets() <= BOOKLET


def test_one_file_has_every_page_and_searches_itself(chromium, front):
    chromium.open(front.with_name("single.html"))
    ready(chromium)
    assert ask(chromium, "is Theorem 4.2 of gu2024 right")[0].startswith("Theorem 4.2")
    chromium.press(ENTER)
    time.sleep(0.5)
    chromium.settle()
    assert arrived(chromium)[0]
    assert chromium.messages() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(chromium, front, scheme):
    source = os.environ.get("ATTLAS_AXE")
    if not source:
        pytest.skip("accessibility: ATTLAS_AXE does not name the file axe.min.js of axe-core")
    folder = front.with_suffix("")
    names = ("glossary", "paper-attlas_audit", "experiment-heads")
    chromium.send("POST", "/timeouts", {"script": 110_000})
    serious = []
    for place in (front, *(folder / f"{name}.html" for name in names)):
        chromium.open(place, prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
        if place == front:
            ready(chromium)
            ask(chromium, "vacuous")
            chromium.run("document.getElementById('filters').open = true")
        chromium.tool("Page.setBypassCSP", enabled=True)
        chromium.run(Path(source).read_text(encoding="utf-8") + ";window.axe = axe;")
        found = chromium.run("return axe.run(document, {resultTypes: ['violations']})")
        serious += [
            f"{place.name}: {v['id']} ({v['impact']}): {n['html'][:120]}"
            for v in found["violations"] if v["impact"] in ("serious", "critical")
            for n in v["nodes"][:3]
        ]  # fmt: skip
    assert serious == []
