r"""The page of an audit: findings, maps of the heads, a card for each head, and four lists."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from attlas.audit.model_audit import CAUTION
from attlas.audit.model_bounds import OF_THE_MODEL
from attlas.audit.quantities import FACTS, QUANTITIES
from attlas.audit.quantity import Fact
from attlas.display.numbers import number
from attlas.display.statements import prose
from attlas.experiments.panels.palette import PALETTE
from attlas.site.bundle import bundle, modules
from attlas.site.figures import embed
from attlas.site.folder import fronts_beside
from attlas.site.links import Links
from attlas.site.page import render_template, script_data, template_file

_STANDINGS = {
    "proved": "Proved: holds for every input of the stated class",
    "checked on instances": "Checked on instances: exact on these weights and sequences",
    "heuristic": "Heuristic: a summary that no theorem supports",
    "not claimed": "Not claimed",
}

FEW_HEADS = 48
"""Most heads of a figure so narrow that a telephone shows its numbers in their own size."""
_COVERS = {
    "1,1": r"$\|W\|_{1,1}$",
    "1,inf": r"$\|W\|_{1,\infty}$",
    "2,1": r"$\|W\|_{2,1}$",
    "log T": r"$\|W\|_{2,1}$, cover with $\log T$",
    "mixed": "smallest cover of each matrix",
    "parameters": "number of parameters",
}


class ReportedQuantity(NamedTuple):
    """A quantity of the page; `null` is the name of its reference quantity."""

    name: str
    title: Markup
    formula: Markup
    meaning: Markup
    standing: str
    null: str
    unit: str


def render_audit(audit: Mapping[str, Any], beside: Path | None = None) -> str:
    """The audit (from `ModelAudit.to_json`) as one HTML document that loads nothing.

    Where an atlas lies in the folder `beside`, in which the page will be, its bar leads there.

    Its script, whose hash the content policy names, sorts, filters and fills the card; findings,
    figures and lists work without it.
    """
    described = audit["quantities"]
    quantities = [
        _reported(name, described[name]) for name in described if "title" in described[name]
    ]
    heads = audit["heads"]
    # The map opens with the first column of the table, not with the first in the alphabet.
    columns = [(name, quantity.column) for name, quantity in QUANTITIES.items() if quantity.column]
    rank = {name: place for place, (name, _) in enumerate(columns)}
    of_heads = sorted(
        (
            quantity
            for quantity in quantities
            if any(row.get(quantity.name) is not None for row in heads)
        ),
        key=lambda quantity: rank.get(quantity.name, len(rank)),
    )
    return render_template(
        "audit.html.j2",
        style=template_file("audit.css"),
        script=bundle({**modules("explorer"), "audit": template_file("audit.js")}, "audit"),
        audit=audit,
        bar=_bar(beside),
        facts=_facts(audit["facts"]),
        bounds=[{**row, "name": _bound_name(row["name"])} for row in audit["bounds"]],
        quantities=of_heads,
        about_bounds=OF_THE_MODEL,
        columns=[pair for pair in columns if any(row.get(pair[0]) is not None for row in heads)],
        figures=_figures(audit),
        standings=[(title, audit["standings"][key]) for key, title in _STANDINGS.items()],
        data=script_data(
            {"heads": heads, "quantities": [_plain(quantity) for quantity in of_heads]}
        ),
    )


def _bar(folder: Path | None) -> tuple[tuple[str, str], ...]:
    """The links of the site's bar, texts with addresses; none without an atlas in the folder."""
    front = next(iter(fronts_beside(folder)), None) if folder else None
    if front is None:
        return ()
    links = Links("", {"": ""}, front.stem, front.name)
    pages = [("Explorer", "explorer.html"), ("Gallery", "gallery.html")]
    own = quote(front.name)
    return (
        ("Atlas", f"{own}#top"),
        *((text, links.page(file)) for text, file in pages
          if front.with_suffix("").joinpath(file).is_file()),
        ("Search", f"{own}#search"),
    )  # fmt: skip


def _reported(name: str, attributes: Mapping[str, str]) -> ReportedQuantity:
    formula = attributes.get("formula", "")
    return ReportedQuantity(
        name,
        prose(attributes["title"]),
        prose(formula),
        prose(attributes.get("meaning", "")),
        attributes.get("standing", ""),
        attributes.get("null", ""),
        attributes.get("unit", ""),
    )


