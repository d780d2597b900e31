"""One factorisation at a time; that nothing locks is tested from threads in `test_doors`."""

import threading
import time

import jax
import jax.numpy as jnp
import pytest

from attlas._jax.factorising import FACTORISING, eigh, one_at_a_time, svd


def test_two_threads_take_turns():
    inside, most = [], []

    @one_at_a_time
    def slow() -> None:
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)
        inside.pop()

    threads = [threading.Thread(target=slow) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_the_lock_is_free_after_an_error_and_may_be_taken_twice():
    @one_at_a_time
    def fails() -> None:
        raise KeyError("x")

    with FACTORISING, pytest.raises(KeyError):
        fails()
    assert FACTORISING.acquire(blocking=False)
    FACTORISING.release()


def test_inside_a_program_it_is_the_plain_function():
    W = jnp.array([[2.0, 0.0], [0.0, 1.0]])
    inside = jax.jit(jax.vmap(lambda w: eigh(w)[0]))(jnp.stack([W, 2 * W]))
    assert inside.tolist() == [[1.0, 2.0], [2.0, 4.0]]
    slope = jax.grad(lambda w: svd(w, compute_uv=False)[0])(W)
    assert slope.tolist() == [[1.0, 0.0], [0.0, 0.0]]
