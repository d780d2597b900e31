"""The explorer in a browser: it draws, follows drags, keys and sliders, and says nothing."""

import base64
import hashlib
import re

import pytest
from headless_browser import browser

from attlas.reports.explorer.page import render_explorer, write_explorer

SHIFT, TAB, RIGHT, UP = "\ue008", "\ue004", "\ue014", "\ue013"
SIZE = 1_000_000
"""Bytes of the whole file at most."""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_explorer(tmp_path_factory.mktemp("explorer") / "explorer.html")


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


def test_the_file_is_small_loads_nothing_and_allows_its_own_script_alone(file):
    text = file.read_text(encoding="utf-8")
    assert text == render_explorer()
    assert len(text.encode()) < SIZE
    assert not re.search(r"\s(?:on\w+|style)=\"", re.sub(r"(?s)<script>.*?</script>", "", text))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    for element in ("style", "script"):
        (content,) = re.findall(rf"(?s)<{element}>(.*?)</{element}>", text)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{element}-src &#39;sha256-{digest}&#39;" in policy[1].replace("'", "&#39;")
    assert "unsafe" not in policy[1]
    assert not re.search(r"(?:src|href)=\"(?!#|data:)", text)
    loading = r"\b(?:fetch|XMLHttpRequest|WebSocket|importScripts|eval)\b"
    assert not re.search(loading, text)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_is_wider_than_the_screen_and_all_of_it_is_drawn(chromium, file, width, scheme):
    chromium.open(file, width, prefers_color_scheme=scheme)
    assert chromium.run("return document.documentElement.scrollWidth") <= width
    empty = chromium.run(
        "return [...document.querySelectorAll('svg.chart, svg.plane, output, .readout dd')]"
        ".filter(e => e.childNodes.length === 0).map(e => e.id)"
    )
    assert empty == []
    unnamed = chromium.run(
        "return [...document.querySelectorAll('input, select')]"
        ".filter(e => e.labels.length === 0).map(e => e.id)"
    )
    assert unnamed == []
    assert chromium.messages() == []


@pytest.mark.parametrize("touch", [False, True])
def test_a_token_is_dragged_and_the_attention_svm_follows(page, touch):
    before = page.text("selection-margin")
    where = "document.querySelector('.of-token').getAttribute('aria-valuetext')"
    old = page.run(f"return {where}")
    page.drag(".of-token", -40, 30, touch=touch)
    assert page.run(f"return {where}") != old
    assert page.text("selection-margin") != before
    assert page.text("selection-standing").startswith("certified")
    page.run("document.getElementById('selection-reset').click()")
    page.settle()
    assert page.text("selection-margin") == before


def test_arrow_keys_move_what_has_the_focus(page):
    page.run("document.querySelector('.of-token').focus()")
    read = "return document.activeElement.getAttribute('aria-valuetext').split(', ').map(Number)"
    x, y = page.run(read)
    page.press(RIGHT, UP)
    assert page.run(read) == pytest.approx([x + 0.05, y + 0.05], abs=0.011)
    page.press(TAB)
    assert page.run("return document.activeElement.getAttribute('aria-label')") == (
        "token 2 of sample A"
    )


def number(text):
    return float(text.replace("−", "-"))


@pytest.mark.parametrize("position", [-1, -0.5, 0, 0.3])
def test_mirror_descent_turns_to_the_svm_of_its_own_exponent(page, position):
    page.slide("selection-p", position)
    assert page.text("selection-standing").startswith("certified")
    page.slide("selection-at", 5)
    early = number(page.text("selection-divergence"))
    page.slide("selection-at", 1000)
    late = number(page.text("selection-divergence"))
    assert late < early / 2
    values = page.run(
        "return [...document.querySelectorAll('#selection-keys b')].map(e => e.textContent)"
    )
    own, *others = (number(value) for value in values)
    assert own <= min(others) * 1.01  # one of the others may have the same exponent


def test_less_motion_trains_at_once(page):
    page.slide("selection-at", 0)
    page.run("document.getElementById('selection-play').click()")
    page.settle()
    assert page.text("selection-step") == "4000 of 4000"
