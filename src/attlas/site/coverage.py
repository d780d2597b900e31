"""Which statements of a paper are executed, and with which outcome."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from attlas.claims.claim import Status
from attlas.claims.todo import Todo
from attlas.claims.verdict import CheckReport, Outcome, Strength, proved_at_random
from attlas.core.errors import UserError
from attlas.experiments.store import Store
from attlas.experiments.verdicts import Defined, is_current, read_reports
from attlas.projects.latex.locators import is_located, names_whole, nearest_statement
from attlas.projects.latex.statements import PrintedStatement, read_paper
from attlas.projects.latex.stubs import read_statements
from attlas.projects.latex.update import named, paired
from attlas.projects.loading import shown_path
from attlas.projects.places import read_place
from attlas.projects.project import project_in
from attlas.site.listed import COMPUTED, list_declared


class State(StrEnum):
    """What is known of a statement."""

    PROVED = "proved"
    PROVED_AT_RANDOM = "proved at a random point"
    HELD = "held"
    EXECUTED = "executed"
    IN_PART = "executed in part"
    FALSE = "false as printed"
    SUSPECTED = "suspected to be false"
    FAILED = "not as expected"
    UNCHECKED = "not checked yet"
    OPEN = "to do"
    NOT_EXECUTABLE = "not executable"


_DONE = (
    *(State.PROVED, State.PROVED_AT_RANDOM, State.HELD, State.EXECUTED),
    *(State.FALSE, State.SUSPECTED),
)
"""A statement that is executed in part is not among them."""


@dataclass(frozen=True)
class Row:
    """A statement with its state, the claims that execute it, and what to say of it."""

    statement: PrintedStatement
    state: State
    claims: tuple[str, ...]
    remark: str


@dataclass(frozen=True)
class Coverage:
    """The statements of a paper, and what has changed in its sources since the stubs.

    A line in `unmatched` names each claim that is of none of the statements.
    """

    rows: tuple[Row, ...]
    changes: tuple[str, ...]
    unmatched: tuple[str, ...] = ()

    @property
    def counts(self) -> Mapping[State, int]:
        """The number of statements in each state."""
        counted = Counter(row.state for row in self.rows)
        return {state: counted[state] for state in State}

    @property
    def share(self) -> float:
        """The share of all that can be executed which is, as a whole, whatever came out.

        It is 1 if nothing can be executed.
        """
        counts = self.counts
        possible = len(self.rows) - counts[State.NOT_EXECUTABLE]
        done = sum(counts[state] for state in _DONE)
        return done / possible if possible else 1.0


def coverage_of_project(place: Path, store: Store) -> Coverage:
    """The state of every statement of the project in a folder; its code does not run.

    Args:
        store: the results that have the verdicts.

    Raises:
        UserError: if no project is there, or it was not made from LaTeX.
    """
    project = project_in(place.resolve())
    if project is None:
        raise UserError(
            f"{place} is no folder of a paper: `attlas new paper KEY --from main.tex` makes one"
        )
    places = [read_place(text, project.root) for text in project.claims_or_folder]
    shown, stubs = list_declared(places)
    result = coverage(project.root, shown.claims, stubs, store)
    return replace(result, changes=(*result.changes, *shown.notes))


@runtime_checkable
class Located(Defined, Protocol):
    """A claim, or what a source says of one."""

    @property
    def status(self) -> Status:
        """How its statement relates to the paper's."""
        ...

    @property
    def name(self) -> str:
        """Its unique name."""
        ...

    @property
    def locator(self) -> str:
        """Where the statement stands in the paper."""
        ...


def coverage(
    folder: Path, claims: Sequence[Located], todos: Sequence[Todo], store: Store
) -> Coverage:
    """The state of every statement that the LaTeX of a project's paper holds.

    A claim executes the statement at which its locator begins, or a part of it where more follows;
    its verdict is the stored one. A claim that names none of them has a line.

    Args:
        folder: the project's folder, with `statements.json`.

    Raises:
        UserError: if the project was not made from LaTeX.
    """
    source, _, stored = read_statements(folder)
    reports = {report.claim: report for report, _ in read_reports(store)}
    stated = [statement for statement in stored if statement.role == "statement"]
    reasons = {stub.locator: stub.reason for stub in todos if stub.reason}
    rows = tuple(_row(statement, claims, reports, reasons) for statement in stated)
    unmatched = tuple(_unmatched(claims, [statement.locator for statement in stored]))
    main = Path(os.path.normpath(folder / source))
    if not main.exists():
        missing = f"the sources {main} are not here: nothing was compared"
        return Coverage(rows, (missing,), unmatched)
    return Coverage(rows, changes(stored, read_paper(main).statements), unmatched)


