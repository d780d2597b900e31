"""Commands that only list, show or write leave the code of a user's project alone."""

import importlib
import json
import os
from pathlib import Path

import jax
import pytest
from projects.latex import sample_paper

from attlas.cli.main import build_app, main
from attlas.models.networks.encoder import make_encoder
from attlas.projects import places
from attlas.transformers.attlas_model import save_model, stored_form

RUNS_CODE = {
    "check": ("check", "lemma"),
    "challenge": ("challenge", "lemma", "--evaluations", "1"),
    "power": ("power", "lemma"),
    "prove": ("prove", "lemma"),
    "run": ("run", "gap", "--estimate"),
    "report": ("report", "--out", "a.html"),
}
"""What evaluates claims, computes cells, or draws by the functions of an experiment.

An estimate needs the grid, which is an object; pages have tables and figures by its functions.
"""
SERVES = {"mcp"}
"""What calls those of `RUNS_CODE`, each in a child process, when a client asks for it."""
NO_CODE = {
    "audit": (("audit", "../model", "--level", "weights", "--out", "audit.html"),),
    "certify": (("certify", "../predictions.csv"),),
    "coverage": (
        ("coverage",),
        ("coverage", "--page", "c.html", "--json", "c.json", "--macros", "a.sty"),
    ),
    "data": (("data",), ("data", "list")),
    "doctor": (("doctor",),),
    "explore": (("explore", "--out", "explorer.html"),),
    "list": (
        ("list",),
        ("list", "papers"),
        ("list", "claims", "claims_mine.py"),
        ("list", "claims", "claims_mine.py:lemma"),
        ("list", "claims", "package.inner"),
        ("list", "lemma"),
        ("list", "experiments", "gap"),
        ("list", "experiments", "--records", "../records"),
        ("list", "no-such-name"),
    ),
    "new": (("new", "paper", "roe2027"), ("new", "paper", "doe2026", "--from", "../tex/main.tex")),
}
MARKED = """
from pathlib import Path

Path("{marker}").touch()
raise RuntimeError("the code of the project ran")
"""
CLAIM = '''
import attlas as at
@at.inequality("Lemma 7", search_over=("x",), controls=[at.Control("half", factor=0.5)])
def lemma(x, *, factor=1.0):
    r"""$$x \\le x$$"""
    return x, factor * x
'''
EXPERIMENT = '''"""How large is the gap?"""
from attlas.experiments.experiment import Experiment
EXPERIMENT = Experiment(title="Gap", question=__doc__, name="gap")
'''


@pytest.fixture
def marker(tmp_path, monkeypatch):
    """A project whose every module writes this file when it runs, and then fails."""
    sample_paper.write(tmp_path / "tex")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "doe2026")
    assert run("new", "paper", "doe2026", "--from", "tex/main.tex") == 0
    encoder = make_encoder(jax.random.key(1), 7, 5, width=6, blocks=1, heads=2, hidden=8)
    save_model(tmp_path / "model", stored_form(encoder))
    rows = "".join(f"{i},{i % 3 == 0:d},{i % 2:d}\n" for i in range(60))
    (tmp_path / "predictions.csv").write_text(f"id,label,prediction\n{rows}")
    (tmp_path / "records").mkdir()
    folder, path = tmp_path / "doe2026", tmp_path / "ran"
    table = folder / "pyproject.toml"
    table.write_text(
        table.read_text().replace("claims = [", 'claims = ["package.inner", "claims_mine.py", ')
        + 'experiments = ["experiment_gap.py"]\n'
    )
    assert "package.inner" in table.read_text()
    package = folder / "package" / "inner"
    package.mkdir(parents=True)
    ran = MARKED.format(marker=path)
    for file in (package.parent / "__init__.py", package / "__init__.py", folder / "conftest.py"):
        file.write_text(ran)
    (package / "claims.py").write_text(ran + CLAIM.replace("def lemma", "def inner_lemma"))
    (folder / "claims_mine.py").write_text(ran + CLAIM)
    (folder / "experiment_gap.py").write_text(EXPERIMENT.replace("\n", ran, 1))
    for file in folder.glob("claims_0*.py"):
        file.write_text(file.read_text() + ran)
    monkeypatch.chdir(folder)
    importlib.invalidate_caches()
    return path


def run(*arguments):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    return stopped.value.code


def commands():
    """The names of all commands that are registered."""
    return sorted(command.name for command in build_app().registered_commands)


def words_of(command):
    """Every way in which a command is tried; one that is in no list is called bare."""
    if command in RUNS_CODE:
        return (RUNS_CODE[command],)
    return NO_CODE.get(command, ((command,),))


def test_every_command_is_in_one_list():
    assert commands() == sorted([*RUNS_CODE, *SERVES, *NO_CODE])


@pytest.mark.thorough
@pytest.mark.parametrize("words", [w for each in NO_CODE.values() for w in each], ids=" ".join)
def test_a_command_that_does_not_compute_runs_no_code(words, marker, capsys):
    code = run(*words)
    shown = capsys.readouterr()
    assert not marker.exists(), shown
    refused = {"no-such-name", "--records"} & set(words)
    assert code == (2 if refused else 0), shown.err


@pytest.mark.parametrize("command", RUNS_CODE)
def test_a_command_that_computes_runs_it(command, marker, capsys):
    assert run(*RUNS_CODE[command]) == 2
    assert marker.exists()
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(name, marks=pytest.mark.thorough if name == "report" else ())
        for name in commands()
        if name not in SERVES
    ],
)
def test_no_command_runs_a_project_of_another_user_without_trust(
    command, marker, monkeypatch, capsys
):
    theirs, real = {Path.cwd(), *Path.cwd().iterdir()}, places.owner_of
    stranger = os.geteuid() + 4321
    monkeypatch.setattr(places, "owner_of", lambda p: stranger if p in theirs else real(p))
    for words in words_of(command):
        run(*words)
        assert not marker.exists(), (words, capsys.readouterr())
    if command in RUNS_CODE:
        said = capsys.readouterr().err
        assert "is not used: it belongs to" in said
        assert said.count("belongs to") == 1
        monkeypatch.setenv(places.TRUST, "1")
        run(*RUNS_CODE[command])
        assert marker.exists()


def test_what_is_listed_and_counted_is_read_from_the_sources(marker, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    assert run("list", "claims") == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if "lemma" in line]
    assert [(row[0], row[-1]) for row in rows] == [
        ("doe2026/inner-lemma", "x"),
        ("doe2026/lemma", "x"),
    ]
    assert run("list", "experiments", "gap") == 0
    assert "How large is the gap?" in capsys.readouterr().out
    assert run("coverage", "--json", "c.json") == 0
    states = json.loads((marker.parent / "doe2026" / "c.json").read_text())["statements"]
    assert {each["state"] for each in states} == {"to do"}
    assert not marker.exists()


def test_a_grid_that_only_code_says_is_refused_with_the_command_that_runs_it(marker, capsys):
    assert run("list", "experiments", "--records", "../records") == 2
    assert "`attlas run gap --scale paper --estimate` runs it" in capsys.readouterr().err
