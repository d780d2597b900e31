"""A canvas that draws a figure as SVG once, with one renderer, and parses each formula once.

`Figure.savefig` draws twice. Its layout measures text with a separate renderer, and each renderer
parses all mathematics again, tick labels included. Here one renderer measures and draws, and a
cache keeps parsed formulas for all figures of the process.
"""

import functools
from typing import IO

from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.mathtext import MathTextParser, VectorParse
from matplotlib.textpath import TextToPath

DOTS = 72
"""Dots per inch of SVG."""
MOST_FORMULAS = 4096
"""Size of the cache; a whole atlas has some hundreds of formulas."""


class SVGCanvas(FigureCanvasSVG):
    """The canvas of a figure while it is drawn, with 72 dots per inch; it replaces the figure's.

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
        resolution = figure.dpi
        figure.dpi = DOTS
        width, height = figure.get_size_inches()
        vector = _Renderer(DOTS * width, DOTS * height, file, resolution)
        self._renderer = MixedModeRenderer(figure, width, height, resolution, vector)

    def get_renderer(self) -> MixedModeRenderer:
        """The one renderer of this canvas, which also measures text for the layout."""
        return self._renderer

    def draw(self) -> None:
        """Write the whole drawing; may be called once."""
        # The renderer delegates to a `RendererBase` without being one for type checkers.
        self.figure.draw(self._renderer)  # pyright: ignore[reportArgumentType]
        self._renderer.finalize()


class _Renderer(RendererSVG):
    def __init__(self, width: float, height: float, file: IO[str], resolution: float):
        super().__init__(
            width,
            height,
            file,
            image_dpi=resolution,  # pyright: ignore[reportArgumentType] (as matplotlib does)
            metadata={"Date": None},
        )
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
        return self._parse_once(s, dpi, prop and prop.copy(), **named)

    @functools.lru_cache(MOST_FORMULAS)  # noqa: B019 (there is one parser)
    def _parse_once(
        self, s: str, dpi: float, prop: FontProperties | None, **named: bool | None
    ) -> VectorParse:
        return super().parse(s, dpi, prop, **named)
