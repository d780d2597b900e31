"""Figures take the page's ink, refer within themselves, and stay small."""

import io
import re

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

from attlas.site.figures import embed


def _figure(points=3, image=False):
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot(np.arange(points) % 17, "o-", color="black", label="a")
    if image:
        axes.imshow(np.eye(3))
    axes.grid(color="#808080")
    axes.legend()
    return figure


def test_a_drawing_has_no_style_no_namespace_and_no_address():
    drawing = embed(_figure(image=True), "three points")
    assert drawing.startswith("<svg")
    assert "style" not in drawing
    assert "xmlns" not in drawing
    assert "http" not in drawing
    assert 'href="data:image/png;base64,' in drawing


def test_a_drawing_is_what_savefig_gives_and_leaves_the_figure_as_it_was():
    figure, other = (plt.figure(figsize=(3, 2), layout="constrained") for _ in range(2))
    for each in (figure, other):
        each.subplots(1, 2)[1].semilogy([1, 10, 1000], label="a")
        each.axes[1].set_ylabel("$x_1$")
        each.axes[1].legend()
    canvas, resolution = figure.canvas, figure.dpi
    drawing = embed(figure, "a line")
    assert (figure.canvas, figure.dpi) == (canvas, resolution)
    buffer = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "attlas"}):
        other.savefig(buffer, format="svg", metadata={"Date": None})
    placed = re.findall(r' d="(M[^"]*)"', drawing)
    assert len(placed) > 10
    assert [" ".join(d.split()) for d in placed] == [
        " ".join(d.split()) for d in re.findall(r' d="(M[^"]*)"', buffer.getvalue())
    ]
    plt.close("all")


def test_black_is_ink_white_is_paper_grey_is_thin_ink():
    drawing = embed(_figure(), "three points")
    assert "#000000" not in drawing
    assert "#ffffff" not in drawing
    assert "currentColor" in drawing
    assert "var(--card)" in drawing
    # 0x80 / 0xff of white leaves 1 - 128/255 of ink.
    assert 'stroke-opacity="0.498"' in drawing


def test_references_of_two_drawings_do_not_meet():
    first, second = embed(_figure(3), "one"), embed(_figure(4), "two")
    names = [set(re.findall(r' id="([^"]+)"', drawing)) for drawing in (first, second)]
    assert names[0]
    assert not names[0] & names[1]
    for drawing, known in zip((first, second), names, strict=True):
        used = set(re.findall(r'href="#([^"]+)"', drawing))
        used |= set(re.findall(r"url\(#([^)]+)\)", drawing))
        assert used
        assert used <= known


def test_the_same_figure_gives_the_same_drawing():
    assert embed(_figure(), "one") == embed(_figure(), "one")


def test_a_large_drawing_becomes_a_picture_on_white():
    picture = embed(_figure(points=20_000), 'many "points"')
    assert picture.startswith('<img class="drawing on-white" alt="many &#34;points&#34;"')
    assert "data:image/png;base64," in picture


def test_one_panel_is_not_as_wide_as_four():
    one, four = (embed(Figure(figsize=(width, 3)), "empty") for width in (3.6, 13.2))
    assert ' width="350" class="drawing"' in one
    assert ' width="832" class="drawing"' in four


def test_a_wide_figure_has_parts_that_refer_to_it():
    figure = Figure(figsize=(10, 3))
    for part in np.ravel(figure.subfigures(1, 2)):
        part.subplots().plot([0, 1])
    whole, segments = embed(figure, "two panels").split('<div class="cuts" aria-hidden="true">')
    (name,) = re.findall(r'<g id="(\w+-figure_1)"', whole)
    assert 'class="drawing cut"' in whole
    assert segments.count(f'<use href="#{name}"') == 2
    assert re.findall(r'viewBox="(\d+) 0 360 216"', segments) == ["0", "0", "0", "360"]


def test_a_wide_drawing_of_one_piece_is_moved_and_a_narrow_one_is_not():
    pictures = []
    for width in (3.0, 8.0):
        figure = Figure(figsize=(width, 2))
        figure.subplots().plot([0, 1])
        pictures.append(embed(figure, "one line"))
    narrow, wide = pictures
    assert narrow.startswith("<svg")
    assert wide.startswith('<div class="scroll whole" role="region"')
    assert 'tabindex="0"' in wide
