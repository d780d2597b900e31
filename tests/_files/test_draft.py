"""Files are whole or as they were."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attlas._files.draft import draft_of, draft_path


def interrupted(target: Path) -> None:
    with draft_of(target) as draft:
        draft.write_text("half")
        raise ZeroDivisionError


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_a_file_is_as_it_was_until_its_draft_is_whole(tmp_path):
    target = tmp_path / "deep" / "kept.txt"
    with draft_of(target, durable=True) as draft:
        draft.write_text("first")
        assert not target.exists()
        assert draft.parent == target.parent
    assert target.read_text() == "first"
    with pytest.raises(ZeroDivisionError):
        interrupted(target)
    assert target.read_text() == "first"
    assert names(target.parent) == ["kept.txt"]


def test_what_the_system_refuses_is_raised_and_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError), draft_of(tmp_path / "folder") as draft:
        draft.write_text("x")
    assert names(tmp_path) == ["folder"]
    with pytest.raises(FileNotFoundError), draft_of(tmp_path / "a.txt", durable=True):
        pass  # nothing was written
    assert names(tmp_path) == ["folder"]


def test_two_threads_have_two_drafts(tmp_path):
    with ThreadPoolExecutor(1) as other:
        there = other.submit(draft_path, tmp_path / "a.txt").result()
    assert there != draft_path(tmp_path / "a.txt")
