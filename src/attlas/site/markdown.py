"""Verdict tables in GitHub's Markdown, with mathematics between dollar signs."""

import re
from collections.abc import Iterable, Mapping

from attlas.claims.claim import Claim
from attlas.claims.verdict import CheckReport
from attlas.core.errors import refuse_misfits
from attlas.display.numbers import plain_number
from attlas.display.statements import Untypeset, mathml
from attlas.site.verdict_rows import HEADS, VerdictRow, verdict_row

_MARKED = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")
_SPELLED = {
    r"\|": r"\Vert ",
    "|": r"\vert ",
    r"\{": r"\lbrace ",
    r"\}": r"\rbrace ",
    r"\,": r"\thinspace ",
    r"\:": r"\medspace ",
    r"\;": r"\thickspace ",
    r"\!": r"\negthinspace ",
    r"\\": r"\cr ",
    r"\ ": "~",
    "<": r"\lt ",
    ">": r"\gt ",
    "$": r"\text{\textdollar}",
}
"""Markdown removes a backslash before a sign, and a bar ends the cell: both become commands."""
_TOKEN = re.compile(r"\\(?:[a-zA-Z]+|.)|.", re.S)


@refuse_misfits
def markdown_table(
    results: Iterable[tuple[Claim, CheckReport | None]], environment: Mapping[str, str]
) -> str:
    """A table of verdicts, with the environment in a line below; a report is None if not run.

    Examples:
        >>> print(markdown_table([], {}).splitlines()[0])
        | statement | kind | provenance | instances | attack | tightness | verdict |
    """
    rows = [_row(verdict_row(claim, report)) for claim, report in results]
    align = ["---:" if head == "tightness" else "---" for head in HEADS]
    lines = [_line(HEADS), _line(align), *rows]
    provenance = "; ".join(f"{name}: {value}" for name, value in environment.items())
    if provenance:
        lines += ["", f"Made by attlas; {markdown_text(provenance)}."]
    return "\n".join(lines) + "\n"


def markdown_text(text: str) -> str:
    r"""Plain text in which nothing is markup.

    Examples:
        >>> print(markdown_text("a_b | <i>"))
        a\_b \| \<i\>
    """
    return _MARKED.sub(r"\\\1", " ".join(text.split()))


def markdown_mathematics(latex: str) -> str:
    r"""A statement as inline mathematics for a table's cell, or as text if it cannot be typeset.

    Args:
        latex: mathematics without dollar signs; a sentence is one `\text{}`.

    Examples:
        >>> print(markdown_mathematics(r"\|x\| \le 1"), markdown_mathematics(r"\text{All $x$.}"))
        $\Vert x\Vert  \le 1$ All $x$.
    """
    sentence = re.fullmatch(r"\\text\{(.*)\}", latex, re.S)
    if sentence:
        return markdown_prose(sentence.group(1))
    try:
        mathml(latex)
    except Untypeset:
        return markdown_text(latex)
    tokens: list[str] = _TOKEN.findall(" ".join(latex.split()))
    return f"${''.join(_SPELLED.get(t, t) for t in tokens).strip()}$"


def markdown_prose(text: str) -> str:
    r"""Prose with $mathematics$ and `code` in it.

    Examples:
        >>> print(markdown_prose("Lemma 3 (a*b), $|x|$"))
        Lemma 3 \(a\*b\), $\vert x\vert$
    """
    pieces = re.split(r"(\$[^$\n]+\$)", text)
    return "".join(map(_prose_part, pieces))


def _prose_part(part: str) -> str:
    if part.startswith("$") and len(part) > 2:
        return markdown_mathematics(part[1:-1])
    before = " " if part[:1].isspace() else ""
    after = " " if part[-1:].isspace() and part.strip() else ""
    return before + markdown_text(part) + after


def _row(row: VerdictRow) -> str:
    texts = (row.kind, row.provenance, row.instances, row.attack)
    return _line(
        (
            f"{markdown_prose(row.locator)}: {markdown_mathematics(row.statement)}",
            *(markdown_text(text) or "–" for text in texts),
            plain_number(row.tightness),
            markdown_text(row.verdict) + (" (unexpected)" if row.unexpected else ""),
        )
    )


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
