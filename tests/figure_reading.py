"""What a reader misses who sees a figure with its caption and how to read it, and nothing else."""

import re
from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
from figure_texts import pieces, texts_of
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.container import Container
from matplotlib.figure import Figure
from matplotlib.text import Text

from attlas.experiments.experiment import CaptionedFigure
from attlas.experiments.panels.image_strip import NO_VALUE
from attlas.experiments.panels.legend_keys import is_key
from attlas.experiments.reading import UNRECORDED
from attlas.site.figures import pixels_per_point
from attlas.site.readable import enlarge_small_text

MOST_WORDS = 155
"""Of a reading; a formula counts as one word."""
LABELS = ("Shown", "Across", "Up", "Marks", "Data", "Cited")
_PIXEL = 1.0
_NUMBERED = re.compile(r"\b(?:Theorem|Lemma|Corollary|Proposition)s? [A-Z]?[\d.]+")
_BRACKETS = re.compile(r"\([^()]*\)")
_REPEATED = re.compile(r"\b(?:runs?|once|draws?|drawn|draw|starts?|seeds?|no training)\b")


def reading_faults(captioned: CaptionedFigure) -> list[str]:
    """The faults of a figure's axes, legend, names of bounds, blank cells and reading, sorted."""
    figure, reading = captioned.figure, captioned.reading
    return sorted({
        *axis_faults(figure),
        *absent_lines(figure),
        *theorem_faults(figure, f"{captioned.caption} {reading}"),
        *blank_cells(figure),
        *colliding_labels(figure),
        *text_faults(reading),
    })  # fmt: skip


def text_faults(reading: str) -> Iterator[str]:
    """A reading without data, model or number of runs, that is too long or no full sentences."""
    if UNRECORDED in reading:
        yield "reading with a setting that is not recorded"
    if not re.search(r"\bdata\b|\bnetworks\b", reading):
        yield "reading without data"
    if not re.search(r"\b(?:models?|networks|attention head)\b", reading):
        yield "reading without a model"
    if not _REPEATED.search(reading):
        yield "reading without a number of runs"
    words = len(re.sub(r"\$[^$]*\$", "formula", reading).split())
    if words > MOST_WORDS:
        yield f"reading of {words} words"
    yield from item_faults(reading)


def typed_numbers(template: str) -> Iterator[str]:
    """Decimals, shares and numbers of several digits outside of formulas and settings."""
    bare = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\$[^$]*\$|\(\d{4}\)", " ", template)
    bare = re.sub(r"\b(?:Theorem|Lemma|Corollary|Table|Figure)s? [A-Z]?\.?[\d.]*\d", " ", bare)
    yield from re.findall(r"\d+(?:\.\d+)? %|\d+\.\d+|\d{2,}", bare)


def item_faults(reading: str) -> Iterator[str]:
    """Items without a label or a full stop, and a reading that says not what is drawn and where."""
    labels = [item.partition(":")[0].partition(",")[0] for item in reading.splitlines()]
    yield from (f"item without a label: {label}" for label in labels if label not in LABELS)
    if labels[:1] != ["Shown"] or not {"Up", "Across", "Marks"} & set(labels):
        yield "reading that does not say what is shown and on which axes"
    for item in reading.splitlines():
        if not item.endswith("."):
            yield f"item that ends without a full stop: {item[-30:]}"


def axis_faults(figure: Figure) -> Iterator[str]:
    """Axes without a label that share none which stands beside them."""
    for axes in figure.axes:
        colours = axes.get_label() == "<colorbar>"
        if colours and not axes.get_ylabel() + axes.get_xlabel():
            yield "colours without a label"
        if colours or not axes.has_data():
            continue
        for which, shared in (("x", axes.get_shared_x_axes()), ("y", axes.get_shared_y_axes())):
            beside = [each for each in figure.axes if each is axes or shared.joined(axes, each)]
            labels = [getattr(each, f"get_{which}label")() for each in beside]
            if getattr(axes, f"get_{which}ticks")().size and not any(labels):
                yield f"axis {which} without a label: {axes.get_title()}"


