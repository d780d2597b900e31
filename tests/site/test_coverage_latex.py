r"""Marks and a table of a coverage in LaTeX: one mark for each state, titles that compile."""

import re

from attlas.projects.latex.statements import PrintedStatement
from attlas.site.coverage import Coverage, Row, State
from attlas.site.coverage_latex import MARKS, coverage_table, macro_file


def row(number: int, state: State, title: str = "") -> Row:
    statement = PrintedStatement(
        "Lemma", str(number), f"lem:{number}", title, "$x$", "Results", (), (), "a.tex", 1
    )
    return Row(statement, state, (), "")


def test_no_two_states_have_one_mark_and_the_file_explains_each():
    macros = macro_file(Coverage(tuple(row(k, state) for k, state in enumerate(State)), ()))
    assert len(set(MARKS.values())) == len(MARKS)
    for place, state in enumerate(State):
        (mark,) = re.findall(rf"attlas@lem:{place}\\endcsname\{{(.*)\}}", macros) or [None]
        assert mark == MARKS.get(state)
        assert (f"% {mark} {state}" in macros) is (mark is not None)


def test_mathematics_of_a_title_stays_mathematics_where_it_is_safe():
    title = r"On $\kappa$, $\input{a}$ and 5 %"
    table = coverage_table(Coverage((row(1, State.OPEN, title),), ()))
    assert r"On $\kappa$, \$\textbackslash{}input\{a\}\$ and 5 \%" in table
