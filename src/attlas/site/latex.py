"""Verdict tables for a paper, in LaTeX with booktabs, with the origin of the numbers."""

import math
from collections.abc import Iterable, Mapping

from attlas.claims.claim import Claim
from attlas.claims.verdict import CheckReport
from attlas.core.errors import refuse_misfits
from attlas.site.latex_mathematics import latex_mathematics, latex_prose, latex_text
from attlas.site.verdict_rows import HEADS, VerdictRow, verdict_row

PACKAGES = ("amsmath", "amssymb", "array", "booktabs", "longtable")
_WIDTHS = (0.23, 0.12, 0.125, 0.1, 0.13, None, 0.12)
"""Width of each column as a share of the line, None for a column of numbers."""
_DAGGER = (
    rf"\multicolumn{{{len(_WIDTHS)}}}{{@{{}}l@{{}}}}"
    r"{$^\dagger$ not what the claim expects, or a control did not come out as it must}\\"
)


@refuse_misfits
def latex_table(
    results: Iterable[tuple[Claim, CheckReport | None]],
    environment: Mapping[str, str],
    caption: str = "Verdicts of the claims.",
    label: str = "tab:verdicts",
) -> str:
    r"""A `longtable` of verdicts with rules of booktabs; it needs the LaTeX `PACKAGES`.

    The comment above the table names the environment. The column `provenance` says how a statement
    relates to the printed one and whether it was read, recalled or derived. A dagger marks
    unexpected results, which a line under the table says.

    Args:
        results: claims with their reports, None if not run.
        environment: environment of the checks, by name, for the comment.

    Examples:
        >>> print(latex_table([], {"device": "cpu"}).splitlines()[0])
        % made by attlas; device: cpu
    """
    provenance = "; ".join(f"{_comment(k)}: {_comment(v)}" for k, v in environment.items())
    verdicts = [verdict_row(claim, report) for claim, report in results]
    head = " & ".join(HEADS) + r" \\"
    safe = "".join(c for c in label if (c.isalnum() and c.isascii()) or c in ":-")
    lines = [
        f"% made by attlas; {provenance}",
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
        *([_DAGGER] if any(row.unexpected for row in verdicts) else []),
        r"\endlastfoot",
        *map(_row, verdicts),
        r"\end{longtable}",
        r"\endgroup",
    ]
    return "\n".join(lines) + "\n"


def latex_number(value: float | None) -> str:
    r"""A number with three significant digits in LaTeX, -- for None and NaN.

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
    # TeX does not hyphenate the first word of a paragraph, such as one of a narrow cell.
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
