"""What a file says about its output layer."""

import numpy as np

from attlas.interop.output_words import output_words
from attlas.interop.stored_tensors import StoredTensors

TABLE = np.arange(6.0).reshape(3, 2)


def read(out, *, tied, further=()):
    tensors = {"in": TABLE} | ({} if out is None else {"out": out}) | dict.fromkeys(further, TABLE)
    stored = StoredTensors(tensors, {"in": (3, 2)}, optional={"out": (3, 2)})
    return output_words(stored, TABLE, ("first", "out"), tied=tied)


def test_a_tied_copy_is_counted_once():
    words, repeated = read(TABLE, tied=True)
    assert repeated == 6
    np.testing.assert_array_equal(words.W, TABLE.T)
    np.testing.assert_array_equal(words.b, np.zeros(3))
    assert read(TABLE, tied=False)[1] == 0


def test_a_matrix_of_its_own_is_read_though_the_configuration_ties():
    words, repeated = read(TABLE + 1, tied=True)
    assert repeated == 0
    np.testing.assert_array_equal(words.W, TABLE.T + 1)


def test_without_a_matrix_the_embedding_reads_out_unless_the_file_has_another_task():
    np.testing.assert_array_equal(read(None, tied=True)[0].W, TABLE.T)
    assert read(None, tied=True, further=("classifier.weight",)) == (None, 0)
