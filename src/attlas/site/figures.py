"""Matplotlib figures as inline pictures in the colours of the page.

A figure becomes inline SVG whose black and greys are the page's text colour with some opacity, and
whose white is the page's background, so that one drawing serves light, dark and print. The page's
content policy forbids `style` attributes, which become presentation attributes. A large drawing
(many points) becomes a PNG on white.
"""

import base64
import hashlib
import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence

import matplotlib as mpl
from markupsafe import Markup
from matplotlib.figure import Figure

from attlas.site.layout import laid_out
from attlas.site.narrow_screen import Segment, segments_of
from attlas.site.svg_canvas import SVGCanvas

LARGEST_SVG = 400_000
"""Characters of SVG above which a figure is drawn as PNG."""

WIDEST = 832
"""Largest width of a figure on the page, in pixels."""
PIXELS = 1.35
"""Pixels per point of a narrower figure: one panel must not become as wide as four."""
NARROW = 480
"""Pixels up to which a figure fits a telephone; a wider one is split there."""
WIDEST_SEGMENT = 300.0
"""Points up to which a part of a figure is not split further."""

_PLAIN = {"fill": "currentColor", "stroke-linejoin": "round", "stroke-linecap": "butt"}
"""Replaces matplotlib's style sheet, which is dropped; glyphs have no colour of their own."""
_SVG = "{http://www.w3.org/2000/svg}"
_XLINK = "{http://www.w3.org/1999/xlink}"
_DROPPED = frozenset({"metadata", "style", "script", "foreignObject", "a", "title"})
_GREY = re.compile(r"#([0-9a-f]{2})\1\1")


def embed(figure: Figure, alt: str) -> Markup:
    """The figure as an `<svg>`, or an `<img>` with a data URL; the figure is not changed.

    Examples:
        >>> figure = Figure(figsize=(2, 1))
        >>> _ = figure.subplots().plot([0, 1])
        >>> embed(figure, "a line")[:43]
        Markup('<svg viewBox="0 0 144 72" role="img" aria-l')
    """
    text, segments = _drawn_once(figure)
    if len(text) > LARGEST_SVG:
        return _png(figure, alt)
    wide = _shown_width(72 * figure.get_figwidth()) > NARROW
    drawing = _svg(text, alt, segments if wide else ())
    return _box(drawing, alt) if wide and len(segments) < 2 else drawing


def _box(drawing: Markup, alt: str) -> Markup:
    """A wide drawing of one piece, which a telephone shows in a box in which it is moved."""
    return Markup(
        '<div class="scroll whole" role="region" aria-label="{}" tabindex="0">{}</div>'
    ).format(f"Drawing: {alt}", drawing)


def pixels_per_point(figure: Figure) -> float:
    """The scale at which a page shows a figure.

    Examples:
        >>> pixels_per_point(Figure(figsize=(2, 1)))
        1.35
    """
    width = 72 * figure.get_figwidth()
    return min(PIXELS, WIDEST / width)


def _drawn_once(figure: Figure) -> tuple[str, tuple[Segment, ...]]:
    """The figure as matplotlib's SVG, and its parts; `savefig` gives the same but draws twice."""
    before, resolution = figure.canvas, figure.dpi
    buffer = io.StringIO()
    try:
        with mpl.rc_context({"svg.fonttype": "path", "svg.hashsalt": "attlas"}):
            canvas = SVGCanvas(figure, buffer)
            with laid_out(figure):
                canvas.draw()
            # Measured as it was drawn: letters on a raster have other heights.
            segments = segments_of(figure, WIDEST_SEGMENT)
    finally:
        figure.dpi = resolution
        figure.set_canvas(before)
    return buffer.getvalue(), segments


