import numpy as np
import pytest
from arrays_of import arrays_of

from attlas._files.plain_file import Damaged
from attlas.experiments.cell import Cell
from attlas.experiments.environment import environment
from attlas.experiments.record import Layout, Record, record_key
from attlas.experiments.schema import violations
from attlas.experiments.store import Store


def record_of(x: int) -> Record:
    cell = Cell({"x": x}, seed=x)
    metadata = {**environment(), "revision": 1, "seconds": 0.0, "finished": "2026-11-21T00:00:00"}
    key = record_key("toy", 1, cell)
    return Record("toy", cell, {"y": np.arange(x)}, metadata, key, Layout({"y": ("k",)}))


def test_a_record_comes_back_whole_and_fits_its_schema(tmp_path):
    import json

    store, record = Store(tmp_path), record_of(3)
    path = store.write(record)
    found = store.read("toy", record.key)
    assert found is not None
    assert (found.cell, found.metadata, found.key) == (record.cell, record.metadata, record.key)
    np.testing.assert_array_equal(found.arrays["y"], np.arange(3))
    assert found.dataset.identical(record.dataset)
    assert found.dataset.y.dims == ("k",)
    assert violations(json.loads(path.read_bytes()), "record") == ()


def test_a_renamed_record_is_not_taken_for_another_cell(tmp_path):
    store, one, two = Store(tmp_path), record_of(1), record_of(2)
    path = store.write(one)
    packed = arrays_of(path)
    packed.rename(path.with_name(packed.name.replace(one.key, two.key)))
    path.rename(path.with_stem(two.key))
    with pytest.raises(Damaged, match="was renamed"):
        store.read("toy", two.key)


def test_reading_names_damage_and_moves_nothing(tmp_path):
    heard = []
    store = Store(tmp_path, on_note=heard.append)
    paths = [store.write(record_of(x)) for x in range(3)]
    paths[1].write_text("{")
    assert [r.cell.settings["x"] for r in store.records("toy")] == [0, 2]
    assert store.notes == heard
    assert len(heard) == 1
    assert paths[1].name in heard[0]
    assert paths[1].exists()
    assert store.records("never-run") == ()
