"""`attlas check --json` writes what the published schema says, for claims of every outcome."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from attlas._jax.processes import checker_variables
from attlas.cli.main import main

CLAIMS = '''
import jax.numpy as jnp

import attlas as at
from attlas.claims.todo import todo


def draw(rng, count):
    return {"x": rng.normal(size=(count, 4))}


def length(x):
    return jnp.sqrt(jnp.sum(x**2))


FALSE = at.Control("a tenth", factor=0.1)
NOWHERE = at.assume("an entry exceeds 1000", lambda x: x.max() > 1000)


@at.inequality("Lemma 1", sample=draw, controls=[FALSE])
def true(x, *, factor=1.0):
    r"""$$|x_1| \\le \\|x\\|$$"""
    return abs(x[0]), factor * length(x)


@at.inequality("Lemma 2", sample=draw, controls=[FALSE])
def false(x, *, factor=1.0):
    r"""$$\\|x\\|_1 \\le \\|x\\|_2$$"""
    return jnp.sum(abs(x)), factor * length(x)


@at.inequality("Lemma 3", sample=draw, controls=[FALSE])
def infinite(x, *, factor=1.0):
    r"""$$x_1 \\le \\|x\\| / 0$$"""
    return x[0], factor * length(x) / 0.0


@at.inequality("Lemma 4", sample=draw, assumptions=[NOWHERE], controls=[FALSE])
def about_nothing(x, *, factor=1.0):
    r"""$$x_1 \\le \\|x\\|$$"""
    return x[0], factor * length(x)


@todo("Lemma 5")
def not_written_yet():
    "$$x$$"
'''
OUTCOMES = {
    "true": "SUPPORTED",
    "false": "VIOLATED",
    "infinite": "INCONCLUSIVE",
    "about-nothing": "NOT_APPLICABLE",
}


@pytest.fixture
def attlas(capsys, monkeypatch, tmp_path):
    """Run the program in this process and return its exit code, standard output and error."""
    for name, value in checker_variables(2).items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as left:
            main([str(argument) for argument in ("--results", tmp_path / "results", *arguments)])
        shown = capsys.readouterr()
        return int(left.value.code or 0), shown.out, shown.err

    return run


@pytest.mark.thorough
def test_the_schema_that_the_command_shows_is_that_of_its_output(attlas, tmp_path):
    code, shown, _ = attlas("check", "--json-schema")
    assert code == 0
    # The published text alone, as another program reads it, without this project's reader.
    Draft202012Validator.check_schema(json.loads(shown))
    validator = Draft202012Validator(json.loads(shown))
    (tmp_path / "lemmas.py").write_text(CLAIMS)
    file = tmp_path / "reports.json"
    code, _, _ = attlas("check", tmp_path / "lemmas.py", "--challenge", "1", "--json", file)
    assert code == 1
    reports = json.loads(file.read_text())
    assert list(validator.iter_errors(reports)) == []
    outcomes = {r["claim"].rpartition("/")[2]: r["verdict"]["outcome"] for r in reports}
    # A stub is no report: it has no verdict that a reader could take for one.
    assert outcomes == OUTCOMES
    (false,) = [report for report in reports if report["verdict"]["outcome"] == "VIOLATED"]
    assert false["verdict"]["confirmed"]["violates"] is True
    assert false["challenge"]["violated"]
    del false["verdict"]["outcome"]
    (error,) = validator.iter_errors(reports)
    assert error.json_path.endswith(".verdict")


@pytest.mark.parametrize("text", ["import jax\nraise ValueError('no')\n", "x = (\n"])
def test_a_file_that_fails_writes_one_line_and_no_reports(attlas, tmp_path, text):
    (tmp_path / "lemmas.py").write_text(text)
    file = tmp_path / "reports.json"
    code, out, err = attlas("check", tmp_path / "lemmas.py", "--json", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert not file.exists()