def _svg(text: str, alt: str, segments: Sequence[Segment]) -> Markup:
    root = ElementTree.fromstring(text)
    width, height = (f"{float(v):g}" for v in root.attrib["viewBox"].split()[2:])
    # Two figures on a page must not share names, by which glyphs and clip paths are referenced.
    prefix = "f" + hashlib.sha256((alt + text).encode()).hexdigest()[:8]
    drawing = ElementTree.Element(
        "svg",
        {
            "viewBox": f"0 0 {width} {height}",
            "role": "img",
            "aria-label": alt,
            "width": f"{_shown_width(float(width))}",
            "class": "drawing cut" if len(segments) > 1 else "drawing",
            **_PLAIN,
        },
    )
    drawing.extend(_copied(child, prefix) for child in root if _name(child) not in _DROPPED)
    elements = (
        [drawing, _segmented(segments, f"#{prefix}-figure_1")] if len(segments) > 1 else [drawing]
    )
    return Markup("".join(ElementTree.tostring(part, encoding="unicode") for part in elements))


def _segmented(segments: Sequence[Segment], drawing: str) -> ElementTree.Element:
    """The segments for narrow screens; each shows its part of the drawing, which is there once."""
    column = ElementTree.Element("div", {"class": "cuts", "aria-hidden": "true"})
    for segment in segments:
        box = {"viewBox": f"0 0 {segment.width:g} {segment.height:g}"}
        attributes = {"width": f"{PIXELS * segment.width:.0f}", "class": "drawing", **box}
        nested = ElementTree.SubElement(column, "svg", {**_PLAIN, **attributes})
        start = 0.0
        for left, right in segment.pieces:
            size = {"width": f"{right - left:g}", "height": f"{segment.height:g}"}
            seen = f"{left:g} {segment.band[0]:g} {right - left:g} {segment.height:g}"
            part = ElementTree.SubElement(
                nested, "svg", {"x": f"{start:g}", **size, "viewBox": seen}
            )
            ElementTree.SubElement(part, "use", {"href": drawing})
            start += right - left
    return column


def _shown_width(points: float) -> int:
    return min(WIDEST, round(PIXELS * points))


def _name(node: ElementTree.Element) -> str:
    return node.tag.removeprefix(_SVG)


def _copied(node: ElementTree.Element, prefix: str) -> ElementTree.Element:
    attributes: dict[str, str] = {}
    for name, value in node.attrib.items():
        if name == "style":
            for declaration in filter(None, (d.strip() for d in value.split(";"))):
                key, setting = (part.strip() for part in declaration.split(":", 1))
                attributes[key] = setting
        elif name == f"{_XLINK}href":
            attributes["href"] = value
        elif not name.startswith("{"):
            attributes[name] = value
    new = ElementTree.Element(_name(node), _renamed(_recoloured(attributes), prefix))
    new.text, new.tail = _stripped(node.text), _stripped(node.tail)
    new.extend(_copied(child, prefix) for child in node if _name(child) not in _DROPPED)
    return new


def _stripped(text: str | None) -> str | None:
    return text if text and text.strip() else None


def _renamed(attributes: dict[str, str], prefix: str) -> dict[str, str]:
    """Names of this drawing, and references to them, with the drawing's prefix."""
    new = {}
    for key, value in attributes.items():
        if key == "id":
            value = f"{prefix}-{value}"
        elif key == "href" and value.startswith("#"):
            value = f"#{prefix}-{value[1:]}"
        elif "url(#" in value:
            value = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", value)
        new[key] = value
    return new


def _recoloured(attributes: dict[str, str]) -> dict[str, str]:
    """White becomes the page's background; black and greys its text colour with an opacity."""
    new = dict(attributes)
    for key in ("fill", "stroke"):
        grey = _GREY.fullmatch(new.get(key, "").lower())
        if grey is None:
            continue
        level = int(grey.group(1), 16) / 255
        if level == 1:
            new[key] = "var(--card)"
            continue
        new[key] = "currentColor"
        if level:
            opacity = float(new.get(f"{key}-opacity", "1"))
            new[f"{key}-opacity"] = f"{opacity * (1 - level):.3g}"
    return new


def _png(figure: Figure, alt: str) -> Markup:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=160, facecolor="white", metadata={"Software": None})
    data = base64.b64encode(buffer.getvalue()).decode()
    width = _shown_width(72 * figure.get_figwidth())
    picture = Markup(
        '<img class="drawing on-white" alt="{}" width="{}" loading="lazy" decoding="async" '
        'src="data:image/png;base64,{}">'
    ).format(alt, width, data)
    return _box(picture, alt) if width > NARROW else picture