def absent_lines(figure: Figure) -> Iterator[str]:
    """Entries of a legend that a panel lacks, unsaid."""
    for piece in pieces(figure):
        texts = [
            " ".join(text.get_text().split())
            for legend in piece.legends
            for text in legend.get_texts()
        ]
        frames = [axes for axes in piece.axes if axes.has_data()]
        for text in texts:
            having = [axes for axes in frames if _has(axes, text)]
            if any(_is_key(axes, text) for axes in having):
                continue
            if having and len(having) < len(frames) and "no value" not in text:
                yield f"absent from a panel: {text}"


def _is_key(axes: Axes, text: str) -> bool:
    entries = zip(*axes.get_legend_handles_labels(), strict=True)
    return any(is_key(handle) and label == text for handle, label in entries)


def _has(axes: Axes, text: str) -> bool:
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
        drawn = handle[0] if isinstance(handle, Container) else handle
        if is_key(drawn) and text == label:
            return True
        if text.startswith(" ".join(label.split())):
            points = drawn.get_xydata() if hasattr(drawn, "get_xydata") else np.zeros((1, 2))
            if np.isfinite(np.asarray(points, dtype=float)).all(axis=-1).any():
                return True
    return False


def theorem_faults(figure: Figure, beside: str) -> Iterator[str]:
    """Theorems that stand for what they say, or of which nobody says whose they are."""
    for text in texts_of(figure):
        if not _NUMBERED.search(text):
            continue
        words = _BRACKETS.sub(" ", text)
        if _NUMBERED.search(words) or len(re.findall(r"[a-z]{3,}", words)) < 2:
            yield f"a theorem in place of words: {text}"
        if not re.search(r"[A-Z][a-z]+ (?:et al\.|and [A-Z][a-z]+|\(\d{4}\))", f"{text} {beside}"):
            yield f"whose theorem?: {text}"


def blank_cells(figure: Figure) -> Iterator[str]:
    """Cells of pictures and maps without a value and without a mark."""
    for axes in figure.axes:
        marked = any(text.get_text() == NO_VALUE for text in axes.texts)
        arrays = [image.get_array() for image in axes.images]
        arrays += [mesh.get_array() for mesh in axes.collections if isinstance(mesh, QuadMesh)]
        for array in filter(lambda each: each is not None and each.ndim == 2, arrays):
            blank = ~np.isfinite(np.ma.filled(array.astype(float), np.nan))
            gaps = blank.all(axis=0)[None, :] | blank.all(axis=1)[:, None]
            if (blank & ~gaps).any() and not marked:
                yield f"blank cell: {axes.get_title()}"


def colliding_labels(figure: Figure) -> Iterator[str]:
    """Labels of axes and titles that lie over each other, or beyond the figure, on a page."""
    enlarge_small_text(figure, pixels_per_point(figure))
    figure.draw_without_rendering()
    labels = [
        (text.get_text(), text.get_window_extent())
        for axes in figure.axes
        for text in (axes.xaxis.label, axes.yaxis.label, axes.title)
        if text.get_visible() and text.get_text()
    ]
    frame = figure.bbox.padded(_PIXEL)
    for text, box in labels:
        if not (frame.contains(*box.min) and frame.contains(*box.max)):
            yield f"label beyond the figure: {text}"
    for (first, box), (second, beside) in combinations(labels, 2):
        if box.padded(-_PIXEL).overlaps(beside.padded(-_PIXEL)):
            yield f"labels over each other: {first} and {second}"
    for axes in figure.axes:
        for ticks in (axes.get_xticklabels(), axes.get_yticklabels()):
            drawn = [tick for tick in ticks if tick.get_visible() and tick.get_text()]
            for first, second in pairwise(drawn):
                if tick_labels_collide(first, second):
                    yield f"ticks over each other: {first.get_text()} and {second.get_text()}"


def tick_labels_collide(first: Text, second: Text) -> bool:
    """Whether two neighbouring ticks have texts over each other; tilted ones lie side by side."""
    box, beside = (tick.get_window_extent() for tick in (first, second))
    if angle := first.get_rotation():
        apart = (beside.x1 - box.x1) * np.sin(np.deg2rad(angle))
        return apart < first.get_fontsize() * first.figure.dpi / 72
    return box.padded(-_PIXEL).overlaps(beside.padded(-_PIXEL))
