"""The figures of the article that move: in a browser, each follows its sliders, keys and button."""

import re
from pathlib import Path

import pytest
from headless_browser import browser
from markupsafe import Markup

from attlas.site.article import SHARED, Article
from attlas.site.content import Atlas
from attlas.site.links import Links
from attlas.site.live_figures import LIVE, live_figure
from attlas.site.pages import article_page

TEXT = Path(__file__).parents[2] / "papers" / "julistiono2024optimizing" / SHARED
TAB, RIGHT, END, HOME = "\ue004", "\ue014", "\ue010", "\ue011"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    figures = Markup("").join(live_figure(name, f"About {name}.") for name in LIVE)
    page = article_page(Atlas(papers=()), Links("one-token.html"), Article(figures, (), ()))
    place = tmp_path_factory.mktemp("live") / "one-token.html"
    place.write_text(page, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def chromium():
    with browser() as found:
        yield found


@pytest.fixture
def page(chromium, file):
    """The page, freshly opened; whatever the console is told is an error."""
    chromium.open(file, prefers_reduced_motion="reduce")
    yield chromium
    assert chromium.messages() == []


def test_the_article_shows_each_figure_once():
    shown = re.findall(r"\]\[live: (\w+)\]", TEXT.read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(LIVE)
    assert len(LIVE) == 6


def test_without_scripts_a_sentence_says_where_the_same_is_shown(file):
    assert file.read_text(encoding="utf-8").count("<noscript>") == len(LIVE)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_all_is_drawn_and_nothing_is_wider_than_the_screen(chromium, file, width, scheme):
    chromium.open(file, width, prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
    assert chromium.run("return document.documentElement.scrollWidth") <= width
    empty = chromium.run(
        "return [...document.querySelectorAll('.live svg, .live output, .live .told')]"
        ".filter(e => e.childNodes.length === 0).map(e => e.id)"
    )
    assert empty == []
    small = chromium.run(
        "return [...document.querySelectorAll('.live text, .live p, .live output')].filter(e => {"
        " const m = e.getScreenCTM ? e.getScreenCTM().a : 1;"
        " return m * parseFloat(getComputedStyle(e).fontSize) < 10; }).map(e => e.textContent)"
    )
    assert small == []
    cut = chromium.run(
        "return [...document.querySelectorAll('.live svg')].flatMap(e => { const b ="
        " e.getBoundingClientRect(); return [...e.querySelectorAll('text')].filter(t => {"
        " const r = t.getBoundingClientRect(); return r.left < b.left - 1 || r.right > b.right + 1"
        "; }).map(t => t.textContent); })"
    )
    assert cut == []
    assert chromium.messages() == []


@pytest.mark.parametrize("name", LIVE)
def test_every_slider_works_by_keys_over_its_whole_range(page, file, name):
    for slider in LIVE[name].sliders:
        page.open(file, prefers_reduced_motion="reduce")
        seen = set()
        for key in (HOME, END):
            page.run(f"document.getElementById('live-{name}-{slider.id}').focus()")
            page.press(key)
            page.settle()
            seen.add((page.text(f"live-{name}-told"), page.text(f"live-{name}-{slider.id}-value")))
        assert len({told for told, _ in seen}) == len({value for _, value in seen}) == 2
        assert not any("NaN" in told or "undefined" in told for told, _ in seen)


@pytest.mark.parametrize("name", LIVE)
def test_the_button_shows_the_end_at_once_where_less_motion_is_asked_for(page, name):
    moved = "return [...document.querySelectorAll(`#live-${arguments[0]} input`)].map(e => e.value)"
    first = LIVE[name].sliders[0]
    page.slide(f"live-{name}-{first.id}", first.least)
    before = page.run(moved, name)
    page.run(f"document.getElementById('live-{name}-play').click()")
    page.settle()
    assert page.run(moved, name) != before


def test_a_film_moves_where_motion_is_not_refused(chromium, file):
    chromium.open(file)
    value = "return Number(document.getElementById('live-growth-size').value)"
    chromium.run("document.getElementById('live-growth-play').click()")
    chromium.settle()
    assert chromium.run(value) < 20
    assert chromium.messages() == []


def test_a_token_moves_with_the_arrow_keys_and_the_attention_svm_follows(page):
    target = "return document.querySelector('#live-direction .target').getAttribute('d')"
    before = page.run(target)
    page.run("document.querySelector('#live-direction .of-token').focus()")
    page.press(TAB, RIGHT, RIGHT)
    assert page.run(target) != before
    page.run("document.getElementById('live-direction-reset').click()")
    page.settle()
    page.settle()
    assert page.run(target) == before


def test_what_is_no_support_token_can_be_moved_without_moving_the_direction(page):
    """The fourth token is none: the sentence of the figure is tried on it."""
    target = "return document.querySelector('#live-direction .target').getAttribute('d')"
    before = page.run(target)
    page.run("document.querySelectorAll('#live-direction .of-token')[3].focus()")
    page.press(RIGHT)
    page.settle()

    def numbers(path):
        return [float(each) for each in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", path)]

    assert numbers(page.run(target)) == pytest.approx(numbers(before), abs=1e-3)


def test_equal_scores_leave_an_average_and_a_gap_makes_a_choice(page):
    def share():
        return float(re.search(r"has (?:> )?([\d.]+)\s%", page.text("live-ties-told"))[1])

    page.slide("live-ties-steps", 4)
    page.slide("live-ties-gap", 0)
    even = share()
    page.slide("live-ties-gap", 0.3)
    assert even < 90 < share()
