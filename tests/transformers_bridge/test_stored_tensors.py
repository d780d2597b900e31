"""Tensors of a file, checked."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.transformers._readers.lm_head import read_lm_head, repeated_lm_head
from attlas.transformers.lazy_tensors import LazyTensors, Unread
from attlas.transformers.stored_tensors import StoredTensors

SHAPES = {"in.weight": (3, 2), "norm.weight": (2,)}
FILE = {"model.in.weight": np.ones((3, 2)), "model.norm.weight": np.ones(2)}


class Lazy(dict):
    """Notes what is read."""

    def __init__(self, *args):
        super().__init__(*args)
        self.read = []

    def __getitem__(self, name):
        self.read.append(name)
        return super().__getitem__(name)


def stored(file, **settings):
    return StoredTensors(file, SHAPES, prefixes=("model.", ""), **settings)


def test_prefix_is_found_and_nothing_is_read_before_it_is_asked_for():
    file = Lazy(FILE)
    tensors = stored(file)
    assert "model.norm.weight" not in file.read  # the type checker of the tests reads the first
    file.read.clear()
    assert (len(tensors), tensors.parameters, set(tensors)) == (2, 8, set(SHAPES))
    assert tensors["norm.weight"].shape == (2,)
    assert file.read == ["model.norm.weight"]
    assert set(stored({"in.weight": np.ones((3, 2)), "norm.weight": np.ones(2)})) == set(SHAPES)


def test_what_has_no_place_is_refused_and_buffers_are_not():
    more = FILE | {"model.rotary.inv_freq": np.ones(2)}
    with pytest.raises(UserError, match=r"tensor 'model\.rotary\.inv_freq' has no place"):
        stored(more)
    assert stored(more, buffers=r"\.inv_freq$").parameters == 8


def test_missing_and_misshapen_tensors():
    with pytest.raises(UserError, match=r"tensor 'model\.norm\.weight' is missing, and 0 more"):
        stored({"model.in.weight": np.ones((3, 2))})
    with pytest.raises(UserError, match=r"'model\.in\.weight' has shape \(2, 3\)"):
        stored(FILE | {"model.in.weight": np.ones((2, 3))})["in.weight"]


def test_a_header_tells_another_shape_before_anything_is_read():
    def read(dtype):
        raise AssertionError("read")

    unread = {
        name: Unread((2,), np.dtype("f4"), "file", read) for name in ("in.weight", "norm.weight")
    }
    with pytest.raises(UserError, match=r"'in\.weight' has shape \(2,\)"):
        stored(LazyTensors(unread))


OUT = ("in.weight", ("out.weight",))


@pytest.mark.parametrize("tied", [True, False])
def test_output_layer_of_its_own(tied):
    file = FILE | {"out.weight": 2 * np.ones((3, 2))}
    tensors = stored(file, optional={"out.weight": (3, 2)})
    words = read_lm_head(tensors, *OUT, tied=tied)
    assert words is not None
    assert (words.W.shape, float(words.W[0, 0])) == ((2, 3), 2.0)
    assert (repeated_lm_head(tensors, *OUT, tied=tied), tensors.parameters) == (0, 14)


def test_shared_output_layer_is_counted_once_and_another_task_has_none():
    file = FILE | {"out.weight": np.ones((3, 2))}
    tensors = stored(file, optional={"out.weight": (3, 2)})
    assert repeated_lm_head(tensors, *OUT, tied=True) == 6
    assert read_lm_head(stored(FILE), *OUT, tied=True) is not None
    other = stored(FILE | {"score.weight": np.ones((5, 2))})
    assert (other.for_language, other.parameters) == (False, 8)
    assert read_lm_head(other, *OUT, tied=True) is None
    assert repeated_lm_head(other, *OUT, tied=True) == 0
