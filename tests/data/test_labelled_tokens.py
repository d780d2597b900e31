"""Refusals of binary problems on tokens, each with its place."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.labelled_tokens import require_labelled_tokens

X, Y = np.ones((2, 3, 4)), np.array([1.0, -1.0])


def with_entry(array, place, value):
    changed = array.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (X[0], Y, "shape \\(3, 4\\)"),
        (X[:0], Y[:0], "none empty"),
        (X, Y[:1], "y has shape \\(1,\\)"),
        (with_entry(X, (1, 2, 0), np.nan), Y, "X\\[1, 2, 0\\] = nan"),
        (X, with_entry(Y, 1, 0), "y\\[1\\] = 0.0 is not"),
        (with_entry(X, (1, 0, 3), 9), Y, "X\\[1, 0\\] has norm 9.16515 above R = 2"),
    ],
)
def test_bad_samples_are_refused(X, y, message):
    with pytest.raises(UserError, match=message):
        require_labelled_tokens(jnp.asarray(X), jnp.asarray(y), R=2.0)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (X.astype(complex), Y, "X is of the type complex128"),
        (X, np.array(["a", "b"]), "y is of the type <U1"),
        (X > 0, Y, "X is of the type bool"),
        (X.tolist(), Y, "X is a list: give an array"),
        (X, None, "y is a NoneType: give an array"),
    ],
)
def test_what_is_no_array_of_real_numbers_is_refused(X, y, message):
    with pytest.raises(UserError, match=message):
        inspect.unwrap(require_labelled_tokens)(X, y)


def test_good_samples_pass_alone_stacked_and_traced():
    assert require_labelled_tokens(jnp.asarray(X), jnp.asarray(Y), R=2.0) is None
    assert require_labelled_tokens(jnp.asarray(X[None]), jnp.asarray(Y[None])) is None

    def traced(X):
        require_labelled_tokens(X, jnp.asarray(Y), R=0.1)
        return X[0, 0, 0]

    assert jax.jit(traced)(X) == 1.0
