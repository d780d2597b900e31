"""From LaTeX to stubs to a claim: the commands that a theorist types."""

import json

import pytest
from projects.latex import sample_paper

from attlas.cli.main import main

CLAIM = r"""
import jax.numpy as jnp
import attlas as at


@at.inequality(
    "Theorem 1.1",
    sample=lambda rng, count: {"x": rng.normal(size=(count, 3))},
    controls=[at.Control("half", factor=0.5)],
)
def theorem_1_1(x, *, factor=1.0):
    r"$$\|x\|_2 \le \|x\|_1$$"
    return jnp.linalg.norm(x), factor * jnp.sum(jnp.abs(x))
"""


@pytest.fixture
def paper(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    sample_paper.write(tmp_path / "tex")
    monkeypatch.chdir(tmp_path)
    assert run("new", "paper", "doe2026", "--from", "tex/main.tex") == 0
    monkeypatch.chdir(tmp_path / "doe2026")
    return tmp_path / "doe2026"


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    return stopped.value.code


def test_a_stub_is_written_for_every_statement(paper, capsys):
    files = sorted(file.name for file in paper.glob("claims_*.py"))
    assert files == ["claims_01_results.py", "claims_02_more.py", "claims_03_proofs.py"]
    text = "".join((paper / file).read_text() for file in files)
    assert text.count("@todo(") == text.count("\n@todo(") == 4
    assert "none of them is executed" not in text
    assert not (paper / "test_claims.py").exists()  # the plugin of pytest collects the claims
    assert '@todo("Proposition 2.1", label="prop:half", kind="limit")' in text
    assert 'kind="expectation", assumptions=["Assumption 1"]' in text
    assert (paper / "notation.md").read_text().count("\n| `") == 3
    capsys.readouterr()
    assert run("check") == 0
    assert "no claim yet" in capsys.readouterr().err
    assert run("coverage", "--at-least", "0.1") == 1
    assert "4 statements: 4 to do; 0 % executed" in capsys.readouterr().out


def test_a_statement_that_is_executed_counts(paper, capsys):
    (paper / "claims_01_results.py").write_text(CLAIM)
    assert run("check", "--processes", "1") == 0
    files = "--json", "c.json", "--latex", "t.tex", "--macros", "a.sty"
    assert run("coverage", "--at-least", "0.25", *files) == 0
    assert "1 held, 3 to do; 25 % executed" in capsys.readouterr().out
    states = {
        each["locator"]: each["state"]
        for each in json.loads((paper / "c.json").read_text())["statements"]
    }
    assert states["Theorem 1.1"] == "held"
    assert "attlas@thm:descent" in (paper / "a.sty").read_text()


def test_the_stubs_follow_the_paper_and_the_claims_stay(paper, capsys):
    (paper / "claims_01_results.py").write_text(CLAIM)
    assert run("check", "--processes", "1") == 0
    main_file = paper.parent / "tex" / "main.tex"
    text = main_file.read_text().replace(r"\le \tr A", r"\le 2 \tr A")
    new = r"\begin{lemma}\label{lem:new} $1 < 2$ \end{lemma} \input"
    main_file.write_text(text.replace(r"\input", new))
    capsys.readouterr()
    update = "new", "paper", "doe2026", "--folder", ".", "--from", "../tex/main.tex"
    assert run(*update) == 0
    said = capsys.readouterr().out
    assert "Theorem 1.1 (thm:descent) is worded otherwise now at main.tex:17: read it" in said
    assert "Lemma 1.2 (lem:new) is new: it has a stub" in said
    assert (paper / "claims_01_results.py").read_text() == CLAIM
    assert '@todo("Lemma 1.2"' in (paper / "claims_new_01_results.py").read_text()
    assert run("coverage", "--json", "c.json") == 0
    rows = {s["locator"]: s for s in json.loads((paper / "c.json").read_text())["statements"]}
    assert rows["Theorem 1.1"]["remark"].startswith("reworded since its claims were written")
    assert rows["Lemma 1.2"]["state"] == "to do"
    assert run("coverage", "--reread", "Theorem 1.1", "--json", "c.json") == 0
    assert "reworded" not in (paper / "c.json").read_text()
    assert run("coverage", "--reread", "Theorem 1.1") == 2
    assert "no statement that was reworded: there are none" in capsys.readouterr().err
    assert run(*update) == 0
    assert "no statement has changed" in capsys.readouterr().out
    assert run("new", "paper", "b2026", "--renumber") == 2


def test_a_page_says_the_state_of_every_statement(paper, capsys):
    (paper / "claims_01_results.py").write_text(CLAIM)
    stub = paper / "claims_02_more.py"
    stub.write_text(stub.read_text().replace('kind="limit"', 'reason="about <every> net"'))
    assert run("check", "--processes", "1") == 0
    assert run("coverage", "--page", "page.html") == 0
    page = (paper / "page.html").read_text()
    for text in (
        *("Theorem 1.1 <small>Descent</small>", "</span> held</span>", "</span> to do</span>"),
        *("about &lt;every&gt; net", "Of those that can be executed 33 % are", "doe2026/theorem"),
    ):
        assert text in page
    assert run("coverage", "--page", "page.txt") == 2
    capsys.readouterr()
    assert run("report") == 0
    written = (paper / "atlas" / "coverage.html").read_text()
    assert 'href="../atlas.html#top"' in written
    assert 'href="./atlas/coverage.html"' in (paper / "atlas.html").read_text()
    (paper / "statements.json").write_text("{}")
    assert run("report") == 0
    assert "The coverage is not shown:" in (paper / "atlas.html").read_text()
    assert not (paper / "atlas" / "coverage.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("coverage", "."), "is no folder of a paper"),
        (("new", "paper", "a", "--from", "gone.tex"), "gone.tex is missing"),
        (("new", "paper", "a", "--from", "empty.tex"), "no theorem environment"),
        (("new", "paper", "a", "--from", "a.pdf"), "neither a folder nor a .tex file"),
    ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.tex").write_text("\\documentclass{article}")
    (tmp_path / "a.pdf").write_text("%PDF")
    assert run(*arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (tmp_path / "a").exists()
