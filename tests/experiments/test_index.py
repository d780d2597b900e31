import json

import numpy as np
import pytest
from arrays_of import arrays_of

from attlas._files.plain_file import Damaged
from attlas.core.errors import UserError
from attlas.experiments import index
from attlas.experiments.cell import Cell
from attlas.experiments.environment import environment
from attlas.experiments.index import NAME, Index
from attlas.experiments.record import Layout, Record, record_key
from attlas.experiments.store import Store


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A folder of three records, worth an index."""
    monkeypatch.setattr(index, "WORTH", 3)
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / ".index.json").write_text("{}")  # of an earlier version
    metadata = {**environment(), "revision": 1, "seconds": 0.0, "finished": "2026-11-23T00:00:00"}
    for x in range(3):
        cell = Cell({"x": x})
        made = {"y": np.arange(4.0)}, metadata, record_key("toy", 1, cell), Layout({"y": ("k",)})
        Store(tmp_path).write(Record("toy", cell, *made))
    return tmp_path


def count_full_tests(monkeypatch):
    """How often a text is held against its schema."""
    met = []
    from attlas.experiments import schema

    monkeypatch.setattr(schema, "first_violation", lambda *args: met.append(args) or "")
    return met


def test_what_has_passed_is_not_tested_again(written, monkeypatch):
    assert len(Store(written).records("toy")) == 3
    assert (written / "toy" / NAME).is_file()
    assert not (written / "toy" / ".index.json").exists()
    met = count_full_tests(monkeypatch)
    again = Store(written).records("toy")
    assert len(again) == 3
    np.testing.assert_array_equal(again[0].arrays["y"], np.arange(4.0))
    assert not met


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_an_altered_file_is_noticed_behind_an_index(written, suffix):
    store = Store(written)
    key = store.records("toy")[1].key
    path = written / "toy" / f"{key}.json"
    path = path if suffix == ".json" else arrays_of(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(Damaged, match=key[:12]):
        Store(written).read("toy", key)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"passed": 1}', "\xff", "gone", "sealed"])
def test_a_damaged_index_is_made_anew(written, monkeypatch, damage):
    Store(written).records("toy")
    path = written / "toy" / NAME
    whole = path.read_bytes()
    if damage == "sealed":
        document = json.loads(whole)
        document["passed"] = dict.fromkeys(document["passed"], "0" * 64)
        path.write_text(json.dumps(document))
    elif damage == "gone":
        path.unlink()
    else:
        path.write_text(damage, encoding="latin-1")
    met, store = count_full_tests(monkeypatch), Store(written)
    assert len(store.records("toy")) == 3
    assert len(met) == 3
    assert path.read_bytes() == whole
    aside = list((written / "toy").glob("quarantine/*"))
    assert len(aside) == (damage != "gone")
    assert [NAME in note and "verified again" in note for note in store.notes] == [True] * len(
        aside
    )


def test_every_flipped_bit_of_an_index_is_noticed(written):
    Store(written).records("toy")
    path = written / "toy" / NAME
    whole = path.read_bytes()
    for number in range(0, 8 * len(whole), 61):
        content = bytearray(whole)
        content[number // 8] ^= 1 << number % 8
        path.write_bytes(content)
        store = Store(written)
        assert len(store.records("toy")) == 3
        assert len(store.notes) == 1, number
        path.write_bytes(whole)


def test_an_index_of_other_rules_is_not_used(written, monkeypatch):
    Store(written).records("toy")
    monkeypatch.setattr(index, "_rules", lambda kind: f"other rules of a {kind}")
    met = count_full_tests(monkeypatch)
    assert len(Store(written).records("toy")) == 3
    assert len(met) == 3


def test_a_folder_that_cannot_be_written_is_read_without_an_index(written, monkeypatch):
    def refuse(*arguments):
        raise UserError("read-only")

    monkeypatch.setattr("attlas.experiments.index.write_pair", refuse)
    assert len(Store(written).records("toy")) == 3
    assert not (written / "toy" / NAME).exists()


def test_few_records_have_no_index(written, monkeypatch):
    monkeypatch.setattr(index, "WORTH", 4)
    assert len(Store(written).records("toy")) == 3
    assert not (written / "toy" / NAME).exists()


def test_another_text_of_the_same_name_is_not_known(tmp_path):
    one = Index(tmp_path, "record", print)
    one.learn("a", b"text")
    assert one.knows("a", b"text")
    assert not one.knows("a", b"texT")
    assert not one.knows("b", b"text")
