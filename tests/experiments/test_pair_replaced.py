"""A pair that is replaced: whoever reads meanwhile or dies in between, it is the old or the new."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from arrays_of import arrays_of
from small_documents import witness_document

from attlas._files import file_changes
from attlas._files.file_changes import draft_path, write_file
from attlas._files.plain_file import Damaged
from attlas.experiments.cell import Cell
from attlas.experiments.environment import environment
from attlas.experiments.pair import file_pair, probe_folder, quarantine, read_pair, write_pair
from attlas.experiments.record import Layout, Record, record_key
from attlas.experiments.store import Store

WRITER = """
import sys
from pathlib import Path
import numpy as np
from small_documents import witness_document

from attlas.experiments.pair import write_pair

print("ready", flush=True)
for k in range(int(sys.argv[2])):
    # Two of three pairs come again, byte by byte.
    x = k if k % 3 == 0 else k % 3
    write_pair(Path(sys.argv[1]), "one", witness_document(x), {"x": np.full(9, x)})
"""


def write(folder: Path, x: int) -> Path:
    return write_pair(folder, "one", witness_document(x), {"x": np.full(9, x)})


def arrays_files(folder: Path, stem: str) -> tuple[Path, ...]:
    return file_pair(folder, stem).all_data()


def read(folder: Path) -> int:
    """What the pair holds; both files say it."""
    found = read_pair(folder, "one", "witness")
    assert found is not None
    document, arrays = found
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
    monkeypatch.setattr(file_changes, "fcntl", None)


@pytest.mark.thorough
def test_a_reader_beside_two_writers_always_finds_a_whole_pair(folder):
    command = [sys.executable, "-c", WRITER, str(folder), "300"]
    variables = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    writers = [
        subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
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
        monkeypatch.setattr(file_changes, "fcntl", None)

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
    packed = arrays_of(folder / "one.json")
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
def test_without_locks_replaced_arrays_stay_until_the_folder_can_be_locked(tmp_path, monkeypatch):
    for x in (1, 2, 3):
        write(tmp_path, x)
    probe_folder(tmp_path)
    assert len(arrays_files(tmp_path, "one")) == 3
    assert read(tmp_path) == 3
    monkeypatch.undo()
    probe_folder(tmp_path)
    assert arrays_files(tmp_path, "one") == (arrays_of(tmp_path / "one.json"),)
    assert read(tmp_path) == 3


def test_drafts_and_arrays_of_killed_writers_are_removed_whatever_their_age(folder):
    there = sorted(folder.iterdir())
    left = [folder / f"{stem}@{'0' * 16}.npz" for stem in ("one", "two")]
    left += [draft_path(folder / name, is_alone=True) for name in ("one.json", "two.json")]
    for path in (*left, folder / "mine.npz"):
        path.write_bytes(b"")
    for path in (left[0], left[2]):
        os.utime(path, (0, 0))
    probe_folder(folder)
    assert sorted(folder.iterdir()) == sorted([*there, folder / "mine.npz"])


def test_what_another_machine_writes_is_left_to_it_whatever_the_clock_says(folder, monkeypatch):
    data = folder / f"one@{'0' * 16}.npz"
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(file_changes, "machine", lambda: "0" * 8)
        draft = draft_path(folder / "one.json", is_alone=True)
    for path in (draft, data):
        path.write_bytes(b"")
        os.utime(path, (0, 0))
    probe_folder(folder)
    write(folder, 2)
    assert draft.exists()
    assert data.exists()
    draft.unlink()
    write(folder, 3)
    assert not data.exists()


def test_data_without_a_document_always_have_a_draft_beside_them(tmp_path, monkeypatch):
    seen = []
    synchronise = file_changes.synchronise

    def looking(folder):
        synchronise(folder)
        names = {path.suffix for path in folder.iterdir()}
        seen.append(names)

    monkeypatch.setattr(file_changes, "synchronise", looking)
    write(tmp_path, 1)
    assert seen == [{".npz", ".draft"}, {".npz", ".json"}]


def test_the_draft_of_a_running_writer_survives_another_process_that_prepares(folder):
    began, go_on = threading.Event(), threading.Event()

    def content():
        yield b"{"
        began.set()
        assert go_on.wait(10)
        yield b"}"

    writer = threading.Thread(target=write_file, args=(folder / "two.json", content()))
    writer.start()
    assert began.wait(10)
    (draft,) = folder.glob(".*.draft")
    os.utime(draft, (0, 0))
    other = threading.Thread(target=probe_folder, args=(folder,))
    other.start()
    other.join(0.2)
    assert draft.exists()
    go_on.set()
    writer.join()
    other.join()
    assert (folder / "two.json").read_text() == "{}"


def test_a_damaged_pair_is_set_aside_before_another_takes_its_place(folder):
    packed, said = arrays_of(folder / "one.json"), []
    harmed = packed.read_bytes()[:-5]
    packed.write_bytes(harmed)
    document = witness_document(2)
    write_pair(folder, "one", document, {"x": np.full(9, 2)}, said.append)
    assert read(folder) == 2
    assert len(said) == 1
    assert packed.name in said[0]
    kept = {path.suffix: path.read_bytes() for path in (folder / "quarantine").iterdir()}
    assert kept[".npz"] == harmed
    assert b'"x": 1' in kept[".json"]
