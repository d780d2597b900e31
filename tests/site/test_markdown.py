"""Verdict tables in Markdown, read again by a parser of CommonMark with pipe tables."""

import re

import pytest
from markdown_it import MarkdownIt

from attlas.experiments.verdicts import read_reports
from attlas.site.markdown import markdown_mathematics, markdown_table
from attlas.site.verdict_rows import HEADS
from attlas.verify.registry import find_claims


def parsed(text):
    """Cells of every row, as HTML without mathematics."""
    page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.S)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in rows], page


@pytest.fixture
def table(claims, store):
    reports = {report.claim: report for report, _ in read_reports(store)}
    return markdown_table([(c, reports.get(c.name)) for c in claims], {"device": "cpu | <b>"})


def test_the_parser_finds_every_cell(table, claims):
    rows, page = parsed(table)
    assert rows[0] == list(HEADS)
    assert len(rows) == 1 + len(claims)
    assert {len(row) for row in rows} == {len(HEADS)}
    first = next(row for row in rows if row[0].startswith("Lemma 1:"))
    assert first == [
        r"Lemma 1: $x \le y$", "inequality", "as reconstructed", "40 of 64",
        "none found (400 evaluations)", "0.8", "supported (consistent)",
    ]  # fmt: skip
    assert "device: cpu | &lt;b&gt;" in page


def test_hostile_text_is_text(table):
    _, page = parsed(table)
    assert "<script" not in page
    assert "<img" not in page
    assert "&lt;script&gt;" in page


def test_every_statement_of_the_atlas_is_one_cell_that_markdown_leaves_alone():
    for claim in find_claims():
        shown = markdown_mathematics(claim.statement)
        assert shown.startswith("$")
        assert "|" not in shown
        # a backslash before a sign would be taken by Markdown
        assert not re.search(r"\\[^a-zA-Z#%]", shown)


def test_spelled_mathematics_is_the_same_mathematics():
    from attlas.display.statements import mathml

    latex = r"\|x\| < 1,\; \{y\} = |z|"
    spelled = markdown_mathematics(latex).strip("$")
    assert spelled == (r"\Vert x\Vert  \lt  1,\thickspace  \lbrace y\rbrace  = \vert z\vert")
    words = [re.sub(r"<[^>]*>", "", mathml(each)) for each in (latex, spelled)]
    assert words[0].replace("|", "∣") == words[1].replace("|", "∣")
