"""A new paper checks green at once, shows every decorator, and is never written over."""

import hashlib
import json
import tomllib

import pytest

import attlas as at
from attlas._files.new_files import JOURNAL
from attlas.claims import statement
from attlas.claims.claim import Kind
from attlas.cli.main import main
from attlas.cli.new import write_paper
from attlas.core.errors import UserError
from attlas.experiments.find import find_experiments, find_named
from attlas.verify.check import check
from attlas.verify.registry import find_claims

DECORATORS = {name for name in at.__all__ if getattr(at, name).__module__ == statement.__name__}
"""Those that `attlas` names; a further kind of claim may have one in the module alone."""


@pytest.fixture
def paper(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)  # puts the path of imports back
    folder = tmp_path / "doe2026"
    write_paper("doe2026", "On tokens: 100%", folder)
    monkeypatch.chdir(folder)
    return folder


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    return stopped.value.code


@pytest.mark.thorough
def test_every_claim_and_control_of_a_new_paper_comes_out_as_expected(paper):
    claims = find_claims()
    assert {claim.kind for claim in claims} == {kind for kind in Kind if kind in DECORATORS}
    assert {claim.paper for claim in claims} == {"doe2026"}
    assert [(c.name, d) for c in claims for d in check(c, challenge=0).defects] == []


def test_every_decorator_is_shown(paper):
    text = (paper / "claims_example.py").read_text()
    assert {name for name in DECORATORS if f"@at.{name}(" not in text} == set()


def test_the_project_names_its_experiment_and_reference(paper):
    (experiment,) = find_experiments()
    assert (experiment.name, experiment.paper) == ("experiment_temperature", "doe2026")
    assert find_named(["all"]) == (experiment,)
    (cell, _) = experiment.cells("smoke")
    arrays, _ = experiment.computed(cell)
    # log(tokens) / beta bounds the gap.
    assert (arrays["gap"] <= 1.0001 * 0.6932 / arrays["beta"]).all()
    table = tomllib.loads((paper / "pyproject.toml").read_text())["tool"]["attlas"]
    assert table["title"] == "On tokens: 100%"
    assert "@misc{doe2026," in (paper / "references.bib").read_text()


@pytest.mark.thorough
def test_the_command_checks_a_claim_in_a_process_of_its_own_and_reports_it(paper):
    assert run("check", "softmax-shift", "--json", "checked.json") == 0
    (document,) = json.loads((paper / "checked.json").read_text())
    assert document["verdict"]["outcome"] == "SUPPORTED"
    assert run("report", "--out", "paper.html", "--single") == 0
    page = (paper / "paper.html").read_text()
    assert "<h1>On tokens: 100%</h1>" in page
    assert "executable atlas" not in page
    assert "Which p should I choose?" not in page
    above = (paper / "claims_example.py").read_text().partition("@at.identity(")[0]
    assert f"claims_example.py:{above.count(chr(10)) + 1}" in page
    assert "julistiono2024optimizing" not in page


def test_nothing_is_written_over(paper, capsys):
    assert run("new", "paper", "doe2026", "--folder", ".") == 2
    assert "claims_example.py exists already" in capsys.readouterr().err
    with pytest.raises(UserError, match="exists already"):
        write_paper("doe2026", "Other", paper)
    assert "Other" not in (paper / "pyproject.toml").read_text()


def test_a_start_from_latex_that_was_killed_is_begun_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tex = r"\documentclass{article}\newtheorem{lemma}{Lemma}\begin{document}%s\end{document}"
    (tmp_path / "main.tex").write_text(tex % r"\begin{lemma}One.\end{lemma}")
    command = ("new", "paper", "doe2026", "--from", "main.tex")
    assert run(*command) == 0
    folder = tmp_path / "doe2026"
    files = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*")
             if p.is_file()}  # fmt: skip
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    digests["pyproject.toml"] = digests.pop("pyproject.toml")
    (folder / JOURNAL).write_text(json.dumps(digests))
    (folder / "pyproject.toml").unlink()
    assert run(*command) == 0
    assert {name for name in files if (folder / name).read_bytes() == files[name]} == set(files)
    assert not (folder / JOURNAL).exists()


@pytest.mark.parametrize(
    ("key", "title", "said"),
    [
        ("a b", "t", "KEY = 'a b'"),
        ("", "t", "KEY = ''"),
        ("k", 'say "x"', "--title"),
        ("k", "{", "--title"),
    ],
)
def test_a_key_or_title_that_cannot_be_written_is_one_line(tmp_path, key, title, said):
    with pytest.raises(UserError, match=said):
        write_paper(key, title, tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("below", ["", "deeper"])
def test_a_file_where_the_folder_should_be_is_one_line(tmp_path, below):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot create a folder"):
        write_paper("k", "t", tmp_path / "file" / below)
