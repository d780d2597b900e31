"""What a stranger who sees one figure and its caption cannot understand, by rule."""

import re
from collections.abc import Iterator
from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from attlas.display.terminal import plain
from attlas.experiments.experiment import CaptionedFigure
from attlas.experiments.panels.unseen_lines import coincide, in_frame, is_curve
from attlas.experiments.short_caption import MOST_WORDS, split_caption

FAMILIAR = frozenset({
    "ADAM", "CNN", "IMDB", "LSTM", "MLP", "MNIST", "PAC", "RELU", "SVM", "CLS",
})  # fmt: skip
"""Abbreviations that the field uses without an explanation; [CLS] is written in brackets."""
_MATH = re.compile(r"\$([^$]*)\$")
_COMMAND = re.compile(r"\\([A-Za-z]+|.)")
_GREEK = frozenset({
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda", "mu",
    "nu", "xi", "rho", "sigma", "tau", "phi", "Phi", "psi", "Psi", "omega", "Omega", "ell",
    "nabla", "Theta", "Lambda", "Sigma",
})  # fmt: skip
_SYMBOL = re.compile(r"(\\[A-Za-z]+|[A-Za-z])(_(?:\{[^}]*\}|\\[A-Za-z]+|[A-Za-z0-9]))?")
_NOT_NOUNS = frozenset({
    "a", "all", "an", "and", "are", "as", "at", "below", "above", "best", "but", "by", "each",
    "equal", "every", "first", "for", "from", "has", "in", "is", "largest", "last", "least",
    "lowest", "of", "on", "one", "or", "other", "over", "per", "printed", "same", "sharp",
    "smallest", "so", "than", "that", "the", "then", "this", "to", "two", "where", "when", "which",
    "while", "with", "without",
})  # fmt: skip
"""Words before a symbol that do not say what it is."""
_LETTER = re.compile(r"(?<![\w$\\'’.-])[B-HJ-Zb-hj-z](?![\w'’.-])")
_SPELLED = (
    (re.compile(r"\w_\w"), "underscore"),
    (re.compile(r"\b[a-z]+(?:19|20)\d\d[a-z]?\b"), "key of a paper"),
    (re.compile(r"\b[a-z]+[A-Z]\w*\b|\b(?:[A-Z][a-z]+){2,}\b"), "name of a class"),
    (re.compile(r"(?<![\d,])[12],(?:inf\b|\$?\\infty|[12]\b(?!,))"), "norm as in the code"),
    (re.compile(r"\b(?:l1|l2|inf|kl)\b"), "name as in the code"),
    (re.compile(r"^line at "), "line without a meaning"),
    (re.compile(r"10\^\{-?\d*\.\d+\}"), "broken power of ten"),
    (re.compile(r"\d(?:\.\d+)?e[-+−]?\d"), "number as in the code"),
    (re.compile(r"^(?:gap|share|value|weight|movement|drift|norm|image|error)$"), "of what?"),
)
_ALLOWED = re.compile(r"ReLU|DeepMind|LaTeX")


def faults(captioned: CaptionedFigure, template: str = "") -> list[str]:
    """The faults of a figure with its caption, sorted.

    Args:
        template: of the caption, to see whether its first sentence rests on the record.
    """
    caption, _ = split_caption(captioned.caption)
    texts = list(texts_of(captioned.figure))
    problems = [*caption_faults(caption, template), *line_faults(captioned.figure)]
    problems += [f"{fault}: {text}" for text in [*texts, caption] for fault in spelled(text)]
    problems += [f"undefined {symbol}" for symbol in undefined([*texts, caption])]
    problems += [f"undefined {name}" for name in abbreviations([*texts, caption])]
    return sorted({*problems, *unmentioned(captioned.figure, f"{captioned.title}. {caption}")})


def caption_faults(caption: str, template: str) -> Iterator[str]:
    """A caption that is too long, asks, or does not begin with what the record says."""
    if not caption:
        yield "no caption of at most 40 words"
    if max(len(caption.split()), len(plain(caption).split())) > MOST_WORDS:
        yield "caption too long"
    if "?" in caption:
        yield "caption asks"
    start = re.split(r"(?<=[.?])\s+(?=[A-Z$])", template.strip())[0]
    if template and "{{" not in start and "{%" not in start:
        yield f"caption begins without the record: {start[:60]}"


def texts_of(figure: Figure) -> Iterator[str]:
    """Labels, titles, legend entries and ticks in words."""
    for piece in pieces(figure):
        if piece.get_suptitle():
            yield piece.get_suptitle()
        for legend in piece.legends:
            yield from (" ".join(text.get_text().split()) for text in legend.get_texts())
    for axes in figure.axes:
        labels = (axes.get_title(), axes.get_xlabel(), axes.get_ylabel())
        yield from (" ".join(label.split()) for label in labels if label)
        ticks = [*axes.get_xticklabels(), *axes.get_yticklabels()]
        legend = axes.get_legend()
        entries = legend.get_texts() if legend else []
        for text in (*ticks, *entries, *axes.texts):
            shown = " ".join(text.get_text().split())
            if any(sign.isalpha() for sign in shown.replace("mathdefault", "")):
                yield shown


def pieces(figure: Figure | SubFigure) -> Iterator[Figure | SubFigure]:
    """A figure and the subfigures in it."""
    yield figure
    for piece in figure.subfigs:
        yield from pieces(piece)


