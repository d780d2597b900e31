"""Verdict tables for a paper: LaTeX with booktabs, and where each number comes from."""

import math
from collections.abc import Iterable, Mapping

from attlas.claims.claim import Claim
from attlas.claims.verdict import CheckReport
from attlas.site.latex_mathematics import latex_mathematics, latex_prose, latex_text
from attlas.site.verdict_rows import HEADS, VerdictRow, verdict_row

PACKAGES = ("amsmath", "amssymb", "array", "booktabs", "longtable")
_WIDTHS = (0.23, 0.12, 0.125, 0.1, 0.13, None, 0.12)
"""Of each column as a share of the line, None for a column of numbers."""


def latex_table(
    results: Iterable[tuple[Claim, CheckReport | None]],
    environment: Mapping[str, str],
    caption: str = "Verdicts of the claims.",
    label: str = "tab:verdicts",
) -> str:
    r"""A `longtable` of verdicts with rules of booktabs; see `PACKAGES` for what it needs.

    The comment above the table says what computed it, the column `provenance` how our text of a
    statement relates to the printed one and whether it was found, recalled or derived. A dagger
    marks what did not come out as expected.

    Args:
        results: claims with their reports, None where one was not run.
        environment: what computed them, by name; goes into the comment.

    Examples:
        >>> print(latex_table([], {"device": "cpu"}).splitlines()[0])
        % made by attlas; device: cpu
    """
    told = "; ".join(f"{_comment(k)}: {_comment(v)}" for k, v in environment.items())
    rows = [_row(verdict_row(claim, report)) for claim, report in results]
    head = " & ".join(HEADS) + r" \\"
    safe = "".join(c for c in label if (c.isalnum() and c.isascii()) or c in ":-")
    lines = [
        f"% made by attlas; {told}",
        rf"% needs \usepackage{{{','.join(PACKAGES)}}}",
        r"\begingroup\footnotesize\setlength{\tabcolsep}{2pt}",
        rf"\begin{{longtable}}{{@{{}}{''.join(map(_column, _WIDTHS))}@{{}}}}",
        rf"\caption{{{latex_text(caption)}}}\label{{{safe}}}\\",
        r"\toprule",
        head,
        r"\midrule",
        r"\endfirsthead",
        r"\toprule",
        head,
        r"\midrule",
        r"\endhead",
        r"\bottomrule",
        r"\endlastfoot",
        *rows,
        r"\end{longtable}",
        r"\endgroup",
    ]
    return "\n".join(lines) + "\n"


def latex_number(value: float | None) -> str:
    r"""A number with three digits.

    Args:
        value: the number, None where there is none.

    Returns:
        LaTeX, mathematics where it is needed.

    Examples:
        >>> latex_number(1.25e-9), latex_number(None), latex_number(0.5)
        ('$1.25\\times10^{-9}$', '--', '$0.5$')
    """
    if value is None or math.isnan(value):
        return "--"
    if math.isinf(value):
        return r"$\infty$" if value > 0 else r"$-\infty$"
    mantissa, _, power = f"{value:.3g}".partition("e")
    return f"${mantissa}\\times10^{{{int(power)}}}$" if power else f"${mantissa}$"


def _column(share: float | None) -> str:
    if share is None:
        return "r"
    # TeX hyphenates no word that begins a paragraph, as each word of a narrow cell does.
    return rf">{{\raggedright\arraybackslash\hskip0pt\relax}}p{{{share:g}\linewidth}}"


def _row(row: VerdictRow) -> str:
    dagger = r"$^\dagger$" if row.unexpected else ""
    cells = [
        f"{latex_prose(row.locator)}: {latex_mathematics(row.statement)}",
        *(
            latex_text(text) or "--"
            for text in (row.kind, row.provenance, row.instances, row.attack)
        ),
        latex_number(row.tightness),
        latex_text(row.verdict) + dagger,
    ]
    return " & ".join(cells) + r" \\"


def _comment(text: str) -> str:
    """One line, so that nothing leaves the comment."""
    return " ".join(text.split())
