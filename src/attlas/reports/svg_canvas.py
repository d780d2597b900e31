"""A canvas that draws a figure as SVG once, with one renderer, and parses each formula once.

`Figure.savefig` draws twice. Its layout measures all words with a renderer of its own, and each
renderer parses mathematics anew: the number at a tick of every figure. Here words are laid out
with the renderer that draws them, and what was parsed is kept for all figures of the process.
"""

import functools
from typing import IO

from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser, VectorParse
from matplotlib.textpath import TextToPath

MOST_FORMULAS = 4096
"""Kept; a whole atlas has some hundreds."""


class SVGCanvas(FigureCanvasSVG):
    """The canvas of a figure while it is drawn, of 72 dots per inch.

    Args:
        figure: the figure; the canvas becomes its own.
        file: to which the drawing is written.

    Examples:
        >>> import io
        >>> figure, file = Figure(figsize=(2, 1)), io.StringIO()
        >>> canvas = SVGCanvas(figure, file)
        >>> canvas.draw()
        >>> file.getvalue().rstrip().endswith("</svg>")
        True
    """

    def __init__(self, figure: Figure, file: IO[str]):
        super().__init__(figure)
        self._resolution = figure.dpi
        figure.dpi = self.fixed_dpi
        width, height = figure.get_size_inches()
        self._renderer = MixedModeRenderer(
            figure, width, height, self._resolution,
            _Renderer(
                self.fixed_dpi * width, self.fixed_dpi * height, file,
                image_dpi=self._resolution, metadata={"Date": None},
            ),
        )  # fmt: skip

    def get_renderer(self) -> MixedModeRenderer:
        """What draws; a layout measures words with it.

        Returns:
            The one renderer of this canvas.
        """
        return self._renderer

    def draw(self) -> None:
        """Write the whole drawing; once."""
        self.figure.draw(self._renderer)
        self._renderer.finalize()


class _Renderer(RendererSVG):
    def __init__(self, *args: object, **named: object):
        super().__init__(*args, **named)
        self._text2path = _words()


@functools.cache
def _words() -> TextToPath:
    words = TextToPath()
    words.mathtext_parser = _Parser("path")
    return words


class _Parser(MathTextParser):
    def parse(
        self, s: str, dpi: float = 72, prop: FontProperties | None = None, **named: bool | None
    ) -> VectorParse:
        # A copy: the hash of font properties changes with them.
        return self._kept(s, dpi, prop and prop.copy(), **named)

    @functools.lru_cache(MOST_FORMULAS)  # noqa: B019 (there is one parser)
    def _kept(
        self, s: str, dpi: float, prop: FontProperties | None, **named: bool | None
    ) -> VectorParse:
        return super().parse(s, dpi, prop, **named)
