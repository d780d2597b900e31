"""One renderer lays out and draws, and a formula is parsed once for all figures."""

import io

from matplotlib.figure import Figure
from matplotlib.mathtext import MathTextParser

from attlas.site.svg_canvas import SVGCanvas


def _drawn(formula):
    figure, file = Figure(figsize=(2, 1)), io.StringIO()
    figure.text(0.5, 0.5, formula)
    canvas = SVGCanvas(figure, file)
    assert canvas.get_renderer() is canvas.get_renderer()
    canvas.draw()
    return file.getvalue()


def test_a_second_figure_with_the_same_formula_parses_nothing(monkeypatch):
    first = _drawn(r"$\sum_{k} \zeta_k$")

    def parse(*_args, **_named):
        raise AssertionError("parsed again")

    monkeypatch.setattr(MathTextParser, "parse", parse)
    assert _drawn(r"$\sum_{k} \zeta_k$").count("<use") == first.count("<use") > 0


def test_the_drawing_is_whole():
    drawing = _drawn("plain words")
    assert drawing.lstrip().startswith("<?xml")
    assert drawing.rstrip().endswith("</svg>")
