r"""What stands beside a figure for a stranger: its question above it, its axes and terms below.

The reading of a figure, see `attlas.experiments.reading`, has an item for each axis, for marks and
for the data. A page gives the items their full names, and adds a line for each term of the field
that the figure uses and does not explain.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from attlas.core.errors import refuse_unreadable

if TYPE_CHECKING:
    import matplotlib.figure

MOST_TERMS = 4
"""Most terms that are explained beside one figure; more would bury what it shows."""
SHOWN = "Shown"
"""The item that says what is drawn, which stands above the figure."""
NAMES = {
    "Across": "Horizontal axis",
    "Up": "Vertical axis",
    "Marks": "Lines and marks",
    "Data": "Data and model",
    "Cited": "Source",
}
"""Items of a reading by their names on a page."""


class FigureTerm(NamedTuple):
    """A term of the field that figures use.

    Attributes:
        pattern: of its uses.
        explanation: pattern of an explanation in the figure's reading, with which none is added.
        text: its meaning in one clause, with $mathematics$.
    """

    name: str
    pattern: str
    explanation: str
    text: str


class ReadingItem(NamedTuple):
    """An item of the list below a figure."""

    name: str
    text: str


TERMS = (
    FigureTerm(
        "Attention SVM", r"[Aa]ttention SVM|\bof the SVM\b|\bSVM of\b", r"separates the selected",
        "the smallest key-query weights with which the selected token of each sequence leads all "
        "others by 1",
    ),
    FigureTerm(
        "Tangent kernel", r"[Tt]angent[- ]kernel|kernel of infinite width|\b[Ii]ts kernel\b|NTK",
        r"$^",
        r"$K(x, x') = \langle\nabla_w f(x), \nabla_w f(x')\rangle$ with the gradients in the "
        r"weights $w$ of a model $f$; "
        "while it stays constant, training is regression with it",
    ),
    FigureTerm(
        "Mirror descent", r"[Mm]irror descent", r"$^",
        r"gradient steps on $\nabla\psi(W)$ with $\psi(W) = \sum_{ij}|W_{ij}|^p / p$"
        r" in place of $W$; "
        "with $p = 2$ it is gradient descent",
    ),
    FigureTerm(
        "Margin",
        r"\b[Mm]argins?\b",
        r"[Tt]he least \$|[Ll]east margin of|margin of a sequence is|min_i|least \$yf",
        "how far the right answer leads where it leads least",
    ),
    FigureTerm(
        "Score", r"\b(?:[Ll]earned|[Ee]ach|[Ee]very|[Tt]rue) scores?\b|score that draws",
        r"gradients? of the log density",
        "the gradient of the log density of noised data, from which reverse diffusion draws new "
        "data",
    ),
    FigureTerm(
        "Rademacher complexity", r"Rademacher", r"random signs",
        "how well the functions of a class correlate with random signs; it bounds test minus "
        "training loss",
    ),
    FigureTerm(
        "Bound by norms",
        r"\bby norms\b|[Nn]orm-based|-norm\b|-(?:sum|column|length) norm|by its norms",
        r"$^",
        "an upper bound that depends on sizes of weights alone, not their number; "
        "entry-sum: of all absolute entries, column-length: of all lengths of columns",
    ),
    FigureTerm(
        "Parameter counting",
        r"[Pp]arameter counting|counting parameters",
        r"\"Parameter counting\"",
        "an upper bound that depends on the number of weights",
    ),
    FigureTerm(
        "Log of the length",
        r"[Ll]og of the (?:length|sample size)|one token, any length",
        r"\"One token covered\"",
        "a bound by Edelman et al. (2022) with the logarithm of the length, or, for the answering "
        "token alone, of the sample size",
    ),
    FigureTerm(
        "Vacuous", r"\bvacuous\b", r"largest possible|vacuous\. Of|above the dotted line is worse",
        "larger than the quantity can ever be, so that the bound excludes no value",
    ),
    FigureTerm(
        "Stability", r"\b[Ss]tability\b", r"$^",
        "how much the loss on a sequence changes if training leaves it out",
    ),
    FigureTerm(
        "PAC-Bayes", r"PAC-Bayes", r"\"PAC-Bayes\"",
        "a bound on the mean error of random weights, which grows with their distance from a prior",
    ),
    FigureTerm(
        "[CLS]", r"\[CLS\]", r"$^",
        "a token added to every sequence, from which the layer reads its answer",
    ),
    FigureTerm(
        "Ramp loss", r"\b[Rr]amp\b", r"$^",
        "1 where the answer is wrong, falling linearly to 0 as the margin grows to a fixed size",
    ),
    FigureTerm(
        "Frobenius, nuclear norm", r"(?=.*Frobenius)(?=.*nuclear)", r"$^",
        "the root of the sum of squared entries, and the sum of the singular values",
    ),
    FigureTerm(
        "Logits times a factor", r"logits times", r"$^",
        "all numbers before the softmax are multiplied by it, which sharpens attention",
    ),
)  # fmt: skip
KINDS = {
    "printed": (r"\bprinted\b", "with the constants of the paper, proved or not"),
    "corrected": (r"\bcorrected\b", "an error of the paper's constants is mended"),
    "sharp": (r"\bsharp(?:ened)?\b", "with the smallest constants that we can prove"),
    "dimension-free": (r"\bdimension-free\b", "without the number of entries of a token"),
    "reconstructed": (
        r"\breconstructed\b", "completed by us where our text of the paper leaves constants open",
    ),
    "recalled": (r"\brecalled\b", "written from memory of the paper, not read in it"),
    "capped": (r"\bcapped\b", "set to the largest possible value where it is above it"),
}  # fmt: skip
"""What tells two bounds of one theorem apart: its name, a pattern of its uses, its meaning."""
_OF_BOUNDS = re.compile(r"\b(?:bounds?|constants?|Theorem|Lemma|Corollary|rates?)\b")


@refuse_unreadable
def question_of(reading: str) -> str:
    """What a figure shows, as the sentence above it; empty if its reading does not say so.

    Examples:
        >>> question_of("Shown: Losses by the number of heads.")
        'It shows losses by the number of heads.'
    """
    items = dict(_items(reading))
    text = items.get(SHOWN, "")
    if not text:
        return ""
    first = text.split()[0]
    begins = text[0].lower() if first[1:].islower() or len(first) == 1 else text[0]
    return f"It shows {begins}{text[1:]}"


@refuse_unreadable
def listed_items(reading: str, texts: Sequence[str]) -> list[ReadingItem]:
    r"""The list below a figure: axes, marks, data and the terms that it uses unexplained.

    Args:
        texts: title, caption and all texts of the figure.

    Examples:
        >>> items = listed_items("Shown: Bounds.\nUp, left: The loss.", ["a bound is vacuous"])
        >>> [item.name for item in items]
        ['Vertical axis, left', 'Vacuous']
    """
    items = [
        ReadingItem(_full_name(label), text) for label, text in _items(reading) if label != SHOWN
    ]
    return [*items, *_terms(reading, texts)] if items else items


def bound_kinds(text: str) -> str:
    """The kinds of bounds that a text names, each with its meaning; empty where it names none.

    Every figure that sets a printed bound beside a sharp one explains them so, and no figure has
    words of its own for it.

    Examples:
        >>> bound_kinds("bound by norms, sharp (Theorem 4.1)")
        'Sharp: with the smallest constants that we can prove.'
        >>> bound_kinds("sharper attention"), bound_kinds("a sharp turn")
        ('', '')
    """
    if not _OF_BOUNDS.search(text):
        return ""
    used = [
        f"{name}: {meaning}"
        for name, (pattern, meaning) in KINDS.items()
        if re.search(pattern, text, re.I)
    ]
    return f"{used[0][0].upper()}{'; '.join(used)[1:]}." if used else ""


def texts_of(figure: "matplotlib.figure.Figure") -> list[str]:
    """All texts of a figure."""
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text)]


def _items(reading: str) -> Iterator[tuple[str, str]]:
    for line in reading.splitlines():
        label, _, text = line.partition(": ")
        yield label, text


def _full_name(label: str) -> str:
    kind, comma, where = label.partition(",")
    return f"{NAMES.get(kind, kind)}{comma}{where}"


def _terms(reading: str, texts: Sequence[str]) -> list[ReadingItem]:
    everything = " ".join([*texts, reading]).replace("\n", " ")
    items = [
        ReadingItem(term.name, f"{term.text[0].upper()}{term.text[1:]}.")
        for term in TERMS
        if re.search(term.pattern, everything) and not re.search(term.explanation, reading)
    ]
    kinds = bound_kinds(everything)
    return [*([ReadingItem("Kinds of bounds", kinds)] if kinds else []), *items[:MOST_TERMS]]