def spelled(text: str) -> Iterator[str]:
    """Spellings of the code in a text outside its formulas, and numbers that nobody reads."""
    words = _ALLOWED.sub("", _MATH.sub(" ", text)).strip()
    for pattern, fault in _SPELLED:
        if pattern.search(text if "power" in fault else words):
            yield fault


def symbols(text: str) -> dict[str, None]:
    """The symbols of a text: in formulas with their indices, and single letters elsewhere."""
    names = {}
    for formula in _MATH.findall(text):
        bare = re.sub(r"\\(?:text|mathrm|operatorname|mathbf|mathdefault)\{[^}]*\}", " ", formula)
        for match in _SYMBOL.finditer(bare):
            letter = match[1].removeprefix("\\")
            if letter != "ell" and (not match[1].startswith("\\") or letter in _GREEK):
                names[f"{letter}{match[2] or ''}"] = None
    words = _MATH.sub(" ", text)
    return names | dict.fromkeys(_LETTER.findall(words))


def undefined(texts: list[str]) -> Iterator[str]:
    """The symbols that no text beside the figure defines."""
    joined = " | ".join(" ".join(text.split()) for text in texts)
    for name in dict.fromkeys(name for text in texts for name in symbols(text)):
        if not defines(joined, name):
            yield name


def defines(text: str, name: str) -> bool:
    """Whether a text has a noun before a symbol, or its meaning behind it."""
    letter, mark, index = name.partition("_")
    source = re.escape((f"\\{letter}" if letter in _GREEK else letter) + mark + index)
    before = rf"([A-Za-z]{{3,}}),? (?:\$\\?{{0}}{source}(?![A-Za-z_])|{source}(?=[ =]|$))"
    nouns = re.findall(before.replace(r"\\?{0}", ""), text)
    if any(noun.lower() not in _NOT_NOUNS for noun in nouns):
        return True
    return bool(re.search(rf"\${source}\$(?:, | \(|: | is (?:the|a) | = )[a-z]{{3}}", text))


def abbreviations(texts: list[str]) -> Iterator[str]:
    """Words in capitals that are neither familiar nor explained in brackets."""
    joined = " | ".join(_MATH.sub(" ", text) for text in texts)
    for name in dict.fromkeys(re.findall(r"\b[A-Z]{2,}\b", joined)):
        if name not in FAMILIAR and f"({name})" not in joined:
            yield name


def line_faults(figure: Figure) -> Iterator[str]:
    """Entries of one text, and lines outside the frame or under another, unsaid."""
    for piece in pieces(figure):
        for legend in piece.legends:
            entries = [text.get_text() for text in legend.get_texts()]
            yield from (f"twice: {text}" for text in entries if entries.count(text) > 1)
    for axes in figure.axes:
        curves: dict[str, list[np.ndarray]] = {}
        for line in filter(is_curve, axes.lines):
            points = in_frame(axes, line)
            if np.isfinite(points).all(axis=-1).any():
                curves.setdefault(label_of(axes, line), []).append(points)
        for label, drawn in curves.items():
            inside = [((points > -0.01) & (points < 1.01)).all(axis=1).any() for points in drawn]
            if not any(inside) and "off the scale" not in label:
                yield f"outside the frame: {label}"
        for label, name in combinations(curves, 2):
            unsaid = not any("same line" in text for text in (label, name))
            one_line = len(curves[name]) == 1  # a bundle is seen where some of its lines are hidden
            if unsaid and one_line and any(coincide(curves[name][0], q) for q in curves[label]):
                yield f"one line hides another: {name} and {label}"


def label_of(axes: Axes, line: Line2D) -> str:
    """The text in a legend of a line, by its look; empty for marks."""
    legends = [legend for piece in ancestors(axes.figure) for legend in piece.legends]
    for legend in (*legends, *filter(None, [axes.get_legend()])):
        for handle, text in zip(legend.legend_handles, legend.get_texts(), strict=True):
            drawn = handle.lines[0] if isinstance(handle, ErrorbarContainer) else handle
            if isinstance(drawn, Line2D) and look(drawn) == look(line):
                return " ".join(text.get_text().split())
    return ""


def look(line: Line2D) -> tuple[object, ...]:
    """Colour and dashes of a line."""
    return to_hex(line.get_color()), line.get_linestyle()


def ancestors(piece: Figure | SubFigure) -> Iterator[Figure | SubFigure]:
    """A subfigure and the figures that hold it."""
    yield piece
    parent = getattr(piece, "_parent", None)
    if parent is not None and parent is not piece:
        yield from ancestors(parent)


def unmentioned(figure: Figure, caption: str) -> Iterator[str]:
    """Panels with a quantity of their own, of which the caption has no word."""
    groups: dict[int, str] = {}
    for axes in figure.axes:
        if axes.has_data() and axes.get_label() != "<colorbar>":
            words = f"{axes.get_title()} {axes.get_ylabel()} {axes.get_xlabel()}"
            groups[id(axes.figure)] = f"{groups.get(id(axes.figure), '')} {words}"
    if len(groups) < 2:
        return
    stems = stems_of(caption)
    for words in groups.values():
        if not stems & stems_of(words):
            yield f"panel not in the caption: {' '.join(words.split())}"


def stems_of(text: str) -> set[str]:
    """The beginnings of the longer words of a text."""
    return {word[:5] for word in re.findall(r"[a-z]{4,}", _MATH.sub(" ", text).lower())}
