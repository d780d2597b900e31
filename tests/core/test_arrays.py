"""The door for arrays: what is read, in which type, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from attlas.core.arrays import as_float64, own_precision, read_array, working_dtype
from attlas.core.errors import UserError
from attlas.core.trees import as_tree

ROWS = [[1.0, -0.5], [0.25, 2.0]]
READ = {
    "lists": lambda a: a,
    "ints in lists of arrays": lambda a: [np.asarray(row) for row in a],
    "float16": lambda a: np.asarray(a, np.float16),
    "float32": lambda a: np.asarray(a, np.float32),
    "float64": np.asarray,
    "longdouble": lambda a: np.asarray(a, np.longdouble),
    "jax": jnp.asarray,
    "bfloat16": lambda a: jnp.asarray(a, jnp.bfloat16),
    "pandas": pd.DataFrame,
}


@pytest.mark.parametrize("name", READ)
def test_as_float64_reads_what_holds_real_numbers(name):
    found = as_float64(READ[name](ROWS), "x", "n d")
    assert found.dtype == np.float64
    assert found.tolist() == ROWS


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_tensor_is_detached_and_brought_to_the_host(torch_like, dtype):
    tensor = torch_like(np.asarray(ROWS, np.float32), f"torch.{dtype}")
    found = read_array(tensor, "x")
    assert found.dtype == jnp.dtype(dtype)
    assert found.astype(float).tolist() == ROWS
    together = read_array([tensor, tensor], "x")
    assert together.astype(float).tolist() == [ROWS, ROWS]


def test_nothing_is_copied_that_is_right_already():
    given = np.ones((2, 3))
    assert as_float64(given, "x", "n d") is given
    assert read_array(given, "x") is given


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0, 2.0], [3.0]], "x has rows of different lengths: give rows of one length"),
        ("words", "x has dtype <U5: give real numbers"),
        ([["a"]], "x has dtype <U1: give real numbers"),
        (np.array([None]), "x has ndarray: give real numbers"),
        ([1 + 2j], "x has dtype complex128: give real numbers"),
        (np.array([True]), "x has dtype bool: give real numbers"),
        (np.array(["2026-01-01"], "datetime64[D]"), r"x has dtype datetime64\[D\]"),
        (np.ma.masked_array([1.0, 2.0], [False, True]), "x has masked entries"),
        (jax.random.key(0), "x cannot be read as an array"),
        ([1.0, np.inf], "x has 1 entries that are NaN or infinite"),
        (np.ones((2, 2)), r"x has shape \(2, 2\): expected axes \[n\]"),
        (1.0, r"x has shape \(\): expected axes \[n\]"),
    ],
)
def test_what_cannot_be_read_is_one_line(value, message):
    with pytest.raises(UserError, match=message) as caught:
        as_float64(value, "x", "n")
    assert "\n" not in str(caught.value)


def test_traced_arrays_are_refused_where_numbers_are_needed():
    with pytest.raises(UserError, match="x is traced by jit, vmap or grad"):
        jax.jit(lambda x: as_float64(x, "x", "n"))(jnp.ones(2))


def test_working_dtype_is_the_widest():
    assert working_dtype("float32") == np.float32
    assert working_dtype("bfloat16") == jnp.bfloat16
    assert working_dtype("bfloat16", "float16") == np.float32
    assert working_dtype("float32", "float64") == np.float64
    assert working_dtype("int32") == np.float64
    assert working_dtype(np.longdouble) == np.float64


def test_own_precision_widens_and_leaves_the_setting_as_it_was():
    with jax.enable_x64(False):
        with own_precision(a=np.ones(2), b=np.ones(2, np.float32)) as (a, b):
            assert a.dtype == b.dtype == (a / 3).dtype == np.float64
        assert jnp.ones(2).dtype == np.float32
        with own_precision(a=np.ones(2, np.float32)) as (a,):
            assert (a / 3).dtype == np.float32
        traced = jax.jit(lambda a: _third(a, np.ones(2)))(jnp.ones(2))
        assert traced.dtype == np.float32


def _third(a, b):
    with own_precision(a=a, b=b) as (first, second):
        return (first + second) / 3


def test_own_precision_refuses_what_is_not_real():
    with (
        pytest.raises(UserError, match="b has dtype bool"),
        own_precision(a=1.0, b=jnp.ones(2) > 0),
    ):
        raise AssertionError("not reached")


def test_a_tree_of_lists_is_one_array_and_tensors_become_arrays(torch_like):
    assert as_tree(ROWS, "x").tolist() == ROWS
    tree = as_tree({"W": torch_like(np.ones(3)), "n": 4}, "x")
    assert isinstance(tree["W"], np.ndarray)
    assert tree["n"] == 4
    pair = (np.ones(2), np.ones(3))
    assert as_tree(pair, "x")[1] is pair[1]
