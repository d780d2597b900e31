r"""The coverage of a paper in LaTeX: marks for its preamble, and a table for its appendix."""

import re

from attlas.core.errors import refuse_misfits
from attlas.site.coverage import Coverage, State
from attlas.site.latex_mathematics import latex_prose, latex_text

MARKS = {
    State.PROVED: r"\ensuremath{\blacksquare}",
    State.PROVED_AT_RANDOM: r"\ensuremath{\square}",
    State.HELD: r"\ensuremath{\checkmark}",
    State.EXECUTED: r"\ensuremath{\circ}",
    State.IN_PART: r"\ensuremath{(\checkmark)}",
    State.FALSE: r"\ensuremath{\nvDash}",
    State.SUSPECTED: r"\ensuremath{\nvDash^{?}}",
    State.FAILED: r"\ensuremath{\times}",
}
"""What \attlas{label} prints for a statement, by its state; the others have no mark."""


@refuse_misfits
def macro_file(result: Coverage) -> str:
    r"""A file for the preamble of the paper: \attlas{lem:a} prints the mark of a statement.

    A black square is a proof, a white one a proof at a random point, a check mark a statement that
    held, one in parentheses a statement of which parts were executed; a struck turnstile is a
    statement that is false as printed, with a question mark where it was not read in the print. A
    cross is a verdict that was not expected. A statement that is to do has no mark. The comments
    of the file say so too; it needs amssymb.

    Examples:
        >>> print(macro_file(Coverage((), ())).splitlines()[0])
        % made by `attlas coverage`; needs \usepackage{amssymb}
    """
    lines = [r"% made by `attlas coverage`; needs \usepackage{amssymb}"]
    lines += [f"% {mark} {state}" for state, mark in MARKS.items()]
    lines += [
        r"\makeatletter",
        r"\providecommand{\attlas}[1]{\@ifundefined{attlas@#1}{}{\csname attlas@#1\endcsname}}",
    ]
    for row in result.rows:
        mark = MARKS.get(row.state)
        for key in (row.statement.label, row.statement.locator):
            if mark and key and not re.search(r"[\\{}%#]", key):
                lines.append(rf"\expandafter\def\csname attlas@{key}\endcsname{{{mark}}}")
    return "\n".join([*lines, r"\makeatother", ""])


@refuse_misfits
def coverage_table(result: Coverage) -> str:
    r"""A table in LaTeX of every statement with its state, by booktabs and longtable.

    Mathematics of a title stays mathematics where it is sure to compile, and is text elsewhere.

    Examples:
        >>> print(coverage_table(Coverage((), ())).splitlines()[-1])
        \end{longtable}
    """
    rows = [
        f"{latex_text(row.statement.locator)} & {latex_prose(row.statement.title)} & "
        f"{latex_text(str(row.state))} & {latex_prose(row.remark)} \\\\"
        for row in result.rows
    ]
    head = [r"% made by `attlas coverage`; needs \usepackage{amsmath,amssymb,booktabs,longtable}"]
    head += [r"\begin{longtable}{@{}lp{0.3\linewidth}lp{0.3\linewidth}@{}}", r"\toprule"]
    head += [r"statement & title & state & \\", r"\midrule", r"\endhead"]
    return "\n".join([*head, *rows, r"\bottomrule", r"\end{longtable}", ""])
