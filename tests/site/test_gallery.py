"""The gallery has every figure, its data, and what it is about."""

import csv
import io
from dataclasses import replace

import pytest

from attlas.experiments.store import Store
from attlas.site.atlas import gather
from attlas.site.gallery import exhibits, statements_of
from attlas.site.pages import places_of, render_pages
from attlas.site.public_names import public_names


@pytest.fixture
def atlas(store, claims, errata, experiments):
    return gather(store, claims, errata, experiments)


def test_every_figure_has_a_card_with_its_data_and_its_page(atlas):
    pages = dict(render_pages(atlas, "atlas.html", "atlas"))
    (exhibit,) = exhibits(atlas)
    anchor = exhibit.drawing.anchor
    card = pages["gallery.html"].split('class="cards gallery"')[1].split("</ul>")[0]
    assert f'href="{places_of(atlas)[anchor]}#{anchor}"' in card
    assert f'href="{anchor}.csv"' in card
    assert "<script>alert" not in card
    lines = list(csv.DictReader(io.StringIO(pages[f"{anchor}.csv"])))
    assert [float(line["y"]) for line in lines] == [0.0, 1.0, 2.0, 3.0]
    assert f'href="{anchor}.csv"' in pages[places_of(atlas)[anchor]]


def test_statements_that_a_figure_names_are_those_of_its_paper(atlas):
    (paper,) = atlas.papers
    (exhibit,) = exhibits(atlas)
    drawing = replace(exhibit.drawing, caption="As Lemma 1 and Lemmas 2 say, not Lemma 11 nor 9.")
    found = statements_of(paper, exhibit.entry, drawing)
    assert [name for name, _ in found] == ["Lemma 1", "Lemma 2"]
    assert {anchor for _, anchor in found} <= {entry.anchor for entry in paper.claims} | {
        anchor for anchor in places_of(atlas) if anchor.startswith("theorem")
    }


def test_names_are_those_that_a_file_imports_from_the_library(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "from attlas.solvers.attention_svm import attention_svm, _hidden\n"
        "from attlas._jax.processes import cores\nfrom attlas.experiments.grid import Grid\n"
        "import numpy as np\nfrom .other import thing\n"
    )
    assert public_names(str(file)) == ("attlas.solvers.attention_svm.attention_svm",)


def test_without_figures_the_gallery_says_how_to_make_them(tmp_path, claims, errata, experiments):
    atlas = gather(Store(tmp_path / "none"), claims, errata, experiments)
    pages = dict(render_pages(atlas, "atlas.html", "atlas"))
    assert "attlas run all" in pages["gallery.html"]
