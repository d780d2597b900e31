"""Coverage says of every statement of a paper what is known, and notices what has changed."""

from dataclasses import replace

import pytest
from projects.latex import sample_paper

from attlas.claims.claim import Control, Source
from attlas.claims.statement import erratum, inequality
from attlas.claims.todo import todo
from attlas.core.errors import UserError
from attlas.experiments.store import Store
from attlas.experiments.verdicts import write_report
from attlas.projects.latex.statements import read_paper
from attlas.projects.latex.stubs import STATEMENTS, statements_text
from attlas.site.coverage import State, changes, coverage
from attlas.site.coverage_latex import coverage_table, macro_file
from attlas.verify.check import check


@inequality(
    "Thm. 1.1",
    sample=lambda rng, count: {"x": rng.normal(size=count)},
    controls=[Control("4x", factor=4.0)],
)
def tangent(x, *, factor=2.0):
    r"$$2x \le x^2 + 1$$"
    return factor * x, x**2 + 1


@todo("Lemma 2.2", reason="about every set")
def lemma():
    pass


@pytest.fixture
def folder(tmp_path):
    paper = read_paper(sample_paper.write(tmp_path))
    text = statements_text(paper.title, paper.statements, "main.tex")
    (tmp_path / STATEMENTS).write_text(text)
    return tmp_path


def states(found):
    return {row.statement.locator: row.state for row in found.rows}


def test_the_state_of_every_statement(folder, tmp_path):
    store = Store(tmp_path / "results")
    found = coverage(folder, [tangent], [lemma], store)
    assert states(found) == {
        "Theorem 1.1": State.UNCHECKED,
        "Proposition 2.1": State.OPEN,
        "Lemma 2.2": State.NOT_EXECUTABLE,
        "Lemma A.2": State.OPEN,
    }
    assert (found.share, found.changes) == (0.0, ())
    write_report(store, check(tangent, challenge=0), tangent)
    found = coverage(folder, [tangent], [lemma], store)
    assert states(found)["Theorem 1.1"] is State.HELD
    assert found.share == pytest.approx(1 / 3)
    assert r"\csname attlas@thm:descent\endcsname{\ensuremath{\checkmark}}" in macro_file(found)
    assert "prop:half" not in macro_file(found)
    assert "Lemma 2.2 &  & not executable & about every set" in coverage_table(found)


def test_a_verdict_that_is_not_as_expected_does_not_count(folder, tmp_path):
    store = Store(tmp_path / "results")
    report = check(tangent, challenge=0)
    write_report(store, replace(report, faults=("a control passed",)), tangent)
    found = coverage(folder, [tangent], [], store)
    assert (states(found)["Theorem 1.1"], found.share) == (State.FAILED, 0.0)


def test_renumbered_reworded_new_and_removed_statements_are_noticed(folder):
    old = read_paper(folder / "main.tex").statements
    text = (folder / "main.tex").read_text()
    text = text.replace(r"\le \tr A", r"\le 2 \tr A")
    text = text.replace(r"\input", r"\begin{lemma} $q$ \end{lemma} \input")
    (folder / "main.tex").write_text(text)
    more = folder / "sections" / "more.tex"
    head = more.read_text().partition(r"\begin{lemma}")[0]
    more.write_text(head.replace("\\section{More}", "\\section{A}\\section{More}"))
    said = changes(old, read_paper(folder / "main.tex").statements)
    assert said == (
        "Theorem 1.1 (thm:descent) is worded otherwise now: read main.tex:17",
        "Proposition 2.1 (prop:half) is now Proposition 3.1",
        "Lemma 2.2 (lem:exists) is gone from the sources",
        "Lemma 1.2 is new at main.tex:20: it has no stub",
    )


def test_sources_that_are_elsewhere_are_said_so(folder):
    (folder / "main.tex").unlink()
    (line,) = coverage(folder, [], [], Store(folder / "r")).changes
    assert line.endswith("main.tex are not here: nothing was compared")


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"schema": 9}', '{"schema": 1}'])
def test_damaged_statements_are_refused(tmp_path, content):
    (tmp_path / STATEMENTS).write_text(content)
    with pytest.raises(UserError, match=STATEMENTS):
        coverage(tmp_path, [], [], Store(tmp_path / "r"))


def draw(rng, count):
    return {"x": rng.normal(size=count)}


def printed(source, locator="Theorem 1.1"):
    @erratum(locator, source, sample=draw, reason="x = -1", corrected=Control("of |x|", size=abs))
    def root_of_square(x, *, size=lambda x: x):
        r"$$|x| \le x$$"
        return abs(x), size(x)

    return root_of_square


@pytest.mark.parametrize(
    ("source", "state", "mark"),
    [
        (Source.FOUND, State.FALSE, r"{\ensuremath{\nvDash}}"),
        (Source.RECALLED, State.SUSPECTED, r"{\ensuremath{\nvDash^{?}}}"),
    ],
)
def test_a_statement_that_is_false_as_printed_never_counts_as_held(folder, source, state, mark):
    claim, store = printed(source), Store(folder / "results")
    for each in (claim, tangent):  # another claim of the statement holds
        write_report(store, check(each, challenge=0), each)
    result = coverage(folder, [claim, tangent], [], store)
    row = result.rows[0]
    assert (row.state, row.remark) == (state, "its correction holds: of |x|")
    assert (result.counts[State.HELD], result.counts[state]) == (0, 1)
    assert rf"attlas@thm:descent\endcsname{mark}" in macro_file(result)
    assert r"attlas@thm:descent\endcsname{\ensuremath{\checkmark}}" not in macro_file(result)
    assert f"{state} & its correction holds" in coverage_table(result)


def test_a_part_is_not_the_whole(folder):
    part, store = replace(tangent, locator="Theorem 1.1 (first part)"), Store(folder / "results")
    write_report(store, check(part, challenge=0), part)
    result = coverage(folder, [part], [], store)
    assert (result.rows[0].state, result.share) == (State.IN_PART, 0.0)
    assert result.rows[0].remark == "SUPPORTED: Theorem 1.1 (first part)"
    assert r"{\ensuremath{(\checkmark)}}" in macro_file(result)


def test_a_claim_that_names_no_statement_is_told(folder):
    wrong = replace(tangent, locator="Theorm 1.1")
    result = coverage(folder, [wrong, tangent], [], Store(folder / "r"))
    (line,) = result.unmatched
    assert line.startswith(f"claim {tangent.name} (")
    assert "names no statement of the paper: its locator is 'Theorm 1.1'" in line
    assert line.endswith("; the nearest is 'Theorem 1.1'")
    far = replace(tangent, locator="Proposition 99")
    assert coverage(folder, [far], [], Store(folder / "r")).rows[0].state is State.OPEN
