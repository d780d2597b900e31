"""Announced packages: those that do not load are named and set aside, and the others run."""

import pytest

from attlas.core.errors import UserError
from attlas.experiments.find import find_experiments, find_named
from attlas.projects.bibliography import all_references
from attlas.projects.installed import installed_papers, is_of_installed_paper
from attlas.projects.project import is_announced
from attlas.verify.registry import errata_of, find_claims, find_errata

BROKEN = "1 / 0\n\n\ndef lemma_12(x):\n    pass\n"
CLAIM = """
import numpy as np
from attlas import Control, inequality
from attlas.claims.claim import Erratum, ErratumClass

TYPO = Erratum("sound2026", "Lemma 1", ErratumClass.TYPO, "A digit.")


@inequality(
    sample=lambda rng, count: {"x": rng.normal(size=count)}, controls=[Control("less", by=1.0)]
)
def lemma_12(x, *, by=0.0):
    r"$$x \\le |x|$$"
    return x, abs(x) - by
"""
EXPERIMENT = """
import xarray as xr
from attlas.experiments.experiment import Experiment
from attlas.experiments.grid import Grid

EXPERIMENT = Experiment(
    title="One number", question="Which?", grid=Grid(smoke={"x": 3.0}),
    run=lambda s, key: xr.Dataset({"y": s.x}), table=(), figures=(),
)
"""
REFERENCE = "@misc{sound2026,\n  title = {Sound},\n  author = {Doe, Jo},\n  year = {2026},\n}\n"


def table(*lines):
    return "\n".join(["[tool.attlas]", *lines, ""])


@pytest.fixture
def announce(tmp_path, monkeypatch):
    """Writes a package that announces claims, from its files; the only other one is sound."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.syspath_prepend(tmp_path)
    modules = {}
    for module in ("installed", "project"):
        monkeypatch.setattr(f"attlas.projects.{module}.announced", lambda: tuple(modules.items()))
    all_references.cache_clear()

    def write(name, files, module=""):
        folder = tmp_path / name
        folder.mkdir()
        for file, text in {"__init__.py": "", **files}.items():
            (folder / file).write_text(text)
        modules[name] = module or name
        return folder

    sound = f"sound_{tmp_path.name}".replace("-", "_")
    write(
        sound,
        {
            "pyproject.toml": table(
                'key = "sound2026"',
                'references = "sound.bib"',
                'claims = ["one_lemma.py"]',
                'experiments = ["one_number.py"]',
            ),
            "one_lemma.py": CLAIM,
            "one_number.py": EXPERIMENT,
            "sound.bib": REFERENCE,
        },
    )
    yield write
    all_references.cache_clear()


PACKAGES = {
    "fails_on_import": {
        "pyproject.toml": table('claims = ["bad.py"]', 'experiments = ["bad.py"]'),
        "bad.py": BROKEN,
    },
    "names_no_file": {
        "pyproject.toml": table('claims = ["gone_*.py"]', 'experiments = ["gone_*.py"]'),
    },
    "has_a_wrong_table": {"pyproject.toml": table('claim = ["bad.py"]')},
    "has_no_project": {"__init__.py": "1 / 0\n"},
}
REASONS = {
    "fails_on_import": "bad.py:1: ZeroDivisionError: division by zero: correct it there",
    "names_no_file": "no Python file matches 'gone_*.py'",
    "has_a_wrong_table": "[tool.attlas] has 'claim', did you mean claims?",
    "has_no_project": "__init__.py:1: ZeroDivisionError",
}


@pytest.mark.parametrize("name", PACKAGES)
def test_a_broken_package_is_named_and_set_aside(announce, capsys, name):
    announce(name, PACKAGES[name])
    lemma = ["sound2026/lemma-12"]
    assert [claim.name for claim in find_claims()] == lemma
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"attlas: the installed '{name}' is set aside: ")
    assert REASONS[name] in line
    # The line appears once in a process, and everything else runs.
    for names in ("lemma-12", "sound2026", "sound2026/lemma-12"):
        assert [claim.name for claim in find_claims(names)] == lemma
    assert [erratum.locator for erratum in find_errata()] == ["Lemma 1"]
    assert [experiment.name for experiment in find_named(["one_number"])] == ["one_number"]
    assert len(find_experiments()) == 1
    assert "sound2026" in all_references()
    assert capsys.readouterr().err == ""


def test_a_broken_package_that_is_named_is_an_error(announce, capsys):
    announce("fails_when_named", PACKAGES["fails_on_import"])
    for names in ("fails_when_named", "fails_when_named/lemma-12"):
        with pytest.raises(UserError, match=r"the installed 'fails_when_named' announces claims: "):
            find_claims(names)
    with pytest.raises(UserError, match=r"bad\.py:1: ZeroDivisionError"):
        errata_of("fails_when_named")
    with pytest.raises(UserError, match=r"bad\.py:1: ZeroDivisionError"):
        find_named(["fails_when_named"])
    assert capsys.readouterr().err == ""


def test_references_that_cannot_be_read_are_set_aside(announce, capsys):
    files = {"pyproject.toml": table('references = "gone.bib"'), "claims_x.py": ""}
    announce("has_no_references", files)
    assert "sound2026" in all_references()
    assert "'has_no_references' is set aside: there is no file" in capsys.readouterr().err


def test_a_package_is_located_without_being_imported(announce):
    folder = announce("not_imported", {"__init__.py": "1 / 0\n"}, module="not_imported.claims")
    (folder / "claims").mkdir()
    (folder / "claims" / "pyproject.toml").write_text(table('key = "inner2026"'))
    (paper,) = [paper for paper in installed_papers() if paper.name == "not_imported"]
    assert paper.key == "inner2026"
    assert is_announced("not_imported.claims.one")
    assert is_of_installed_paper(str(folder / "claims" / "one.py"))
    assert not is_of_installed_paper(str(folder / "one.py"))


@pytest.mark.parametrize(
    ("find", "name", "near"),
    [
        (find_claims, "lema-12", "lemma-12"),
        (find_claims, "sound2025", "sound2026"),
        (lambda name: find_named([name]), "one_numbr", "one_number"),
        (lambda name: find_named([name]), "sound202", "sound2026"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest_and_where_to_look(announce, find, name, near):
    announce("beside", {"pyproject.toml": table('claims = ["__init__.py"]')})
    with pytest.raises(UserError, match="did you mean") as raised:
        find(name)
    line = str(raised.value)
    assert near in line.partition("?")[0]
    assert "Searched: no project here; installed papers: sound2026, beside. " in line
    assert "install the package that announces it, run attlas in its folder" in line


def test_the_project_here_is_named_for_an_unknown_name(announce, tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text(table('key = "mine2026"', "claims = []"))
    (tmp_path / "claims_mine.py").write_text("import attlas\n")
    monkeypatch.chdir(tmp_path)
    announce("beside_mine", {})
    with pytest.raises(UserError, match="Searched: the project mine2026 here; installed papers"):
        find_named(["no-such-experiment"])
