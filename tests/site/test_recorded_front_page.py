"""The front page of the published records in a browser: its length in print, and its tables."""

from pathlib import Path

import pandas as pd
import pytest
from headless_browser import BOOKLET, SHEET, browser

from attlas.experiments.store import Store, published_store
from attlas.site.atlas import write_atlas
from attlas.site.page import style_sheet
from attlas.site.tables import table_html

pytestmark = pytest.mark.thorough

BROKEN_CELLS = """
const lines = cell => {
  const range = document.createRange(); range.selectNodeContents(cell);
  const boxes = [...range.getClientRects()].filter(box => box.width);
  return new Set(boxes.map(box => Math.round(box.bottom / 6)));
};
return [...document.querySelectorAll('th, td')].filter(cell => cell.checkVisibility())
  .map(cell => [cell.innerText.trim(), lines(cell).size])
  .map(([text, count]) => [text, count, text.split(/\\s+/).length])
  .filter(([text, count, words]) => count > 3 && words > 3 && words < 1.7 * count)
"""
"""Cells of more than three lines and words, of which most lines hold one; a sign stands above."""
EXPERIMENT_TABLE = """<!doctype html><meta name="viewport" content="width=device-width">
<style>{style}</style><main><article class="card experiment">{table}</article></main>"""


@pytest.fixture(scope="module")
def front(tmp_path_factory) -> Path:
    """The front page of the published records, without figures but for those of its cards."""
    place = tmp_path_factory.mktemp("records") / "atlas.html"
    store = Store(place.with_name("results"))
    return write_atlas(store, place, published=published_store(), first=True)


@pytest.fixture(scope="module")
def chromium():
    with browser() as page:
        yield page


def test_it_prints_as_a_booklet(chromium, front):
    chromium.open(front, SHEET, media="print")
    assert chromium.run("return document.documentElement.scrollWidth") <= SHEET
    assert 1 < chromium.sheets() <= BOOKLET


@pytest.mark.parametrize("width", [1280, 390])
def test_no_cell_has_one_word_a_line(chromium, front, tmp_path, width):
    heads = ("least norm-based gap, heads alone", "chain, softmax constant 1: sequences")
    frame = pd.DataFrame({f"{head} ({k})": ["0.964 (0.892 to 1)", "602 (526 to 710)"]
                          for k in range(6) for head in heads})  # fmt: skip
    page = tmp_path / "table.html"
    table = table_html(frame, "A caption that is longer than a telephone is wide, by some words")
    page.write_text(EXPERIMENT_TABLE.format(style=style_sheet(), table=table), encoding="utf-8")
    for place in (front, page):
        chromium.open(place, width)
        assert chromium.run(BROKEN_CELLS) == []
        assert chromium.run("return document.documentElement.scrollWidth") <= width
    caption = "return document.querySelector('caption').getBoundingClientRect().right"
    assert chromium.run(caption) <= width
