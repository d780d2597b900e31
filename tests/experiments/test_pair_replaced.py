"""A pair that is replaced: whoever reads meanwhile or dies in between, it is the old or the new."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from arrays_of import arrays_of

from attlas._files import plain_file
from attlas._files.plain_file import Damaged, folder_lock
from attlas.core.errors import UserError
from attlas.experiments.cell import Cell
from attlas.experiments.environment import environment
from attlas.experiments.packed import arrays_files
from attlas.experiments.pair import STALE_SECONDS, probe_folder, quarantine, read_pair, write_pair
from attlas.experiments.record import Layout, Record, record_key
from attlas.experiments.store import Store

ENVIRONMENT = {
    "code": "0" * 64,
    "commit": None,
    "versions": {},
    "device": "",
    "platform": "",
    "flags": "",
}
WRITER = """
import sys
from pathlib import Path
import numpy as np
from attlas.experiments.pair import write_pair

environment = {"code": "0" * 64, "commit": None, "versions": {}, "device": "", "platform": "",
               "flags": ""}
print("ready", flush=True)
for k in range(int(sys.argv[2])):
    # Two of three pairs come again, byte by byte.
    x = k if k % 3 == 0 else k % 3
    document = {"kind": "witness", "claim": "a/b", "facts": {"x": x}, "metadata": environment}
    write_pair(Path(sys.argv[1]), "one", document, {"x": np.full(9, x)})
"""
KILLED = """
import os, signal, sys
from pathlib import Path
import numpy as np
from attlas.experiments.pair import write_pair

environment = {"code": "0" * 64, "commit": None, "versions": {}, "device": "", "platform": "",
               "flags": ""}
document = {"kind": "witness", "claim": "a/b", "facts": {"x": 2}, "metadata": environment}

def die_at(last, name):
    act = getattr(os, name)
    def counted(*args, **kwargs):
        met.append(name)
        if len(met) == last:
            os.kill(os.getpid(), signal.SIGKILL)
        return act(*args, **kwargs)
    setattr(os, name, counted)

for step, folder in enumerate(sys.argv[1:], start=1):
    child = os.fork()
    if not child:
        met = []
        for name in ("replace", "fsync", "unlink"):
            die_at(step, name)
        write_pair(Path(folder), "one", document, {"x": np.full(9, 2)})
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
STEPS = 16
"""More than a write has calls of the system that bring to disk, rename or remove."""


def write(folder: Path, x: int) -> Path:
    document = {"kind": "witness", "claim": "a/b", "facts": {"x": x}, "metadata": ENVIRONMENT}
    return write_pair(folder, "one", document, {"x": np.full(9, x)})


def read(folder: Path) -> int:
    """What the pair holds; both files say it."""
    pair = read_pair(folder, "one", "witness")
    assert pair is not None
    document, arrays = pair
    assert (arrays["x"] == document["facts"]["x"]).all()
    return document["facts"]["x"]


def as_earlier_versions(folder: Path) -> Path:
    """The name that earlier versions of attlas gave the arrays."""
    return arrays_of(folder / "one.json").rename(folder / "one.npz")


@pytest.fixture(params=["a pair", "a pair of earlier versions"])
def folder(request, tmp_path):
    write(tmp_path, 1)
    if "earlier" in request.param:
        as_earlier_versions(tmp_path)
    return tmp_path


@pytest.fixture
def no_locks(monkeypatch):
    monkeypatch.setattr(plain_file, "fcntl", None)


@pytest.mark.thorough
def test_a_reader_beside_two_writers_always_finds_a_whole_pair(folder):
    command = [sys.executable, "-c", WRITER, str(folder), "300"]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    values = set()
    while any(writer.poll() is None for writer in writers):
        values.add(read(folder))
    assert [writer.communicate()[0] for writer in writers] == ["", ""]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert len(values) > 5
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("locks", ["with locks", "without locks"])
def test_a_reader_beside_a_writer_always_finds_a_whole_pair(folder, locks, monkeypatch):
    if locks == "without locks":
        monkeypatch.setattr(plain_file, "fcntl", None)

    def rewrite():
        for k in range(61):
            write(folder, k if k % 3 == 0 else k % 3)

    writer, values = threading.Thread(target=rewrite), set()
    writer.start()
    while writer.is_alive():
        values.add(read(folder))
    writer.join()
    assert read(folder) == 60
    assert len(values) > 1
    if locks == "with locks":
        assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize("step", range(1, STEPS))
