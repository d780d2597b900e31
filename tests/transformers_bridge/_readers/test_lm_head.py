"""What a file says about its output layer."""

import numpy as np

from attlas.transformers._readers.lm_head import read_lm_head, repeated_lm_head
from attlas.transformers.stored_tensors import StoredTensors

TABLE = np.arange(6.0).reshape(3, 2)


def file(out, further=()):
    tensors = {"in": TABLE} | ({} if out is None else {"out": out}) | dict.fromkeys(further, TABLE)
    return StoredTensors(tensors, {"in": (3, 2)}, optional={"out": (3, 2)})


def words(stored, *, tied):
    found = read_lm_head(stored, "in", ("first", "out"), tied=tied)
    assert found is not None
    return found


def test_a_tied_copy_is_counted_once():
    stored = file(TABLE)
    np.testing.assert_array_equal(words(stored, tied=True).W, TABLE.T)
    np.testing.assert_array_equal(words(stored, tied=True).b, np.zeros(3))
    assert repeated_lm_head(stored, "in", ("first", "out"), tied=True) == 6
    assert repeated_lm_head(stored, "in", ("out",), tied=False) == 0


def test_a_matrix_of_its_own_is_read_though_the_configuration_ties():
    stored = file(TABLE + 1)
    np.testing.assert_array_equal(words(stored, tied=True).W, TABLE.T + 1)
    assert repeated_lm_head(stored, "in", ("out",), tied=True) == 0


def test_without_a_matrix_the_embedding_reads_out_unless_the_file_has_another_task():
    np.testing.assert_array_equal(words(file(None), tied=True).W, TABLE.T)
    assert read_lm_head(file(None), "in", ("out",), tied=False) is None
    assert read_lm_head(file(None, ("classifier.weight",)), "in", ("out",), tied=True) is None
    assert repeated_lm_head(file(None), "in", ("out",), tied=True) == 0
