"""Arrays come to JAX and are cut there as JAX itself would do it."""

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import entry, is_traced, on_device
from attlas.core.arrays import own_precision


@pytest.mark.parametrize("value", [np.arange(3), np.array(True), 2.5, [[1.0], [2.0]]])
def test_on_device_is_what_jax_makes_of_it(value):
    found, known = on_device(value), jnp.asarray(value)
    assert isinstance(found, jax.Array)
    assert (found.dtype, found.shape) == (known.dtype, known.shape)
    np.testing.assert_array_equal(found, known)


def test_what_is_there_stays_where_it_is():
    there = jnp.ones(2)
    assert on_device(there) is there


@pytest.mark.thorough
def test_threads_of_both_precisions_share_an_array():
    shared, narrow = np.ones((4, 4)), np.ones(1, np.float32)

    def put(wide: bool) -> set[tuple[np.dtype, np.dtype]]:
        found = []
        with jax.enable_x64(wide):
            for _ in range(1000):
                found.append(on_device(shared))
                with own_precision(shared=shared if wide else narrow) as (own,):
                    found.append(own)
        return {(array.dtype, np.asarray(array).dtype) for array in found}

    with ThreadPoolExecutor(4) as threads:
        ways = list(threads.map(put, [True, False, True, False]))
    double, single = np.dtype(np.float64), np.dtype(np.float32)
    assert ways == [{(double, double)}, {(single, single)}] * 2


@pytest.mark.parametrize("index", [0, -1, slice(1, None), (slice(None), -1), np.array([1, 0])])
def test_an_entry_of_an_array_is_that_of_jax(index):
    array = jnp.arange(12.0).reshape(3, 4)
    assert isinstance(entry(array, index), jax.Array)
    np.testing.assert_array_equal(entry(array, index), array[index])


def test_an_entry_of_other_arrays_is_of_their_kind():
    assert isinstance(entry(np.arange(3.0), slice(2)), np.ndarray)
    keys = jax.random.split(jax.random.key(0), 3)
    assert entry(keys, 1) == keys[1]


def test_an_entry_can_be_differentiated_and_is_compiled():
    slope = jax.jit(jax.grad(lambda x: entry(x, 1) ** 2))(jnp.array([1.0, 3.0]))
    assert slope.tolist() == [0.0, 6.0]


def test_a_traced_array_is_told_from_one_at_hand():
    seen = []
    jax.jit(lambda x: seen.append(is_traced(x)) or x)(1.0)
    assert seen == [True]
    assert not is_traced(jnp.ones(1))
    assert not is_traced(np.ones(1))
