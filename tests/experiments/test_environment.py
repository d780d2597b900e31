"""The file, line and commit of a user's own claim; never those of attlas."""

import os
import shutil
import subprocess
import time

import pytest

from attlas.experiments.environment import path_in_repository, provenance
from attlas.projects.loading import load_place, source_digest

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(
    GIT is None, reason="git is not installed: which commit a claim belongs to is not tested here"
)


def git(folder, *words):
    name = ("-c", "user.name=Jo", "-c", "user.email=jo@example.org", "-c", "core.hooksPath=")
    told = subprocess.run(
        [str(GIT), "-C", str(folder), *name, *words], capture_output=True, text=True, check=True
    )
    return told.stdout.strip()


def test_outside_a_repository_there_is_a_file_and_no_commit(tmp_path):
    file = tmp_path / "sub" / "claims_mine.py"
    file.parent.mkdir()
    file.write_text("x = 1\n")
    found = provenance((str(file), 3))
    assert (found["file"], found["line"]) == ("claims_mine.py", 3)
    assert (found["commit"], found["modified"]) == (None, False)
    (tmp_path / "pyproject.toml").write_text("[tool.attlas]\nkey = 'mine'\n")
    assert path_in_repository(f"{file}[cell 3]") == "sub/claims_mine.py[cell 3]"


@needs_git
def test_in_a_repository_the_commit_and_changes_since_are_told(tmp_path):
    file = tmp_path / "papers" / "own_in_git.py"
    file.parent.mkdir()
    file.write_text("import own_in_git_part\n")
    (file.parent / "own_in_git_part.py").write_text("x = 1\n")
    (tmp_path / ".gitignore").write_text("hidden.py\n")
    (tmp_path / "hidden.py").write_text("x = 1\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    (loaded,) = load_place(str(file))
    found = provenance((str(file), 1), loaded.home)
    assert (found["file"], found["commit"]) == (
        "papers/own_in_git.py",
        git(tmp_path, "rev-parse", "HEAD"),
    )
    assert not found["modified"]
    (file.parent / "own_in_git_part.py").write_text("x = 2\n")
    assert provenance((str(file), 1), loaded.home)["modified"]
    assert provenance((str(tmp_path / "hidden.py"), 1))["commit"] is None


@needs_git
def test_a_commit_made_in_the_meantime_is_seen(tmp_path):
    file = tmp_path / "claims_committed_later.py"
    file.write_text("x = 1\n")
    git(tmp_path, "init", "-q")
    assert provenance((str(file), 1))["commit"] is None
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "first")
    first = provenance((str(file), 1))
    assert (first["commit"], first["modified"]) == (git(tmp_path, "rev-parse", "HEAD"), False)
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "second")
    assert provenance((str(file), 1))["commit"] == git(tmp_path, "rev-parse", "HEAD")


@needs_git
def test_a_folder_becomes_a_repository_and_a_second_checkout_has_commits_of_its_own(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    (first / "claims_twice.py").write_text("x = 1\n")
    assert provenance((str(first / "claims_twice.py"), 1))["commit"] is None
    git(first, "init", "-q")
    git(first, "add", "-A")
    git(first, "commit", "-q", "-m", "first")
    git(first, "worktree", "add", "-q", "-b", "other", str(second))
    place = (str(second / "claims_twice.py"), 1)
    assert provenance(place)["commit"] == git(second, "rev-parse", "HEAD")
    git(second, "commit", "-q", "--allow-empty", "-m", "second")
    assert provenance(place)["commit"] == git(second, "rev-parse", "HEAD")


def test_a_digest_is_that_of_the_sources_as_they_were_loaded(tmp_path):
    file = tmp_path / "digest_of_loaded.py"
    file.write_text("x = 1\n")
    before = source_digest(str(file))
    (loaded,) = load_place(str(file))
    assert source_digest(str(file), loaded.home) == before
    file.write_text("x = 2\n")
    assert source_digest(str(file), loaded.home) == before != source_digest(str(file))
    assert source_digest("<ipython-input-1>") == ""


def test_data_of_the_project_is_part_of_the_digest_and_other_files_are_not(tmp_path):
    file = tmp_path / "claims_with_data.py"
    file.write_text("from pathlib import Path\nX = Path(__file__).with_name('x.csv').read_text()\n")
    (tmp_path / "x.csv").write_text("1")
    plain = source_digest(str(file))
    settings = tmp_path / "pyproject.toml"
    settings.write_text("[tool.attlas]\ndata = ['*.csv']\n")
    (loaded,) = load_place(str(file))
    first = source_digest(str(file), loaded.home)
    assert first == source_digest(str(file)) != plain
    # As it was loaded, until it is loaded again.
    (tmp_path / "x.csv").write_text("2")
    assert source_digest(str(file), loaded.home) == first
    (again,) = load_place(str(file))
    assert (again.module.X, loaded.module.X) == ("2", "1")
    second = source_digest(str(file), again.home)
    assert second == source_digest(str(file)) != first
    # A new file that a pattern matches counts, another does not.
    (tmp_path / "note.txt").write_text("3")
    assert load_place(str(file)) == (again,)
    (tmp_path / "y.csv").write_text("3")
    (more,) = load_place(str(file))
    assert more.digest not in (first, second)
    # And so does what is declared.
    settings.write_text("[tool.attlas]\ndata = ['x.csv']\n")
    (less,) = load_place(str(file))
    assert less.digest == second


def test_data_and_sources_that_change_with_equal_size_and_time_are_read_again(tmp_path):
    file, table = tmp_path / "claims_of_equal_time.py", tmp_path / "x.csv"
    (tmp_path / "pyproject.toml").write_text("[tool.attlas]\ndata = ['*.csv']\n")
    digests = set()
    for source, number in (("y = 1\n", "1"), ("y = 1\n", "2"), ("y = 2\n", "2")):
        file.write_text(source)
        table.write_text(number)
        for path in (file, table):
            os.utime(path, ns=(10**18, 10**18))
        (loaded,) = load_place(str(file))
        assert loaded.module.y == int(source[4])
        digests.add(loaded.digest)
    assert len(digests) == 3


@pytest.mark.thorough
@needs_git
def test_a_change_with_equal_size_and_time_makes_a_commit_modified(tmp_path):
    file = tmp_path / "claims_of_a_commit.py"
    git(tmp_path, "init", "-q")
    for text, is_modified in (("y = 1\n", False), ("y = 2\n", True)):
        file.write_text(text)
        os.utime(file, ns=(10**18, 10**18))
        if not is_modified:
            git(tmp_path, "add", "-A")
            git(tmp_path, "commit", "-q", "-m", "first")
        assert provenance((str(file), 1))["modified"] is is_modified
        time.sleep(1.1)  # git compares whole seconds of the time at which a file was changed


def test_what_an_unloaded_file_imports_is_read_as_it_is_now(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "unloaded_main.py"
    file.write_text("import unloaded_part\n")
    (tmp_path / "unloaded_part.py").write_text("x = 1\n")
    before = source_digest(str(file))
    (tmp_path / "unloaded_part.py").write_text("x = 2\n")
    assert source_digest(str(file)) != before