def test_a_failure_at_any_step_leaves_the_old_pair_or_the_new_one(folder, step, monkeypatch):
    met = []

    def failing(name):
        act = getattr(os, name)

        def counted(*args, **kwargs):
            met.append(name)
            if len(met) == step:
                raise OSError(5, "Input/output error")
            return act(*args, **kwargs)

        monkeypatch.setattr(os, name, counted)

    for name in ("replace", "fsync", "unlink"):
        failing(name)
    is_written = False
    with contextlib.suppress(UserError):
        write(folder, 2)
        is_written = True
    monkeypatch.undo()
    assert read(folder) in ((2,) if is_written else (1, 2))
    # Nothing that was left stands in the way of the next writer, nor stays after it.
    write(folder, 3)
    assert read(folder) == 3
    assert len(list(folder.glob("*.*"))) == 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_kill_9_at_any_step_leaves_the_old_pair_or_the_new_one(tmp_path):
    folders = [tmp_path / f"{step}" for step in range(1, STEPS)]
    for number, folder in enumerate(folders):
        write(folder, 1)
        if number % 2:
            as_earlier_versions(folder)
    command = [sys.executable, "-c", KILLED, *map(str, folders)]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    codes = [int(line) for line in told.splitlines()]
    killed = codes.count(-signal.SIGKILL)
    assert killed > 6
    assert codes == [-signal.SIGKILL] * killed + [0] * (len(folders) - killed)
    values = [read(folder) for folder in folders]
    assert values == sorted(values)  # old up to the step that publishes, new from there on
    assert set(values) == {1, 2}
    for folder in folders:
        write(folder, 3)
        assert read(folder) == 3
        assert len([path for path in folder.iterdir() if path.suffix != ".draft"]) == 2


def test_pairs_of_earlier_versions_are_read_and_replaced(tmp_path):
    write(tmp_path, 1)
    plain = as_earlier_versions(tmp_path)
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}
    assert read(tmp_path) == 1
    write(tmp_path, 1)  # the same: nothing is written
    assert {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in tmp_path.iterdir()} == before
    write(tmp_path, 2)
    assert read(tmp_path) == 2
    assert not plain.exists()


def test_a_damaged_pair_is_set_aside_whole(folder):
    (packed,) = arrays_files(folder, "one")
    packed.write_bytes(packed.read_bytes()[:-5])
    with pytest.raises(Damaged, match=packed.name):
        read(folder)
    names = sorted(path.suffix for path in quarantine(folder, "one").iterdir())
    assert names == [".json", ".npz"]
    assert [path.name for path in folder.iterdir()] == ["quarantine"]


def test_what_was_replaced_since_it_was_found_damaged_is_not_set_aside(tmp_path, monkeypatch):
    cell, store = Cell({"x": 1}), Store(tmp_path)
    metadata = {**environment(), "revision": 1, "seconds": 0.0, "finished": "2026-11-23T00:00:00"}
    made = metadata, record_key("toy", 1, cell), Layout({"y": ("k",)})
    record = Record("toy", cell, {"y": np.arange(4.0)}, *made)
    path, look = store.write(record), Store.read

    def replaced_after_the_first(self, experiment, key):
        monkeypatch.setattr(Store, "read", look)
        try:
            return look(self, experiment, key)
        finally:
            path.unlink()
            store.write(record)

    path.write_text("{")
    monkeypatch.setattr(Store, "read", replaced_after_the_first)
    found = store.read_or_quarantine("toy", record.key)
    assert found is not None
    assert store.notes == []
    assert not (tmp_path / "toy" / "quarantine").exists()
    path.write_text("{")
    assert store.read_or_quarantine("toy", record.key) is None
    assert len(list((tmp_path / "toy" / "quarantine").iterdir())) == 2


@pytest.mark.usefixtures("no_locks")
def test_without_locks_arrays_are_removed_when_no_writer_can_need_them(tmp_path):
    for x in (1, 2, 3):
        write(tmp_path, x)
    assert len(arrays_files(tmp_path, "one")) == 3
    for path in arrays_files(tmp_path, "one"):
        age(path)
    write(tmp_path, 4)
    assert arrays_files(tmp_path, "one") == (arrays_of(tmp_path / "one.json"),)
    assert read(tmp_path) == 4


def test_arrays_of_killed_writers_are_removed_when_stale(folder):
    there = sorted(folder.iterdir())
    left = [folder / f"{stem}@{'0' * 16}.npz" for stem in ("one", "two")]
    for path in (*left, folder / "mine.npz"):
        path.write_bytes(b"")
    probe_folder(folder)
    assert all(path.exists() for path in left)
    for path in folder.iterdir():
        age(path)
    probe_folder(folder)
    assert sorted(folder.iterdir()) == sorted([*there, folder / "mine.npz"])


def age(path: Path) -> None:
    then = time.time() - 2 * STALE_SECONDS
    os.utime(path, (then, then))


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
