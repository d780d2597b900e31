import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from attlas._files.file_changes import draft_path, folder_lock, make_folder, write_file


def interrupted():
    yield b"half"
    raise ZeroDivisionError


def names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def test_folders_are_made_once_and_not_through_a_file(tmp_path):
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        make_folder(tmp_path / "file" / "below")


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_as_it_was_until_its_draft_is_complete(tmp_path, durable):
    target = tmp_path / "deep" / "a.txt"

    def content():
        yield b"fi"
        assert not target.exists()
        yield b"rst"

    write_file(target, content(), durable=durable)
    assert target.read_text() == "first"
    with pytest.raises(ZeroDivisionError):
        write_file(target, interrupted(), durable=durable)
    assert target.read_text() == "first"
    assert names(target.parent) == ["a.txt"]


def test_what_the_system_refuses_is_raised_and_leaves_nothing(tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_file(tmp_path / "folder", [b"x"])
    assert names(tmp_path) == ["folder"]


def test_a_draft_of_a_killed_process_is_written_over(tmp_path):
    draft_path(tmp_path / "a.txt", is_alone=True).write_bytes(b"a longer half")
    write_file(tmp_path / "a.txt", [b"new"])
    assert (tmp_path / "a.txt").read_bytes() == b"new"
    assert names(tmp_path) == ["a.txt"]


def test_without_a_lock_two_threads_have_two_drafts(tmp_path):
    with ThreadPoolExecutor(1) as other:
        there = other.submit(draft_path, tmp_path / "a.txt", is_alone=False).result()
    assert there != draft_path(tmp_path / "a.txt", is_alone=False)


def test_a_lock_keeps_others_waiting_and_its_holder_not(tmp_path):
    order = []

    def other():
        with folder_lock(tmp_path) as is_held:
            order.append(("other", is_held))

    waiting = threading.Thread(target=other)
    with folder_lock(tmp_path) as first, folder_lock(tmp_path) as second:
        waiting.start()
        waiting.join(0.2)
        order.append(("holder", first and second))
    waiting.join()
    assert order == [("holder", True), ("other", True)]
    with folder_lock(tmp_path / "absent") as is_held:
        assert not is_held
