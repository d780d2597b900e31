from attlas.experiments.cell import Cell
from attlas.experiments.record import record_key


def test_the_key_of_a_cell_never_changes():
    # A changed key makes every record of every user be computed again: raise SCHEMA instead.
    key = record_key("direction", 1, Cell({"p": 1.75, "n": 6}, seed=3, data_hash="ab"))
    assert key == "822dc7dd1af0a7da53ebed0abffeed3b1fdd2b3f0b2f2c75d36cb3f0f6b3745a"


def test_every_part_of_the_content_changes_the_key():
    base = Cell({"p": 2})
    keys = {
        record_key("direction", 1, base),
        record_key("rates", 1, base),
        record_key("direction", 2, base),
        record_key("direction", 1, Cell({"p": 3})),
        record_key("direction", 1, Cell({"p": 2}, seed=1)),
        record_key("direction", 1, Cell({"p": 2}, dtype="float32")),
        record_key("direction", 1, Cell({"p": 2}, data_hash="00")),
    }
    assert len(keys) == 7
