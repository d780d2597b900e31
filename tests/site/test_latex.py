"""Verdict tables in LaTeX: whole rows, closed groups, escaped text; compiled where there is TeX."""

import re
import shutil
import subprocess

import pytest

from attlas.experiments.verdicts import read_reports
from attlas.site.latex import PACKAGES, latex_table
from attlas.site.verdict_rows import HEADS
from attlas.verify.registry import find_claims


@pytest.fixture
def table(claims, store):
    reports = {report.claim: report for report, _ in read_reports(store)}
    return latex_table(
        [(claim, reports.get(claim.name)) for claim in claims],
        {"jax": "0.10\n% evil", "device": "cpu"},
        caption="50 % of a_b",
        label="tab:x}",
    )


def rows_of(table):
    """The rows after the head, split at the alignment signs that are not escaped."""
    body = table.split(r"\endlastfoot")[1].split(r"\end{longtable}")[0].strip()
    return [re.split(r"(?<!\\)&", line.removesuffix(r" \\")) for line in body.splitlines()]


def test_the_table_is_whole(table, claims):
    lines = table.splitlines()
    assert lines[0] == "% made by attlas; jax: 0.10 % evil; device: cpu"
    assert table.count(r"\begin{longtable}") == table.count(r"\end{longtable}") == 1
    rules = [table.index(rf"\{name}") for name in ("toprule", "midrule", "endfirsthead")]
    assert rules == sorted(rules)
    columns = re.sub(r">\{[^{}]*\}", "", lines[3].replace(r"@{}", ""))
    assert len(re.findall(r"p\{[^{}]*\}|r", columns.split("{longtable}")[1])) == len(HEADS)
    rows = rows_of(table)
    assert len(rows) == len(claims)
    assert {len(row) for row in rows} == {len(HEADS)}
    bare = re.sub(r"\\[{}]", "", "\n".join(lines[2:]))
    assert bare.count("{") == bare.count("}")
    assert "%" not in bare.replace(r"\%", "")
    assert r"\label{tab:x}" in table


def test_cells_say_what_the_columns_promise(table):
    cells = {row[0].split(":")[0]: [cell.strip() for cell in row] for row in rows_of(table)}
    assert cells["Lemma 1"] == [
        r"Lemma 1: $x \le y$", "inequality", "as reconstructed", "40 of 64",
        "none found (400 evaluations)", "$0.8$", "supported (consistent)",
    ]  # fmt: skip
    assert cells["Lemma 4"][3:] == ["--", "--", "--", "not run"]
    assert cells["Lemma 3"][-1] == r"supported$^\dagger$"
    assert table.count(r"$^\dagger$ not what the claim expects") == 1
    # expected to be violated: no dagger
    assert cells["Lemma 2"][-1] == "violated"


def compiles(table, folder):
    source = rf"\documentclass{{article}}\usepackage{{{','.join(PACKAGES)}}}\begin{{document}}"
    (folder / "table.tex").write_text(f"{source}\n{table}\\end{{document}}\n", encoding="utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "table.tex"],
        cwd=folder, capture_output=True, check=False,
    )  # fmt: skip
    return done.returncode == 0, done.stdout[-2000:]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no TeX: pdflatex is not installed")
def test_tables_compile_hostile_text_and_every_statement_of_the_atlas_included(table, tmp_path):
    every = latex_table([(claim, None) for claim in find_claims()], {})
    for each in (table, every):
        done, said = compiles(each, tmp_path)
        assert done, said
