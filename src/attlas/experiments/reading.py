"""How to read a figure: what is drawn, its axes, its marks, its data, one item a line.

What a stranger needs stands under the figure, apart from the caption, which answers the question.
The items come from the experiment's prose, whose templates see the settings of the record, and from
the panels, which know what a mark, a line and a band summarise.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from attlas.core.errors import UserError, refuse_unreadable
from attlas.display.numbers import large_number
from attlas.experiments.prose import HOW_TO_READ
from attlas.experiments.short_caption import split_caption
from attlas.projects.bibliography import all_references
from attlas.projects.references import PROJECT

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

UNRECORDED = "(not recorded)"
MARKS, DATA, CITED = "Marks", "Data", "Cited"
"""The items that panels, the section of all figures, and the theorems named in a figure give."""
_NUMBERED = re.compile(
    r"\b(Theorem|Lemma|Corollary|Proposition|Claim|Table|Figure)s? ((?:[A-Z]\.)?\d+(?:\.\d+)*)"
)
_AUTHOR = re.compile(r"[A-Z]\w+ (?:et al\.|and [A-Z]\w+|\(\d{4}\))")
_BARE_AUTHOR = re.compile(r"[A-Z]\w+ (?:et al\.|and [A-Z]\w+) \(\d{4}\)")
_THE_PAPER = re.compile(r"\b(?:the|the released) paper\b|\bthe paper's\b")
_SENTENCE_END = re.compile(r"(?<=[.:]) (?=[A-Z])")


class Captioned(Protocol):
    """A figure with its texts."""

    @property
    def values(self) -> Mapping[str, Any] | None:
        """The values of its caption, which the template of its reading sees too."""
        ...

    @property
    def title(self) -> str:
        """Its title."""
        ...

    @property
    def caption(self) -> str:
        """What it shows."""
        ...

    @property
    def reading(self) -> str:
        """What its marks are."""
        ...

    @property
    def figure(self) -> "matplotlib.figure.Figure | None":
        """The drawing."""
        ...


def reading_of(
    templates: Mapping[str, str],
    captioned: "Captioned",
    data: "xarray.Dataset | None",
    paper: str,
) -> str:
    """What a reader must know to read a figure, one item such as "Up: the loss." a line.

    Args:
        templates: by the figure's title, see `attlas.experiments.prose`.
        captioned: the figure, with what its panels say of their marks.
        paper: key of the paper whose theorems the figure may name.
    """
    settings = settings_of(data) if data is not None else {}
    values = {**(captioned.values or {}), **settings}
    template = templates.get(captioned.title, "") if captioned.title else ""
    items = [rendering(item, values) for item in template.splitlines()]
    marks = [item for item in items if item.startswith(f"{MARKS}: ")] or [f"{MARKS}:"]
    lines = [item for item in items if item not in marks]
    if len(marks[0]) > len(f"{MARKS}:") or captioned.reading:
        lines.append(f"{marks[0]} {captioned.reading}".strip())
    if "" in templates:
        lines.append(f"{DATA}: {rendering(templates[''], values)}")
    texts = [captioned.title, split_caption(captioned.caption)[0], *_texts_of(captioned.figure)]
    if whose := _whose([*lines, *texts], paper):
        lines.append(f"{CITED}: {whose}")
    return "\n".join(lines)


@refuse_unreadable
def settings_of(data: "xarray.Dataset") -> dict[str, Any]:
    """Names that a template sees: the settings, the labels of each axis, and how many there are.

    Examples:
        >>> import xarray as xr
        >>> data = xr.Dataset({"loss": ("n", [0.5, 0.4])}, {"n": [10, 20]}, {"rate": 0.1})
        >>> settings_of(data)
        {'count': {'n': 2}, 'labels': {'n': [10, 20]}, 'rate': 0.1}
    """
    sizes = {str(name): size for name, size in data.sizes.items()}
    labels = {str(name): axis.values.tolist() for name, axis in data.coords.items() if axis.ndim}
    return {"count": sizes, "labels": labels, **data.attrs}


@refuse_unreadable
def rendering(template: str, values: Mapping[str, Any]) -> str:
    r"""A template with numbers in words and lists as enumerations, on one line.

    A setting that a record lacks, such as one of an earlier version, is said not to be recorded.

    Raises:
        UserError: if a template computes with a setting that the record lacks.

    Examples:
        >>> rendering("On {{ n }} texts for {{ steps }} steps.", {"n": [8, 16], "steps": 8000})
        'On 8 and 16 texts for 8,000 steps.'
        >>> rendering("{{ 'one run' if count.member == 1 else 'runs' }}.", {"count": {"member": 1}})
        'one run.'
        >>> rendering("Trained for {{ steps }} steps in {{ count.member }} runs.", {"n": 3})
        'Trained for (not recorded) steps in (not recorded) runs.'
    """
    from jinja2 import ChainableUndefined, Environment, UndefinedError

    class Unrecorded(ChainableUndefined):
        def __str__(self) -> str:
            return UNRECORDED

    environment = Environment(undefined=Unrecorded, autoescape=False, finalize=_in_words)
    try:
        return " ".join(environment.from_string(template).render(values).split())
    except UndefinedError as error:
        raise UserError(f"a section '{HOW_TO_READ}' has no such setting: {error}") from error


def _in_words(value: object) -> object:
    """A number or a list of a template, as a sentence has it."""
    if isinstance(value, list | tuple):
        texts = [str(_in_words(entry)) for entry in value]
        return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, int) and value < 1e6 else _short(value)
    return value


def _short(value: float | int) -> str:
    return large_number(value) if abs(value) >= 1e4 else f"{value:g}"


def _texts_of(figure: "matplotlib.figure.Figure | None") -> list[str]:
    """All texts of a figure."""
    if figure is None:
        return []
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text)]


def _whose(texts: Sequence[str], paper: str) -> str:
    """Whose the theorems are that the texts name without an author; attlas has none of its own."""
    reference = all_references().get(paper)
    if reference is None or reference.authors == (PROJECT,):
        return ""
    pieces = [piece for text in texts for piece in _SENTENCE_END.split(" ".join(text.split()))]
    if any(map(_BARE_AUTHOR.fullmatch, pieces)):  # a legend tells the papers apart
        return ""
    pieces = [piece for piece in pieces if not _AUTHOR.search(piece)]
    citations = [
        f"{kind} {number}" for piece in pieces for kind, number in _NUMBERED.findall(piece)
    ]
    if citations := list(dict.fromkeys(citations)):
        verb = "is" if len(citations) == 1 else "are"
        return f"{_in_words(citations)} {verb} of {reference.short}."
    if any(map(_THE_PAPER.search, pieces)):
        return f"The paper is {reference.short}."
    return ""
