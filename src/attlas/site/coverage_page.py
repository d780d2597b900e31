"""The page that says for every statement of a paper whether it is executed."""

from dataclasses import dataclass

from attlas.core.errors import refuse_misfits
from attlas.projects.latex.statements import PrintedStatement
from attlas.site.coverage import Coverage, Row, State
from attlas.site.links import Links, anchor
from attlas.site.page import render_template

COVERAGE = "coverage.html"
"""The name of the page beside an atlas."""
_MARKS = {
    State.PROVED: ("■", "good"),
    State.PROVED_AT_RANDOM: ("□", "good"),
    State.HELD: ("✓", "good"),
    State.EXECUTED: ("◦", "calm"),
    State.IN_PART: ("(✓)", "open"),
    State.FALSE: ("⊭", "bad"),
    State.SUSPECTED: ("⊭?", "open"),
    State.FAILED: ("✗", "bad"),
    State.UNCHECKED: ("○", "open"),
    State.OPEN: ("○", "none"),
    State.NOT_EXECUTABLE: ("∅", "calm"),
}
"""A sign and a colour for each state, never colour alone."""


@dataclass(frozen=True)
class ShownRow:
    """A statement as the page shows it."""

    anchor: str
    statement: PrintedStatement
    state: str
    sign: str
    tone: str
    claims: tuple[str, ...]
    remark: str


@dataclass(frozen=True)
class Section:
    """A section of the paper with its statements."""

    title: str
    rows: tuple[ShownRow, ...]


@refuse_misfits
def render_coverage(result: Coverage, title: str, links: Links | None = None) -> str:
    """The coverage of a paper as one HTML document that loads nothing.

    Args:
        title: title of the paper.
        links: of a page beside an atlas.

    Examples:
        >>> "0 statements: none." in render_coverage(Coverage((), ()), "On tokens")
        True
    """
    return render_template(
        "coverage.html.j2",
        title=title,
        result=result,
        counts=[(str(state), number) for state, number in result.counts.items() if number],
        sections=_sections(result),
        links=links or Links(),
    )


def _sections(result: Coverage) -> list[Section]:
    sections: dict[str, list[ShownRow]] = {}
    for place, row in enumerate(result.rows):
        sections.setdefault(row.statement.section, []).append(_shown(row, place))
    return [Section(title, tuple(rows)) for title, rows in sections.items()]


def _shown(row: Row, place: int) -> ShownRow:
    sign, tone = _MARKS[row.state]
    name = anchor("statement", f"{row.statement.locator} {place}")
    return ShownRow(name, row.statement, str(row.state), sign, tone, row.claims, row.remark)
