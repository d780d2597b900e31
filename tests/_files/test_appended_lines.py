import os

import pytest

from attlas._files import appended_lines
from attlas._files.appended_lines import append_line, whole_lines


@pytest.mark.parametrize("torn", ["", "[2", "x" * 200_000])
def test_a_line_follows_the_last_whole_one(tmp_path, torn):
    path = tmp_path / "deeper" / "a.jsonl"
    append_line(path, "[1]")
    with path.open("a") as file:
        file.write(torn)
    append_line(path, "[3]")
    assert path.read_bytes() == b"[1]\n[3]\n"


def test_a_disk_that_fills_up_leaves_whole_lines(tmp_path, monkeypatch):
    path, write = tmp_path / "a.jsonl", os.write
    append_line(path, "[1]")

    def fills(handle, content):
        if len(content) < 5:
            raise OSError(28, "No space left on device")
        return write(handle, content[:2])

    monkeypatch.setattr(appended_lines.os, "write", fills)
    with pytest.raises(OSError, match="No space"):
        append_line(path, "[1, 2, 3]")
    assert path.read_bytes() == b"[1]\n"


def test_a_reader_sees_no_half_line():
    assert [whole_lines(b"[1]\n[2]"[:n]) for n in range(8)] == [b""] * 4 + [b"[1]\n"] * 4
