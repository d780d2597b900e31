"""The page and the badge of a certification, and of guarantees on a text."""

from collections.abc import Sequence

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
from attlas.certificates.stream import (
    StreamGuarantee,
    bits_text,
    stream_rows,
    stream_sentences,
)
from attlas.core.errors import refuse_unreadable
from attlas.site.badge import badge_svg
from attlas.site.figures import embed
from attlas.site.guarantee_figure import MOST_ROWS, GuaranteeBar, guarantee_figure
from attlas.site.page import render_template

_LONGEST_NAME = 32


def render_certificate(result: Certification) -> str:
    """The certification as one HTML document that loads nothing."""
    answer, *rest = sentences(result)
    count = len(result.models)
    tables = [("Mean losses on new examples", guarantee_rows(result))]
    if result.measures:
        tables.append(("Further measures, guaranteed at once", measure_rows(result)))
    rows = [
        GuaranteeBar(
            " · ".join(filter(None, (g.model[:_LONGEST_NAME], g.group[:_LONGEST_NAME]))),
            100 * g.bound.empirical,
            100 * g.bound.bound,
        )
        for g in result.guarantees
    ]
    figure = guarantee_figure(
        rows,
        "mean loss in per cent: measured (dot), at most (bar)",
        asked=None if result.at_most is None else 100 * result.at_most,
        asked_text=None if result.at_most is None else level(result.at_most),
    )
    return render_template(
        "certificate.html.j2",
        title=result.models[0].model if count == 1 else f"{count} models on one test set",
        eyebrow=f"{result.n} examples",
        answer=answer,
        sentences=rest,
        guarantees=tables,
        comparisons=comparison_rows(result) if result.comparisons else None,
        measured=result.measured,
        figure=embed(figure, "Measured and certified mean losses, as in the table"),
        caption=f"{_shown(len(rows))}The bar ends at the largest mean loss that new examples may "
        "have.",
    )


def render_stream(several: Sequence[StreamGuarantee], at_most: float | None) -> str:
    """Guarantees on the bits of language models on a text, as one HTML document.

    Args:
        several: guarantees of models, which hold together.
        at_most: bits per token that were asked for, or None.
    """
    answer, *rest = stream_sentences(several)
    rows = [
        GuaranteeBar(g.model[:_LONGEST_NAME], g.bound.empirical, g.bound.bound) for g in several
    ]
    figure = guarantee_figure(
        rows,
        "bits per token: measured (dot), at most (bar)",
        asked=at_most,
        asked_text=None if at_most is None else f"{at_most:g} bits per token",
    )
    count = len(several)
    return render_template(
        "certificate.html.j2",
        title=several[0].model if count == 1 else f"{count} language models on one text",
        eyebrow=f"{several[0].bytes:,} bytes of text",
        answer=answer,
        sentences=rest,
        guarantees=[("Expected bits, given the tokens before", stream_rows(several))],
        comparisons=None,
        measured=None,
        figure=embed(figure, "Measured and certified bits per token, as in the table"),
        caption=f"{_shown(count)}The dot is what the prediction mixed with the uniform law "
        "needs on this text; the bar ends at the largest mean of its expected bits per token.",
    )


def _shown(count: int) -> str:
    return f"The first {MOST_ROWS} of {count}. " if count > MOST_ROWS else ""


@refuse_unreadable
def stream_badge(several: Sequence[StreamGuarantee], at_most: float | None) -> str:
    """The badge: the least certified bits per token of the models.

    Examples:
        >>> import numpy as np
        >>> from attlas.certificates.stream import stream_guarantee
        >>> guarantee = stream_guarantee("mine", np.full(10_000, 0.5), 512, 40_000, 0.05)
        >>> "at most 1.031" in stream_badge([guarantee], None)
        True
    """
    best = min(several, key=lambda guarantee: guarantee.bound.bound)
    passed = at_most is None or best.bound.bound <= at_most
    colour = "brightgreen" if passed else "red"
    return badge_svg("certified bits per token", f"at most {bits_text(best.bound.bound)}", colour)


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
