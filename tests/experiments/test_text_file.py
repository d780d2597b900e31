import inspect
import os
import sys
import threading

import pytest

from attlas.core.errors import UserError
from attlas.experiments.text_file import probe_text_file, write_text_file


def test_a_file_is_replaced_and_its_folders_are_made(tmp_path):
    path = tmp_path / "new" / "page.html"
    assert write_text_file(path, "one", "--out") == path
    write_text_file(path, "twö", "--out")
    assert path.read_text(encoding="utf-8") == "twö"
    assert [other.name for other in path.parent.iterdir()] == ["page.html"]


def test_a_link_is_followed(tmp_path):
    (tmp_path / "link").symlink_to("target")
    write_text_file(tmp_path / "link", "x", "--out")
    assert (tmp_path / "target").read_text() == "x"
    assert (tmp_path / "link").is_symlink()


def test_a_pipe_is_written_for_its_reader_and_refused_without(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(UserError, match="no process reads it"):
        write_text_file(pipe, "x", "--out")
    heard = []
    # Opened here, so that the writer meets a reader; read there, as it holds 64 kB.
    reader = os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb")
    os.set_blocking(reader.fileno(), True)
    thread = threading.Thread(target=lambda: heard.append(reader.read()), daemon=True)
    with reader:
        # It starts before the writer: a pipe without one reads as empty.
        keeper = os.open(pipe, os.O_WRONLY)
        thread.start()
        write_text_file(pipe, "x" * 10**6, "--out")
        os.close(keeper)
        thread.join(timeout=10)
    assert [len(text) for text in heard] == [10**6]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x" * 300, "File name too long"),
        ("long/" * 1500 + "x", "File name too long"),
        ("file/below", "Not a directory|File exists"),
        ("folder", "Is a directory"),
        ("circle", "symbolic links|Symlink loop"),
        ("/dev/full", "No space left"),
    ],
)
def test_what_cannot_be_written_is_one_line(tmp_path, name, said):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(UserError, match=said) as caught:
        write_text_file(tmp_path / name, "x", "--out")
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["circle", "file", "folder"]


def test_a_very_deep_file_is_written(tmp_path):
    path = tmp_path.joinpath(*["d"] * 300, "page.html")
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 150)
    try:
        assert write_text_file(path, "x", "--out").read_text() == "x"
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("name", ["x" * 300, "folder", "missing/x", "folder/" * 1500 + "x"])
def test_a_file_that_could_not_be_written_is_refused_before(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match="--json"):
        probe_text_file(tmp_path / name, "--json")
    probe_text_file(tmp_path / "new", "--json")
    assert not (tmp_path / "new").exists()
