"""The page of a paper's coverage: sections in order, a sign for each state, everything escaped."""

from attlas.projects.latex.statements import PrintedStatement
from attlas.site.coverage import Coverage, Row, State
from attlas.site.coverage_page import render_coverage


def row(number: int, state: State, section: str = "Results", **options) -> Row:
    statement = PrintedStatement(
        "Lemma", str(number), "", options.get("title", ""), "$x$", section, (), (), "a.tex", 1
    )
    return Row(statement, state, options.get("claims", ()), options.get("remark", ""))


def test_every_state_has_its_word_and_a_sign():
    rows = tuple(row(k, state) for k, state in enumerate(State))
    page = render_coverage(Coverage(rows, ()), "On tokens")
    for state in State:
        assert f"</span> {state}</span>" in page
    assert f"{len(State)} statements: 1 proved, 1 proved at a random point, 1 held" in page
    assert "60 % are, whatever came out" in page


def test_a_claim_of_no_statement_is_listed():
    page = render_coverage(Coverage((), (), ("claim a/b names no statement",)), "On tokens")
    assert "<li>claim a/b names no statement</li>" in page


def test_sections_come_in_the_order_of_the_paper_with_their_changes():
    rows = (row(1, State.OPEN, "B"), row(2, State.OPEN, "A"), row(3, State.OPEN, "B"))
    page = render_coverage(Coverage(rows, ("Lemma 4 is new",)), "On tokens")
    assert page.index('">B</h2>') < page.index('">A</h2>')
    assert page.count("<section ") == 3
    assert "<li>Lemma 4 is new</li>" in page
    assert "What has changed" not in render_coverage(Coverage(rows, ()), "On tokens")


def test_texts_of_a_paper_are_escaped():
    bad = "<script>alert(1)</script>"
    rows = (row(1, State.FAILED, bad, title=bad, remark=bad, claims=(bad,)),)
    page = render_coverage(Coverage(rows, (bad,)), bad)
    assert "<script" not in page
    assert page.startswith("<!doctype html>")
