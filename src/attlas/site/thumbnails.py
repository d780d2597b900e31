"""Thumbnails: the first panel of a figure as a picture of about 1,000 bytes."""

import base64
import io

from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import TransformedBbox

WIDTH, HEIGHT = 144, 96
"""Pixels."""
MOST_CHARACTERS = 2500
"""Longest data URL; a larger picture is compressed more."""
_QUALITIES = (30, 10, 1)


def thumbnail(figure: Figure) -> str:
    """The first panel without text, as the data URL of a WebP picture on white; empty without one.

    The figure, which must have been drawn, is spoilt: its other panels, legends and axes are
    hidden, and its layout is frozen.

    Examples:
        >>> figure = Figure(figsize=(2, 1))
        >>> _ = figure.subplots().plot([0, 1])
        >>> thumbnail(figure)[:23]
        'data:image/webp;base64,'
    """
    if not figure.axes:
        return ""
    figure.set_layout_engine("none")
    panel, *others = figure.axes
    for artist in (*others, *figure.findobj(Legend), *figure.findobj(Text)):
        artist.set_visible(False)
    panel.set_axis_off()
    # Frozen, as the picture's resolution would move it.
    box = TransformedBbox(panel.bbox, figure.dpi_scale_trans.inverted()).frozen()
    resolution = min(WIDTH / box.width, HEIGHT / box.height)
    for quality in _QUALITIES:
        buffer = io.BytesIO()
        figure.savefig(
            buffer,
            format="webp",
            dpi=resolution,
            bbox_inches=box,
            facecolor="white",
            pil_kwargs={"quality": quality, "method": 4},
        )
        address = f"data:image/webp;base64,{base64.b64encode(buffer.getvalue()).decode()}"
        if len(address) <= MOST_CHARACTERS:
            return address
    return ""
