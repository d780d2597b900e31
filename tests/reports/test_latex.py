"""Verdict tables in LaTeX: whole rows, closed groups, escaped text."""

import re

from attlas.reports.latex import latex_table


def _table(claims, reports):
    return latex_table(
        [(claim, reports.get(claim.name)) for claim in claims],
        {"jax": "0.10\n% evil", "device": "cpu"},
        caption="50 % of a_b",
        label="tab:x}",
    )


def test_the_table_is_whole(claims, store):
    from attlas.runs.verdicts import read_reports

    reports = {report.claim: report for report, _ in read_reports(store)}
    table = _table(claims, reports)
    lines = table.splitlines()
    assert lines[0] == "% made by attlas; jax: 0.10 % evil; device: cpu"
    assert table.count(r"\begin{longtable}") == table.count(r"\end{longtable}") == 1
    rules = [table.index(rf"\{name}") for name in ("toprule", "midrule", "endfirsthead")]
    assert rules == sorted(rules)
    rows = [line for line in lines if re.search(r"(?<!\\)&", line)]
    assert len(rows) == 2 + len(claims)
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {7}
    assert all(row.endswith(r" \\") for row in rows)
    bare = re.sub(r"\\[{}]", "", "\n".join(lines[1:]))
    assert bare.count("{") == bare.count("}")
    assert "%" not in bare.replace(r"\%", "")
    assert "_" not in bare.replace(r"\_", "")
    assert r"\label{tab:x}" in table
    assert "not run & -- & -- & --" in table
    assert table.count(r"\textdagger") == 1
