import os

import pytest

from attlas._files.plain_file import (
    Damaged,
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


def test_a_line_for_a_terminal_has_no_commands():
    assert printable("é \x1b[2J\u202e\r\nx") == "é \\x1b[2J\\u202e x"
