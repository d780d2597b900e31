"""The door for arrays: what is read, in which type, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from attlas.core.arrays import (
    as_float64,
    own_precision,
    read_array,
    read_arrays,
    read_indices,
    read_mask,
    working_dtype,
)
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
    assert np.shares_memory(as_float64(given, "x", "n d"), given)
    assert np.shares_memory(read_array(given, "x"), given)


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


def test_axes_bind_the_sizes_of_several_arrays():
    X, z = read_arrays("n T d, n d", np.float64, X=np.ones((2, 3, 4), "f4"), z=jnp.ones((2, 4)))
    assert X.dtype == z.dtype == np.float64
    with pytest.raises(UserError, match=r"^z has shape \(3, 4\): give \[n d\] with n = 2, as X"):
        read_arrays("n T d, n d", X=np.ones((2, 3, 4)), z=np.ones((3, 4)))
    with pytest.raises(UserError, match=r"^z has 1 entries that are NaN or infinite"):
        read_arrays("n", z=[1.0, float("nan")])


def test_what_is_traced_is_known_by_its_shape_alone():
    def both(a, b):
        with own_precision("n d, d", a=a, b=b) as (first, second):
            return first @ second

    assert jax.jit(both)(jnp.ones((2, 3)), jnp.full(3, jnp.nan)).shape == (2,)
    assert jax.vmap(both, (0, None))(jnp.ones((5, 2, 3)), np.ones(3)).shape == (5, 2)
    with pytest.raises(UserError, match=r"b has shape \(2,\): give \[d\] with d = 3, as a has"):
        jax.jit(both)(jnp.ones((2, 3)), jnp.ones(2))
    with pytest.raises(UserError, match="b has 3 entries that are NaN"):
        both(jnp.ones((2, 3)), jnp.full(3, jnp.nan))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([0.0, 1.0], "dtype float64: give integers"),
        ([0, 3], r"holds 3, outside \[0, 3\)"),
        ([0, -1], r"holds -1, outside \[0, 3\)"),
        ([0], r"shape \(1,\): give \(2,\)"),
        ([True, False], "dtype bool: give real numbers"),
    ],
)
def test_indices_are_whole_and_within(value, said):
    assert read_indices(jnp.array([2, 0]), "tokens", (2,), 3).tolist() == [2, 0]
    with pytest.raises(UserError, match=said):
        read_indices(value, "tokens", (2,), 3)


def test_a_mask_is_of_booleans():
    assert read_mask(jnp.array([True, False]), "kept", (2,)).tolist() == [True, False]
    with pytest.raises(UserError, match="kept has dtype int64: give booleans"):
        read_mask([1, 0], "kept", (2,))
    with pytest.raises(UserError, match=r"kept has shape \(2,\): give \(3,\)"):
        read_mask([True, False], "kept", (3,))
