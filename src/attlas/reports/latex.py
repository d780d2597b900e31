"""Verdict tables for a paper: LaTeX with booktabs, and where each number comes from."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from attlas.core.claim import Claim
from attlas.core.display.statements import Untypeset, mathml
from attlas.core.verdict import CheckReport
from attlas.reports.content import MARKS

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\n": " ",
    "\r": " ",
}
_HEADS = ("statement", "kind", "status", "source", "verdict", "slack", "tightness", "instances")


def latex_table(
    results: Iterable[tuple[Claim, CheckReport | None]],
    environment: Mapping[str, str],
    caption: str = "Verdicts of the claims.",
    label: str = "tab:verdicts",
) -> str:
    r"""A `longtable` of verdicts; it needs the packages `booktabs` and `longtable`.

    The comment above the table says what computed it, the column `source` whether the text of
    a statement was found, recalled or derived. A dagger marks what did not come out as
    expected.

    Args:
        results: claims with their reports, None where one was not run.
        environment: what computed them, by name; goes into the comment.
        caption: plain text.
        label: for `\ref`, letters, digits and `:-`.

    Returns:
        LaTeX.

    Examples:
        >>> print(latex_table([], {"device": "cpu"}).splitlines()[0])
        % made by attlas; device: cpu
    """
    told = "; ".join(f"{_comment(k)}: {_comment(v)}" for k, v in environment.items())
    rows = [_row(claim, report) for claim, report in results]
    head = " & ".join(_HEADS) + r" \\"
    safe = "".join(c for c in label if c.isalnum() or c in ":-")
    lines = [
        f"% made by attlas; {told}",
        r"\begin{longtable}{llllllll}",
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
    ]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    r"""Plain text with LaTeX's special characters escaped.

    Args:
        text: anything.

    Returns:
        LaTeX that prints it.

    Examples:
        >>> print(latex_text("50% of a_b"))
        50\% of a\_b
    """
    return "".join(_SPECIAL.get(character, character) for character in text)


def latex_prose(text: str) -> str:
    r"""Plain text with $mathematics$ in it, which stays if it can be typeset.

    Args:
        text: what an author wrote.

    Returns:
        LaTeX; mathematics with an unknown command is escaped as text.

    Examples:
        >>> print(latex_prose(r"Lemma 3 & $\eta = C_1^2$"))
        Lemma 3 \& $\eta = C_1^2$
    """
    parts = re.split(r"(\$[^$\n]+\$)", text)
    return "".join(part if _is_mathematics(part) else latex_text(part) for part in parts)


def _is_mathematics(part: str) -> bool:
    if not (part.startswith("$") and len(part) > 2):
        return False
    try:
        mathml(part[1:-1])
    except Untypeset:
        return False
    return True


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


def _row(claim: Claim, report: CheckReport | None) -> str:
    cells: Sequence[str]
    if report is None:
        cells = [MARKS[None].word, "--", "--", "--"]
    else:
        verdict = report.verdict
        dagger = r"\textsuperscript{\textdagger}" if report.defects else ""
        cells = [
            MARKS[verdict.outcome].word + dagger,
            latex_number(verdict.slack),
            latex_number(verdict.tightness),
            f"{verdict.applicable}/{verdict.tried}",
        ]
    said = [claim.locator, claim.kind.value, claim.status.value, claim.source.value]
    return " & ".join([*map(latex_prose, said), *cells]) + r" \\"


def _comment(text: str) -> str:
    """One line, so that nothing leaves the comment."""
    return " ".join(text.split())
