"""The file, line and commit of a user's own claim; never those of attlas."""

import shutil
import subprocess

import pytest

from attlas.core.own.loading import load_place
from attlas.core.own.provenance import called, provenance, source_digest

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="git is not installed")


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
    found = provenance((str(file), 3), ours="f" * 40)
    assert (found["file"], found["line"]) == ("claims_mine.py", 3)
    assert (found["commit"], found["modified"]) == (None, False)
    (tmp_path / "pyproject.toml").write_text("[tool.attlas]\nkey = 'mine'\n")
    assert called(f"{file}[cell 3]") == "sub/claims_mine.py[cell 3]"


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


def test_what_attlas_defines_is_told_as_such():
    from attlas.claims.julistiono2024optimizing import lemma_12

    found = provenance((lemma_12.__file__, 20), ours="a" * 40)
    assert found["file"] == "src/attlas/claims/julistiono2024optimizing/lemma_12.py"
    assert found["commit"] == "a" * 40


def test_a_digest_is_that_of_the_sources_as_they_were_loaded(tmp_path):
    file = tmp_path / "digest_of_loaded.py"
    file.write_text("x = 1\n")
    before = source_digest(str(file))
    (loaded,) = load_place(str(file))
    assert source_digest(str(file), loaded.home) == before
    file.write_text("x = 2\n")
    assert source_digest(str(file), loaded.home) == before != source_digest(str(file))
    assert source_digest("<ipython-input-1>") == ""
