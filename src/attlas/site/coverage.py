r"""Which statements of a paper are executed, and with which outcome."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from attlas.claims.todo import Todo
from attlas.claims.verdict import CheckReport, Strength, proved_at_random
from attlas.core.errors import UserError
from attlas.experiments.store import Store
from attlas.experiments.verdicts import Defined, is_current, read_reports
from attlas.projects.latex.statements import PrintedStatement, read_paper
from attlas.projects.latex.stubs import read_statements
from attlas.projects.latex.update import is_located, named, paired
from attlas.projects.places import read_place
from attlas.projects.project import project_in
from attlas.site.latex_mathematics import latex_text
from attlas.site.listed import list_declared


class State(StrEnum):
    """What is known of a statement."""

    PROVED = "proved"
    PROVED_AT_RANDOM = "proved at a random point"
    EXECUTED = "executed"
    FAILED = "not as expected"
    UNCHECKED = "not checked yet"
    OPEN = "to do"
    NOT_EXECUTABLE = "not executable"


_DONE = (State.PROVED, State.PROVED_AT_RANDOM, State.EXECUTED)


@dataclass(frozen=True)
class Row:
    """A statement with its state, the claims that execute it, and what to say of it."""

    statement: PrintedStatement
    state: State
    claims: tuple[str, ...]
    remark: str


@dataclass(frozen=True)
class Coverage:
    """The statements of a paper, and what has changed in its sources since the stubs."""

    rows: tuple[Row, ...]
    changes: tuple[str, ...]

    @property
    def counts(self) -> Mapping[State, int]:
        """The number of statements in each state."""
        counted = Counter(row.state for row in self.rows)
        return {state: counted[state] for state in State}

    @property
    def share(self) -> float:
        """The share executed or proved of all that can be executed; 1 if nothing can."""
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

    A claim executes the statement at which its locator begins; its verdict is the stored one.

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
    main = Path(os.path.normpath(folder / source))
    if not main.exists():
        return Coverage(rows, (f"the sources {main} are not here: nothing was compared",))
    return Coverage(rows, changes(stored, read_paper(main).statements))


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
    verdicts = [report.verdict for _, report in of if report]
    state = State.EXECUTED
    if all(report and report.strength is Strength.PROVED for _, report in of):
        at_random = proved_at_random(report for _, report in of if report)
        state = State.PROVED_AT_RANDOM if at_random else State.PROVED
    outcomes = ", ".join(dict.fromkeys(str(verdict.outcome) for verdict in verdicts))
    return Row(statement, state, names, outcomes)


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
    """The states as plain JSON: the share, each statement, and what has changed."""
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
    return {"share": result.share, "statements": statements, "changes": list(result.changes)}


_MARKS = {
    State.PROVED: r"\ensuremath{\blacksquare}",
    State.PROVED_AT_RANDOM: r"\ensuremath{\square}",
    State.EXECUTED: r"\ensuremath{\checkmark}",
    State.FAILED: r"\ensuremath{\times}",
}


def macro_file(result: Coverage) -> str:
    r"""A file for the preamble of the paper: \attlas{lem:a} prints the mark of a statement.

    A black square is a proof, a white one a proof at a random point, a check mark a verdict as
    expected, a cross one that is not; a statement that is to do has no mark. It needs amssymb.
    """
    lines = [
        "% made by `attlas coverage`; needs \\usepackage{amssymb}",
        r"\makeatletter",
        r"\providecommand{\attlas}[1]{\@ifundefined{attlas@#1}{}{\csname attlas@#1\endcsname}}",
    ]
    for row in result.rows:
        mark = _MARKS.get(row.state)
        for key in (row.statement.label, row.statement.locator):
            if mark and key and not re.search(r"[\\{}%#]", key):
                lines.append(rf"\expandafter\def\csname attlas@{key}\endcsname{{{mark}}}")
    return "\n".join([*lines, r"\makeatother", ""])


def coverage_table(result: Coverage) -> str:
    r"""A table in LaTeX of every statement with its state, by booktabs and longtable."""
    rows = [
        f"{latex_text(row.statement.locator)} & {latex_text(row.statement.title)} & "
        f"{latex_text(str(row.state))} & {latex_text(row.remark)} \\\\"
        for row in result.rows
    ]
    head = ["% made by `attlas coverage`; needs \\usepackage{booktabs,longtable}"]
    head += [r"\begin{longtable}{@{}lp{0.3\linewidth}lp{0.3\linewidth}@{}}", r"\toprule"]
    head += [r"statement & title & state & \\", r"\midrule", r"\endhead"]
    return "\n".join([*head, *rows, r"\bottomrule", r"\end{longtable}", ""])