def _unmatched(claims: Iterable[Located], statements: Sequence[str]) -> Iterator[str]:
    """A line for each claim whose locator names no statement of the paper."""
    for claim in claims:
        locator = claim.locator
        if locator == COMPUTED or any(is_located(locator, name) for name in statements):
            continue
        nearest = nearest_statement(locator, statements)
        near = f"; the nearest is '{nearest}'" if nearest else ""
        yield (
            f"claim {claim.name} ({shown_path(claim.place[0])}:{claim.place[1]}) names no "
            f"statement of the paper: its locator is '{locator}'{near}"
        )


def _row(
    statement: PrintedStatement,
    claims: Iterable[Located],
    reports: Mapping[str, CheckReport],
    reasons: Mapping[str, str],
) -> Row:
    row = _state(statement, claims, reports, reasons)
    if not statement.reworded or row.state is State.OPEN:
        return row
    where = f"{statement.file}:{statement.line}"
    return replace(row, remark=f"reworded since its claims were written: read {where}")


def _state(
    statement: PrintedStatement,
    claims: Iterable[Located],
    reports: Mapping[str, CheckReport],
    reasons: Mapping[str, str],
) -> Row:
    locator = statement.locator
    claims_of_it = [claim for claim in claims if is_located(claim.locator, locator)]
    names = tuple(claim.name for claim in claims_of_it)
    if not claims_of_it:
        reason = reasons.get(locator, "")
        return Row(statement, State.NOT_EXECUTABLE if reason else State.OPEN, (), reason)
    of = [(claim, reports.get(claim.name)) for claim in claims_of_it]
    missing = [
        claim.name for claim, report in of if report is None or not is_current(claim, report)
    ]
    if missing:
        return Row(statement, State.UNCHECKED, names, f"attlas check {missing[0]}")
    defects = [defect for _, report in of if report for defect in report.defects]
    if defects:
        return Row(statement, State.FAILED, names, defects[0])
    reported = [(claim, report) for claim, report in of if report]
    state, remark = _outcome(reported)
    located = [claim.locator for claim in claims_of_it]
    if state not in _REFUTED and not names_whole(located, locator, statement.text):
        state, remark = State.IN_PART, f"{remark}: {', '.join(dict.fromkeys(located))}"
    elif state in _REFUTED and locator not in located:
        remark = f"{', '.join(dict.fromkeys(located))}: {remark}"
    return Row(statement, state, names, remark)


_REFUTED = State.FALSE, State.SUSPECTED


def _outcome(reported: Sequence[tuple[Located, CheckReport]]) -> tuple[State, str]:
    """The state that claims with expected verdicts give their statement, and what to say of it."""
    false = [
        (claim, report)
        for claim, report in reported
        if claim.status in (Status.ERRATUM, Status.SUSPECTED_ERRATUM)
        and report.verdict.outcome is Outcome.VIOLATED
    ]
    if false:
        printed = any(claim.status is Status.ERRATUM for claim, _ in false)
        corrections = [
            control.description
            for _, report in false
            for control in report.controls
            if control.expect is Outcome.SUPPORTED
        ]
        held = f"its correction holds: {'; '.join(corrections)}"
        state = State.FALSE if printed else State.SUSPECTED
        return state, held if corrections else "no correction is checked"
    reports = [report for _, report in reported]
    outcomes = ", ".join(dict.fromkeys(str(report.verdict.outcome) for report in reports))
    if all(report.strength is Strength.PROVED for report in reports):
        at_random = proved_at_random(reports)
        return State.PROVED_AT_RANDOM if at_random else State.PROVED, outcomes
    held = all(report.verdict.outcome is Outcome.SUPPORTED for report in reports)
    return State.HELD if held else State.EXECUTED, outcomes


def changes(
    stored: Sequence[PrintedStatement], current: Sequence[PrintedStatement]
) -> tuple[str, ...]:
    """What has changed in a paper since its stubs: renumbered, reworded, new and removed ones.

    A statement is known again by its label, else by its text, else by its number.
    """
    lines = []
    for old, new in paired(stored, current):
        if old is None:
            if new is not None and new.role == "statement":
                lines.append(f"{named(new)} is new at {new.file}:{new.line}: it has no stub")
        elif new is None:
            lines.append(f"{named(old)} is gone from the sources")
        else:
            if new.locator != old.locator:
                lines.append(f"{named(old)} is now {new.locator}")
            if new.digest != old.digest:
                lines.append(f"{named(old)} is worded otherwise now: read {new.file}:{new.line}")
    return tuple(lines)


def coverage_document(result: Coverage) -> dict[str, Any]:
    """The states as plain JSON: the share, each statement, what changed, and unmatched claims."""
    statements = [
        {
            "locator": row.statement.locator,
            "label": row.statement.label,
            "state": str(row.state),
            "claims": list(row.claims),
            "remark": row.remark,
        }
        for row in result.rows
    ]
    return {
        "share": result.share,
        "statements": statements,
        "changes": list(result.changes),
        "unmatched": list(result.unmatched),
    }
