"""Where the search for a project ends: nobody else's code runs because of where it lies."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from attlas.experiments.find import find_experiments
from attlas.projects import places
from attlas.projects.project import project_here, project_of
from attlas.projects.source import dotted_name
from attlas.verify.registry import _claims_of_project, find_errata

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners here")
TABLE = '[tool.attlas]\ntitle = "Not mine"\nclaims = ["claims_evil.py"]\nexperiments = ["e.py"]\n'
RAN = "raise SystemExit('the code of another user ran')\n"


@pytest.fixture
def another(monkeypatch):
    """Say of some paths that another user owns them, whoever runs the tests."""
    theirs: set[Path] = set()
    real, stranger = places.owner_of, os.geteuid() + 4321
    monkeypatch.setattr(places, "owner_of", lambda p: stranger if p in theirs else real(p))
    return lambda *paths: theirs.update(paths)


@pytest.fixture
def below(tmp_path, monkeypatch):
    """A folder of one's own, three below one with a project in which everything stops the test."""
    (tmp_path / "pyproject.toml").write_text(TABLE)
    for name in ("claims_evil.py", "e.py"):
        (tmp_path / name).write_text(RAN)
    folder = tmp_path / "a" / "b" / "c"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "nowhere"))
    return folder


def project(folder, title="Mine"):
    (folder / "pyproject.toml").write_text(f'[tool.attlas]\ntitle = "{title}"\n')


def test_a_project_of_another_user_is_named_once_and_not_used(below, tmp_path, another, capsys):
    another(tmp_path / "pyproject.toml")
    assert project_here() is None
    assert _claims_of_project() == ()
    assert len(find_experiments()) > 1
    assert len(find_errata()) > 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"attlas: {tmp_path / 'pyproject.toml'} is not used: it belongs to")
    assert f"such as `attlas check {tmp_path}`" in err


def test_a_file_of_ones_own_in_a_folder_of_another_is_not_used(below, tmp_path, another, capsys):
    another(tmp_path)
    assert project_here() is None
    assert f"{tmp_path} belongs to another user" in capsys.readouterr().err


def test_above_a_folder_of_another_nothing_is_used(below, tmp_path, another, capsys):
    another(tmp_path / "a" / "b")
    assert project_here() is None
    err = capsys.readouterr().err
    assert f"{tmp_path / 'a' / 'b'} belongs to another user" in err
    assert f"run attlas in {tmp_path}" in err


def test_a_folder_into_which_everybody_writes_is_no_project(below, tmp_path, capsys):
    tmp_path.chmod(0o1777)
    assert project_here() is None
    assert f"every user can write into {tmp_path}" in capsys.readouterr().err
    tmp_path.chmod(0o700)
    found = project_here()
    assert found is not None
    assert found.title == "Not mine"


def test_the_top_of_a_repository_is_the_last_folder(below, tmp_path, capsys):
    (tmp_path / "a" / "b" / ".git").write_text("gitdir: elsewhere")  # of a worktree: a file
    assert project_here() is None
    project(tmp_path / "a" / "b")
    found = project_here()
    assert found is not None
    assert found.root == tmp_path / "a" / "b"
    assert capsys.readouterr() == ("", "")


def test_a_project_at_home_is_for_home_alone(below, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert project_here() is None
    assert f"for your home folder alone; move it, or run attlas in {tmp_path}" in (
        capsys.readouterr().err
    )
    monkeypatch.chdir(tmp_path)
    found = project_here()
    assert found is not None
    assert found.root == tmp_path
    monkeypatch.setenv("HOME", str(tmp_path / "a"))
    monkeypatch.chdir(below)
    assert project_here() is None


def test_files_without_our_table_are_passed_in_silence(below, tmp_path, another, capsys):
    file = tmp_path / "a" / "b" / "pyproject.toml"
    file.write_text("[project\n")
    another(file)
    found = project_here()
    assert found is not None
    assert found.root == tmp_path
    assert capsys.readouterr() == ("", "")


def test_who_names_a_file_of_another_user_trusts_that_user(below, tmp_path, another):
    file = below / "claims_theirs.py"
    file.write_text("")
    another(tmp_path / "pyproject.toml")
    assert project_of(file) is None
    another(tmp_path, file)
    found = project_of(file)
    assert found is not None
    assert found.title == "Not mine"


def test_who_says_so_trusts_the_owners_of_projects(below, tmp_path, another, monkeypatch, capsys):
    another(tmp_path / "pyproject.toml")
    assert project_here() is None
    assert "say `attlas --trust`, or name" in capsys.readouterr().err
    monkeypatch.setenv("ATTLAS_TRUST", "1")
    found = project_here()
    assert found is not None
    assert found.title == "Not mine"
    monkeypatch.setenv("ATTLAS_TRUST", "0")
    assert project_here() is None


def test_root_takes_the_files_of_who_called_sudo(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", "1000")
    assert places.current_users() == {0, 1000}
    monkeypatch.setattr(os, "geteuid", lambda: 1001)
    assert places.current_users() == {1001}


def test_where_files_have_no_owners_every_folder_is_looked_into(
    below, tmp_path, another, monkeypatch
):
    another(tmp_path / "pyproject.toml")
    monkeypatch.delattr(os, "geteuid")
    found = project_here()
    assert found is not None
    assert found.root == tmp_path


def test_a_package_ends_where_its_folder_is_of_another_user(below, another):
    above = below.parent
    for folder in (below, above):
        (folder / "__init__.py").write_text("")
    file = below / "claims_mine.py"
    file.write_text("")
    assert dotted_name(file) == ("b.c.claims_mine", above.parent)
    another(above / "__init__.py")
    assert dotted_name(file) == ("c.claims_mine", above)


@pytest.mark.thorough
def test_the_command_runs_nothing_of_another_user(below, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    os.chown(tmp_path / "pyproject.toml", 4321, 4321)
    done = subprocess.run(
        [sys.executable, "-m", "attlas.cli.main", "list", "papers"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert "julistiono2024optimizing" in done.stdout
    assert done.stderr.count("\n") == 1
    assert "is not used: it belongs to another user (4321)" in done.stderr
    trusting = subprocess.run(
        [sys.executable, "-m", "attlas.cli.main", "--trust", "check"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    # It ran: to end the process is all that it does.
    assert "claims_evil.py:1: it ends the process" in trusting.stderr
