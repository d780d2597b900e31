"""Damaged entries of a cache go, and the oldest beyond its size."""

import os
import time
from pathlib import Path

from attlas._files.bounded_cache import STAMP, tidy_entries


def entry(folder: Path, name: str, content: bytes, age: float) -> Path:
    path = folder / name
    path.write_bytes(content)
    os.utime(path, (time.time() - age,) * 2)
    return path


def is_whole(content: bytes) -> bool:
    return content.endswith(b".")


def test_damaged_entries_go_once_they_can_no_longer_be_unfinished(tmp_path):
    whole = entry(tmp_path, "a-cache", b"whole.", 1000)
    damaged = entry(tmp_path, "b-cache", b"dama", 1000)
    fresh = entry(tmp_path, "c-cache", b"unfin", 1)
    other = entry(tmp_path, "notes.txt", b"of the user", 1000)
    assert tidy_entries(tmp_path, "-cache", 10**6, is_whole) == (1, 0)
    assert [path.exists() for path in (whole, damaged, fresh, other)] == [True, False, True, True]
    for path in (fresh, tmp_path / STAMP):  # a minute later
        os.utime(path, (time.time() - 61,) * 2)
    assert tidy_entries(tmp_path, "-cache", 10**6, is_whole) == (1, 0)


def test_entries_are_read_once(tmp_path):
    entry(tmp_path, "a-cache", b"whole.", 1000)
    seen = []
    for _ in range(2):
        tidy_entries(tmp_path, "-cache", 10**6, lambda content: not seen.append(content))
    assert seen == [b"whole."]


def test_the_oldest_go_beyond_the_size_until_three_quarters_are_left(tmp_path):
    paths = [entry(tmp_path, f"{k}-cache", b"." * 100, 1000 - k) for k in range(10)]
    assert tidy_entries(tmp_path, "-cache", 1000, is_whole) == (0, 0)
    assert tidy_entries(tmp_path, "-cache", 999, is_whole) == (0, 3)
    assert [path.exists() for path in paths] == [False] * 3 + [True] * 7
