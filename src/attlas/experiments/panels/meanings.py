"""What marks, lines and bands of a plot summarise, in sentences that stand under the figure."""

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

import xarray as xr

from attlas.core.errors import refuse_unreadable
from attlas.experiments.panels.summary import (
    Spread,
    extremes,
    geometric_extremes,
    geometric_interval,
    geometric_mean_only,
    interval,
    mean_only,
    median_only,
    quartiles,
)

MIDDLES: dict[Spread, str] = {
    quartiles: "medians",
    extremes: "means",
    mean_only: "means",
    median_only: "medians",
    interval: "means",
    geometric_interval: "geometric means",
    geometric_extremes: "geometric means",
    geometric_mean_only: "geometric means",
}
ENDS: dict[Spread, str] = {
    quartiles: "between the quartiles",
    extremes: "from the least to the largest",
    interval: "for their 95 % interval",
    geometric_interval: "for their 95 % interval",
    geometric_extremes: "from the least to the largest",
}
NOUNS = {
    "member": "run",
    "group": "group of training sets",
    "network": "random network",
    "sign_vector": "draw of random signs",
    "point": "point",
}
"""What an axis of repetitions counts, where its name is no word for it."""
STATED = frozenset({"end", "limit"})
"""Axes that hold the ends of an interval, which the legend names, and no repetitions."""


class Meaning(NamedTuple):
    """What a layer draws: `things` that `are` something, of the label in the legend if it has one.

    Attributes:
        things: a plural noun, such as "Marks".
    """

    things: str
    are: str
    label: str = ""


@refuse_unreadable
def repetitions(values: xr.DataArray, over: Sequence[str]) -> str:
    """The repetitions over which values are summarised; empty without any.

    Examples:
        >>> values = xr.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("member", "head"))
        >>> repetitions(values, ["member", "head"]), repetitions(values[:1], ["member"])
        ('2 runs times 2 heads', '1 run')
    """
    axes = [name for name in over if name not in STATED]
    axes = [name for name in axes if values.sizes.get(name) != 1] or axes[:1]
    counted = [(values.sizes.get(name, 0), NOUNS.get(name, name)) for name in axes]
    return " times ".join(f"{count:,} {_plural(noun, count)}" for count, noun in counted)


@refuse_unreadable
def one_each(values: xr.DataArray, over: Sequence[str]) -> str:
    """What one of the lines or dots is of which there is one for each repetition.

    Examples:
        >>> values = xr.DataArray([[1.0, 2.0], [3.0, 4.0]], dims=("member", "head"))
        >>> one_each(values, ["member", "head"]), one_each(values[:1], ["member", "head"])
        ('one run of one head each', 'one head each')
    """
    axes = [name for name in over if values.sizes.get(name) != 1] or [*over][:1]
    nouns = [NOUNS.get(name, name).partition(" of ")[0] for name in axes]
    return f"{' of '.join(f'one {noun}' for noun in nouns)} each"


def summarised(
    things: str, values: xr.DataArray, over: Sequence[str], band: Spread | None, label: str = ""
) -> Meaning | None:
    """What is drawn of a quantity whose other axes are summarised; None if it has no other axis.

    Args:
        things: "Marks" or "Lines".
        band: the summary; None if each repetition is drawn.
    """
    if not over or STATED & set(over):
        return None
    runs = repetitions(values, over)
    if prod(values.sizes[name] for name in over) == 1:
        return Meaning(things, f"the values of {runs}", label)
    if band is None or band not in MIDDLES:
        return Meaning(things, f"drawn for each of {runs}", label)
    interval_sign = "bars" if things == "Marks" else "bands"
    ends = f", with {interval_sign} {ENDS[band]}" if band in ENDS else ""
    return Meaning(things, f"{MIDDLES[band]} over {runs}{ends}", label)


@refuse_unreadable
def sentences(meanings: Iterable[Meaning | None]) -> str:
    """The meanings of the layers of a figure as text; what all of a kind share is said once.

    Examples:
        >>> sentences(2 * [Meaning("Marks", "means over 8 runs")])
        'Marks are means over 8 runs.'
        >>> sentences([Meaning("Lines", "medians", "gap"), Meaning("Lines", "single runs")])
        'Lines are single runs; “gap”: medians.'
    """
    groups: dict[str, dict[str, list[str]]] = {}
    for meaning in filter(None, meanings):
        labels = groups.setdefault(meaning.things, {}).setdefault(meaning.are, [])
        if meaning.label not in labels:
            labels.append(meaning.label)
    return " ".join(_sentence(things, by_text) for things, by_text in groups.items())


def _sentence(things: str, by_text: dict[str, list[str]]) -> str:
    usual = max(by_text, key=lambda text: ("" in by_text[text], len(by_text[text])))
    named = {text: [*filter(None, labels)] for text, labels in by_text.items() if text != usual}
    unnamed = [text for text, labels in named.items() if not labels]
    further = [
        f"{', '.join(f'“{label}”' for label in labels)}: {text}"
        for text, labels in named.items()
        if labels
    ]
    return "; ".join([f"{things} are {' or '.join([usual, *unnamed])}", *further]) + "."


def _plural(noun: str, count: int) -> str:
    first, _, ending = noun.partition(" of ")
    return noun if count == 1 else " of ".join(filter(None, [f"{first}s", ending]))
