"""How to read a figure: data, model and runs from the settings, marks from the panels.

What a stranger needs stands under the figure, apart from the caption, which answers the question.
The text comes from the experiment's prose, whose templates see the settings of the record, and from
the panels, which know what a mark, a line and a band summarise.
"""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from attlas.core.errors import UserError, refuse_unreadable
from attlas.display.numbers import large_number
from attlas.experiments.prose import HOW_TO_READ
from attlas.projects.bibliography import all_references
from attlas.projects.references import PROJECT

if TYPE_CHECKING:
    import matplotlib.figure
    import xarray

UNRECORDED = "(not recorded)"
_NUMBERED = re.compile(
    r"\b(?:Theorem|Lemma|Corollary|Proposition|Claim|Appendix|Table|Figure|the paper|recalled)\b"
)


class Captioned(Protocol):
    """A figure with its texts."""

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
    """What a reader must know to read a figure, in full sentences.

    Args:
        templates: by the figure's title, see `attlas.experiments.prose`.
        captioned: the figure, with what its panels say of their marks.
        paper: key of the paper whose theorems the figure may name.
    """
    values = settings_of(data) if data is not None else {}
    titles = [title for title in ("", captioned.title) if title in templates]
    sentences = [*(filled(templates[title], values) for title in titles), captioned.reading]
    texts = " | ".join([*sentences, captioned.caption, *_texts_of(captioned.figure)])
    return " ".join(filter(None, [*sentences, _whose(texts, paper)]))


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
def filled(template: str, values: Mapping[str, Any]) -> str:
    r"""A template with numbers in words and lists as enumerations, on one line.

    A setting that a record lacks, such as one of an earlier version, is said not to be recorded.

    Raises:
        UserError: if a template computes with a setting that the record lacks.

    Examples:
        >>> filled("Trained on {{ n }} texts for {{ steps }} steps.", {"n": [8, 16], "steps": 8000})
        'Trained on 8 and 16 texts for 8,000 steps.'
        >>> filled("{{ 'one run' if count.member == 1 else 'runs' }}.", {"count": {"member": 1}})
        'one run.'
        >>> filled("Trained for {{ steps }} steps in {{ count.member }} runs.", {"n": 3})
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


def _whose(texts: str, paper: str) -> str:
    """Whose theorems are meant, where the texts name some; attlas has no paper of its own."""
    reference = all_references().get(paper)
    if reference is None or reference.authors == (PROJECT,) or not _NUMBERED.search(texts):
        return ""
    return f"Theorems and tables without a name are those of {reference.short}."