def _facts(facts: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """Numbers of the whole model with their names, values with their intervals."""
    rows, beside = [], {fact.beside for fact in FACTS.values()}
    for name, value in facts.items():
        ends = [facts.get(f"{name}_{end}") for end in ("low", "high")]
        base = name.removesuffix("_low").removesuffix("_high")
        if (base != name and base in facts) or name in beside or name == CAUTION:
            continue
        text = prose(value) if isinstance(value, str) else number(value)
        if None not in ends:
            text += Markup(" [{}, {}]").format(*(number(end) for end in ends))
        fact = FACTS.get(name, Fact(name, name.replace("_", " ")))
        if fact.beside in facts:
            text += Markup(fact.form).format(facts[fact.beside])
        rows.append((fact.title, text))
    return rows


def _bound_name(name: str) -> str:
    """For example "the norm (1, 1), sharp constants" for "1,1 sharp"."""
    cover, _, constants = name.rpartition(" ")
    if cover in _COVERS and constants in ("corrected", "sharp", "printed"):
        return f"{_COVERS[cover]}, {constants} constants"
    return _COVERS.get(name, name)


def _plain(quantity: ReportedQuantity) -> dict[str, str]:
    return {key: str(value) for key, value in quantity._asdict().items()}


def _figures(audit: Mapping[str, Any]) -> list[tuple[Markup, str]]:
    """Each figure with its caption."""
    figures = []
    for draw in (_curves, _ladder, _depth, _importance):
        drawing = draw(audit)
        if drawing is not None:
            figure, caption = drawing
            figures.append((embed(figure, caption), caption))
    return figures


def _column(audit: Mapping[str, Any], name: str, table: str = "heads") -> list[float] | None:
    rows: Sequence[Mapping[str, Any]] = audit[table]
    if not rows or name not in rows[0]:
        return None
    return [math.nan if row.get(name) is None else float(row[name]) for row in rows]


def _ladder(audit: Mapping[str, Any]) -> tuple[Figure, str] | None:
    """Certificates and attacks of every head, sorted by the certificate."""
    columns = [
        (each.ladder, _column(audit, each.name)) for each in QUANTITIES.values() if each.ladder
    ]
    columns = [(label, values) for label, values in columns if values is not None]
    if len(columns) < 2 or not any(value > 0 for _, values in columns for value in values):
        return None
    order = sorted(range(len(columns[0][1])), key=lambda k: columns[0][1][k])
    # A telephone shrinks what is wider, and the numbers on it.
    width = 4.8 if len(order) <= FEW_HEADS else 7.2
    figure = Figure(figsize=(width, 3.4), layout="constrained")
    axes = figure.subplots()
    for label, values in columns:
        of_these = "these" in label
        # Heads are categories, which no line joins.
        marker = "." if "attack" in label else "_"
        numbers = [values[k] for k in order]
        axes.plot(numbers, marker, color=PALETTE[of_these], ms=5, mew=1.6, label=label)
    axes.set(yscale="log", xlabel="heads, by their first certificate", ylabel="change per change")
    figure.legend(frameon=False, fontsize=8, ncols=2, loc="outside upper center")
    return figure, (
        "How much the output of each head can change per unit of change of its normalised input. "
        "One certificate holds for every text of at most the attacked length (normalised tokens "
        "anywhere in their ball), the other at the tokens that were read; an attack searches for "
        "the largest change in each case. The true value lies between a certificate and the "
        "attack of the same colour."
    )


def _curves(audit: Mapping[str, Any]) -> tuple[Figure, str] | None:
    """Median and range over the heads, along the checkpoints."""
    names = [
        (name, quantity.curve)
        for name, quantity in QUANTITIES.items()
        if quantity.curve and _column(audit, f"{name}_median", "curves")
    ]
    if not names or len(audit["curves"]) < 2:
        return None
    steps = _column(audit, "step", "curves")
    figure = Figure(figsize=(2.9 * len(names), 2.6), layout="constrained")
    for axes, (name, title) in zip(
        figure.subplots(1, len(names), squeeze=False)[0], names, strict=True
    ):
        low, middle, high = (
            _column(audit, f"{name}_{part}", "curves") for part in ("least", "median", "largest")
        )
        axes.fill_between(steps, low, high, color=PALETTE[0], alpha=0.18, lw=0)
        axes.plot(steps, middle, "o-", color=PALETTE[0], lw=1.6, ms=3.5)
        axes.set(xlabel="training step", title=title)
    return figure, (
        f"Median over the heads at {len(audit['curves'])} checkpoints, with the range from the "
        "smallest to the largest value."
    )


def _depth(audit: Mapping[str, Any]) -> tuple[Figure, str] | None:
    """Rank residual and cosine along the layers."""
    residual = _column(audit, "residual_l2", "depths")
    if residual is None:
        return None
    figure = Figure(figsize=(4.8, 2.8), layout="constrained")
    axes = figure.subplots()
    for place, (name, label) in enumerate(
        (
            ("residual_l2", "relative distance from equal tokens"),
            ("mean_cosine", "mean cosine of two tokens"),
        )
    ):
        values = _column(audit, name, "depths")
        if values is not None:
            axes.plot(values, "o-", color=PALETTE[place], label=label, lw=1.6, ms=3.5)
    axes.set(xlabel="layers passed", ylim=(-0.05, 1.05))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, fontsize=8)
    return figure, (
        "Distance of the hidden states from being equal for all tokens, relative to their size, "
        "and mean cosine between two of them. Under rank collapse the distance would fall to 0 and "
        "the cosine rise to 1 with depth."
    )


def _importance(audit: Mapping[str, Any]) -> tuple[Figure, str] | None:
    """Michel's score against the exact change of the loss."""
    score, change = (_column(audit, name) for name in ("michel_score", "removal_zero"))
    if score is None or change is None or not any(value > 0 for value in score):
        return None
    figure = Figure(figsize=(4.6, 3.2), layout="constrained")
    axes = figure.subplots()
    axes.plot(score, change, ".", color=PALETTE[0], ms=5)
    axes.axhline(0, color="0.7", lw=0.8, zorder=0)
    unit = audit["facts"].get("loss_unit")
    axes.set(
        xlabel="Michel's score, a slope",
        ylabel="change of the loss" + (f", {unit}" if unit else ""),
    )
    correlation = audit["facts"].get("rank_correlation")
    remark = (
        ""
        if correlation is None
        else f" The rank correlation of the two, by absolute value, is {correlation:.2f}."
    )
    return figure, (
        "One point per head: Michel's score, which is the absolute slope of the loss in the head's "
        f"gate, and the exact change of the loss when the head is zero-ablated.{remark}"
    )
