"""What a figure does to its reader's eyes: colours too near, two summaries, words for no place."""

import re
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.lines import Line2D

from attlas.experiments.experiment import CaptionedFigure
from attlas.experiments.panels.legend_keys import is_key
from attlas.experiments.short_caption import split_caption

NEAREST = 0.09
"""Least distance in OKLab of two colours of one frame; 0.02 is just seen in plain patches."""
SCHEMES = {"light": ("#1d1e23", "#ffffff"), "dark": ("#e7e5df", "#1b1d22")}
"""Ink and background of a card on a page, by scheme; greys of a figure become shares of the ink."""
_LMS = np.array([
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
])  # fmt: skip
_LAB = np.array([
    [0.2104542553, 0.7936177850, -0.0040720468],
    [1.9779984951, -2.4285922050, 0.4505937099],
    [0.0259040371, 0.7827717662, -0.8086757660],
])  # fmt: skip
_MIDDLE = re.compile(r"\b(geometric means|means|medians) over\b")
_ROWS = re.compile(r"\b(?:above|below|upper|lower row|top)\b")
_COLUMNS = re.compile(r"\b(?:left|right)\b", re.IGNORECASE)


def look_faults(captioned: CaptionedFigure) -> list[str]:
    """The faults of a figure's colours, summaries and words for places, sorted."""
    return sorted({*colour_faults(captioned), *summary_faults(captioned), *place_faults(captioned)})


def oklab(colour: str) -> np.ndarray:
    """Lightness and two hues of a colour, in which equal distances look equal (Ottosson, 2020)."""
    rgb = np.asarray(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return np.asarray(_LAB @ np.cbrt(_LMS @ linear))


def on_page(colour: str, scheme: str) -> tuple[float, float, float]:
    """A colour as a page shows it: greys are the page's ink, more or less opaque."""
    red, green, blue = to_rgb(colour)
    if not red == green == blue:
        return red, green, blue
    ink, paper = (np.asarray(to_rgb(each)) for each in SCHEMES[scheme])
    mixed = (1 - red) * ink + red * paper
    return float(mixed[0]), float(mixed[1]), float(mixed[2])


def colour_faults(captioned: CaptionedFigure) -> Iterator[str]:
    """Two series of one frame with one look but for colours that are hardly told apart."""
    for axes in captioned.figure.axes:
        for (first, look), (second, beside) in combinations(series_of(axes), 2):
            if look[1:] != beside[1:] or look[0] == beside[0]:
                continue
            for scheme in SCHEMES:
                one, two = (oklab(on_page(each[0], scheme)) for each in (look, beside))
                apart = float(np.linalg.norm(one - two))
                if apart < NEAREST:
                    yield f"colours {apart:.3f} apart ({scheme}): {first} and {second}"


def series_of(axes: Axes) -> list[tuple[str, tuple[object, ...]]]:
    """The series in a legend of a frame, with colour, dashes and marker."""
    looks = []
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        line = handle[0] if isinstance(handle, ErrorbarContainer) else handle
        if isinstance(line, Line2D) and not is_key(line):
            look = (line.get_color(), line.get_linestyle(), line.get_marker())
            looks.append((label, look))
    return looks


def summary_faults(captioned: CaptionedFigure) -> Iterator[str]:
    """Panels of one figure of which some show means and others medians."""
    middles = sorted(set(_MIDDLE.findall(captioned.reading)))
    if len(middles) > 1:
        yield f"two summaries in one figure: {' and '.join(middles)}"


def place_faults(captioned: CaptionedFigure) -> Iterator[str]:
    """Words for a row or a column of panels in a figure that has only one."""
    frames = [axes for axes in captioned.figure.axes if axes.get_label() != "<colorbar>"]
    captioned.figure.draw_without_rendering()
    boxes = [axes.get_window_extent() for axes in frames]
    rows = any(upper.y0 > lower.y1 for upper in boxes for lower in boxes)
    columns = any(right.x0 > left.x1 for right in boxes for left in boxes)
    caption, _ = split_caption(captioned.caption)
    text = " ".join([*re.findall(r"\([a-z]+\)", caption), *heads_of(captioned.reading, caption)])
    if _ROWS.search(text.lower()) and not rows:
        yield f"words for rows in a figure of one: {text}"
    if _COLUMNS.search(text) and not columns:
        yield f"words for columns in a figure of one: {text}"


def heads_of(reading: str, caption: str) -> Iterator[str]:
    """The words that say of which panels an item or a sentence speaks."""
    yield from re.findall(r"(?m)^(?:Up|Across), ([a-z]+):", reading)
    yield from re.findall(r"(?:^|\. )(Left|Right|Above|Below|Middle)\b", caption)
