"""One factorisation at a time: two at once lock XLA's CPU runtime for ever (jaxlib 0.10.2).

Cholesky, LU, QR, eigenvalues and singular values of a batch are tasks of XLA's pool of threads,
and the thread that hands them out waits for them inside the pool. Two such programs at once can
hold every thread of the pool waiting, so that no task ever runs: the process stands still. One
program alone does not, nor do products and triangular solves, nor NumPy and SciPy, which call
LAPACK themselves. No released version ends it: 0.10.2 is the newest of 2026-11-26.

Hence every program of this library that factorises is marked by `one_at_a_time`, whichever
thread calls it. What a caller compiles around it (`jax.jit`, `jax.vmap`) is the caller's program:
run such programs from one thread, or under `FACTORISING`.
"""

import threading
from collections.abc import Callable
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array

Args = ParamSpec("Args")
Value = TypeVar("Value")

FACTORISING = threading.RLock()
"""Held while a program that factorises runs; the same thread may take it again."""


def one_at_a_time(program: Callable[Args, Value]) -> Callable[Args, Value]:
    """A compiled program that waits for its turn, and whose turn ends with its result.

    JAX returns before a program has run: without waiting for the result the lock would be free too
    early. Under a transformation nothing runs, and waiting is skipped. A call takes two
    microseconds more.

    Examples:
        >>> one_at_a_time(jnp.linalg.eigvalsh)(jnp.eye(2)).tolist()
        [1.0, 1.0]
    """

    @wraps(program)
    def waiting(*args: Args.args, **kwargs: Args.kwargs) -> Value:
        return _alone(program, *args, **kwargs)

    return waiting


def _alone(program: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with FACTORISING:
        return jax.block_until_ready(program(*args, **kwargs))


# For functions that run outside of a compiled program as well as inside one.
cholesky = partial(_alone, jnp.linalg.cholesky)
eigh = partial(_alone, jnp.linalg.eigh)
qr = partial(_alone, jnp.linalg.qr)
svd = partial(_alone, jnp.linalg.svd)


def after(value: Array, done: Array) -> Array:
    """The value, for a program that factorises it only once another number is known.

    One program hangs too where two of its factorisations of a batch may run at once; a number that
    each one takes from the one before puts them in a row. A barrier would not: XLA drops it before
    it plans what runs when.

    Args:
        done: norms of any shape, none negative, from the factorisation before it; where one is
            NaN, so is the value.

    Examples:
        >>> after(jnp.ones(2), jnp.zeros(3)).tolist()
        [1.0, 1.0]
    """
    return jnp.where(jnp.min(done) >= 0, value, jnp.nan)
