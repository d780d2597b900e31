import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attlas._files.plain_file import (
    Damaged,
    draft_of,
    draft_path,
    make_folder,
    printable,
    read_plain_file,
    stems,
)


def test_a_file_is_read_whole_and_a_link_to_it(tmp_path):
    (tmp_path / "file").write_bytes(b"whole")
    (tmp_path / "link").symlink_to("file")
    assert read_plain_file(tmp_path / "file", 5) == b"whole"
    assert read_plain_file(tmp_path / "link", 5) == b"whole"
    assert read_plain_file(tmp_path / "none", 5) is None
    with pytest.raises(Damaged, match="file has 5 bytes, of at most 4"):
        read_plain_file(tmp_path / "file", 4)


@pytest.mark.parametrize(
    ("put", "said"),
    [
        (os.mkdir, "is not a regular file"),
        (os.mkfifo, "is not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (lambda path: path.symlink_to("nowhere"), "is a link to nothing"),
        (lambda path: path.symlink_to("it"), "cannot be read"),
    ],
)
def test_what_is_no_file_is_damaged_at_once(tmp_path, put, said):
    put(tmp_path / "it")
    with pytest.raises(Damaged, match=said):
        read_plain_file(tmp_path / "it", 5)


def test_stems_are_sorted_and_hidden_names_left_out(tmp_path):
    for name in ("b.json", "a.json", ".c.json", "d.npz"):
        (tmp_path / name).touch()
    assert stems(tmp_path, ".json") == ("a", "b")
    with pytest.raises(Damaged, match="Not a directory"):
        stems(tmp_path / "d.npz", ".json")


def test_folders_are_made_once_and_not_through_a_file(tmp_path):
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_folder(tmp_path / "file" / "below")


def test_a_line_for_a_terminal_has_no_commands():
    assert printable("é \x1b[2J\u202e\r\nx") == "é \\x1b[2J\\u202e x"


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
