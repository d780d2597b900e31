"""The explorer in a browser: it draws, and follows drags, keys and sliders without an error."""

import base64
import hashlib
import re

import pytest
from headless_browser import browser

from attlas.site.explorer.page import render_explorer, write_explorer

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


RAISED = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def number(text):
    """What is shown as −2.5 × 10⁻⁷, 10⁵ or 0.25."""
    text = text.replace("−", "-").replace("\N{NO-BREAK SPACE}", " ")
    mantissa, times, power = text.rpartition("10") if text[-1] in "⁰¹²³⁴⁵⁶⁷⁸⁹" else (text, "", "")
    if not times:
        return float(text)
    return float(mantissa.removesuffix(" × ") or 1) * 10.0 ** int(power.translate(RAISED))


def test_numbers_are_read_as_they_are_shown():
    shown = ["−2.5\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}10⁻⁷", "10⁵", "0.25", "−3"]
    assert [number(text) for text in shown] == [-2.5e-7, 1e5, 0.25, -3.0]


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


def test_a_lower_temperature_concentrates_and_certificates_stay_above_attacks(page):
    found = []
    for position in (1.5, 0, -1):
        page.slide("head-temperature", position)
        entropy, most = (number(each) for each in page.text("head-entropy").split(" ")[:3:2])
        local, ball = (number(page.text(f"head-{name}")) for name in ("local", "ball"))
        attack = number(page.text("head-attack").split(" ")[0])
        floor = number(page.text("head-floor").split(" ")[0])
        assert attack <= local * 1.01 <= ball * 1.02  # shown with three digits
        assert floor <= entropy <= most
        found.append(entropy)
    assert found == sorted(found, reverse=True)


def test_a_sink_takes_the_attention_and_a_change_ends_the_search(page):
    before = number(page.text("head-sink").split(" ")[0])
    page.slide("head-sinking", 6)
    assert number(page.text("head-sink").split(" ")[0]) > 2 * before
    gain, floor = page.text("head-gain").split(" ≥ ")
    assert number(gain) >= number(floor) * 0.99
    page.slide("head-length", 4)
    page.run("document.getElementById('head-search').click()")
    for _ in range(200):
        page.settle()
        if "step" not in page.text("head-ball-attack"):
            break
    reached = number(page.text("head-ball-attack").split(" ")[0])
    assert number(page.text("head-attack").split(" ")[0]) * 0.99 <= reached
    assert reached <= number(page.text("head-ball"))
    page.slide("head-length", 5)
    assert page.text("head-ball-attack") == "not searched"


def test_bounds_fall_with_samples_and_few_samples_make_all_vacuous(page):
    page.slide("bounds-m", 1)
    assert page.text("bounds-standing").startswith("All bounds are vacuous")
    page.slide("bounds-m", 9)
    assert page.text("bounds-standing").startswith("Smallest: ")
    gap = "return [...document.querySelectorAll('#bounds-table tr td:nth-child(2)')]"
    fixed = [number(text) for text in page.run(f"{gap}.map(e => e.textContent)")]
    shown = page.run("return document.querySelector('#bounds-table .smallest td').textContent")
    assert number(shown) == min(fixed)
    page.run("document.getElementById('bounds-fixed').click()")
    page.settle()
    measured = [number(text) for text in page.run(f"{gap}.map(e => e.textContent)")]
    assert all(after >= before for before, after in zip(fixed, measured, strict=True))
    assert min(measured) > min(fixed)


def test_training_curves_are_computed_to_the_end(page):
    page.slide("mixture-n", 4)
    for _ in range(2000):
        page.settle()
        if page.text("mixture-step") == "300 of 300":
            break
    assert page.text("mixture-step") == "300 of 300"
    values = "return [...document.querySelectorAll('#mixture-train-keys b')]"
    losses = [number(text) for text in page.run(f"{values}.map(e => e.textContent)")]
    assert len(losses) == 5
    assert all(0 < loss < 0.6 for loss in losses)
