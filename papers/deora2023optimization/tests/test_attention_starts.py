"""Starts against what each of them is made of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.attention.multi_head import make_multi_head
from attlas.optim.one_step import one_step_initialisation
from deora2023optimization.library.optim.attention_starts import attention_starts, gaussian_heads


def test_starts_are_zero_one_step_and_gaussian_weights_of_one_stream():
    key = jax.random.key(3)
    X, y = jax.random.normal(key, (6, 4, 5)), jnp.array([1.0, -1.0] * 3)
    zero, step, small, large = attention_starts(key, X, y, 2, [0.1, 0.5], [0, 7])
    assert not zero.U.any()
    assert not zero.W.any()
    expected = one_step_initialisation(key, X, y, 2)
    np.testing.assert_array_equal(step.U, expected.U)
    np.testing.assert_allclose(large.W, 5 * small.W, rtol=1e-15)
    again = gaussian_heads(zero, 0.1, (0, 7))
    np.testing.assert_array_equal(again.U, small.U)
    assert not np.array_equal(gaussian_heads(zero, 0.1, (0, 8)).U, small.U)


def test_entries_have_the_deviation():
    found = gaussian_heads(make_multi_head(50, 20, 20), 0.3, [0])
    entries = np.concatenate([np.ravel(found.U), np.ravel(found.W)])
    # 40,000 entries: the standard error of a deviation is 0.3 / sqrt(80,000) = 0.001.
    assert abs(entries.std() - 0.3) < 0.005
    assert abs(entries.mean()) < 0.0075


def test_a_negative_deviation_is_refused():
    with pytest.raises(UserError, match="deviation = -1"):
        gaussian_heads(make_multi_head(1, 1, 1), -1.0, [0])
