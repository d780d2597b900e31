"""The page and the badge of a certification."""

from matplotlib.figure import Figure

from attlas.bounds.generalisation.risk_bound import RiskBound
from attlas.certificates.certify import Certification
from attlas.certificates.document import (
    comparison_rows,
    guarantee_rows,
    level,
    measure_rows,
    percent,
    sentences,
)
from attlas.core.errors import refuse_unreadable
from attlas.experiments.panels.palette import INK, PALETTE
from attlas.site.badge import badge_svg
from attlas.site.figures import embed
from attlas.site.page import render_template

_MOST_ROWS = 40
"""Guarantees of a figure: with more, names cover each other."""
_LONGEST_NAME = 32


def render_certificate(result: Certification) -> str:
    """The certification as one HTML document that loads nothing."""
    answer, *rest = sentences(result)
    return render_template(
        "certificate.html.j2",
        result=result,
        answer=answer,
        sentences=rest,
        guarantees=guarantee_rows(result),
        measures=measure_rows(result) if result.measures else None,
        comparisons=comparison_rows(result) if result.comparisons else None,
        figure=embed(_figure(result), "Measured and certified mean losses, as in the table"),
        shown=min(len(result.guarantees), _MOST_ROWS),
    )


@refuse_unreadable
def certificate_badge(result: Certification) -> str:
    """The badge: the bound of the only model, or how many models are certified.

    Examples:
        >>> from attlas.certificates.certify import certify
        >>> "at most 7.67 %" in certificate_badge(certify([0.0] * 59 + [1.0]))
        True
    """
    best = _least(result)
    message = f"at most {percent(best.bound, up=True)}"
    if result.at_most is None:
        return badge_svg("certified error", message, "brightgreen")
    return badge_svg("certified error", message, "brightgreen" if result.passes else "red")


def _least(result: Certification) -> RiskBound:
    """The least bound on all examples: the choice is paid for by the shares of all."""
    return min((model.bound for model in result.models), key=lambda bound: bound.bound)


def _figure(result: Certification) -> Figure:
    rows = result.guarantees[:_MOST_ROWS]
    figure = Figure(figsize=(6.4, 0.9 + 0.28 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, guarantee in enumerate(reversed(rows)):
        bound = guarantee.bound
        axes.plot([100 * bound.empirical, 100 * bound.bound], [place, place], color=PALETTE[0])
        axes.plot(100 * bound.empirical, place, "o", color=INK)
        axes.plot(100 * bound.bound, place, "|", color=PALETTE[0], markersize=12)
    names = [
        " · ".join(filter(None, (g.model[:_LONGEST_NAME], g.group[:_LONGEST_NAME]))) for g in rows
    ]
    axes.set_yticks(range(len(rows)), reversed(names))
    axes.set_ylim(-0.6, len(rows) - 0.4)
    axes.set_xlim(left=0)
    axes.set_xlabel("mean loss in per cent: measured (dot), at most (bar)")
    if result.at_most is not None:
        axes.axvline(100 * result.at_most, color=PALETTE[1], linestyle="--")
        axes.set_title(f"dashed: the {level(result.at_most)} that was asked for", fontsize=9)
    return figure
