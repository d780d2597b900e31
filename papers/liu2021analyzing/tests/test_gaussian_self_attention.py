"""Rows of zeros and temperatures: what changes the function, and what does not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.gaussian_self_attention import (
    gaussian_self_attention,
    tempered_output,
)
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP


def one(seed=1, **given):
    models = gaussian_self_attention(np.random.default_rng(seed), 1, 3, 2, 1, 2, 4, **given)
    return jax.tree.map(lambda a: a[0], models)


X = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, (2, 3)))


def test_rows_of_zeros_change_nothing_once_the_factor_makes_up_for_them():
    few, more = one(), one(rows=4)
    assert float(tempered_output(more, X, jnp.array(2.0))) == pytest.approx(
        float(few(X)), rel=1e-12
    )
    with pytest.raises(UserError, match="rows = 0"):
        one(rows=0)


@pytest.mark.thorough
def test_rows_of_zeros_get_no_gradient():
    slope = jax.grad(lambda model: model(X))(one(rows=4))
    assert not np.asarray(slope.W_Q[1:]).any()
    assert not np.asarray(slope.W_K[1:]).any()


def test_factors_are_inverse_temperatures():
    model = one()
    parts = (getattr(model, name) for name in ("W_Q", "W_K", "W_V", "W1", "w2", "b1", "b2"))
    colder = SelfAttentionMLP(*parts, temperature=0.5)
    found = tempered_output(model, X, jnp.array(2.0))
    assert float(found) == pytest.approx(float(colder(X)), rel=1e-12)
    assert abs(float(found) - float(model(X))) > 1e-6


def test_sizes_of_draws():
    models = gaussian_self_attention(np.random.default_rng(3), 300, 3, 4, 2, 2, 5, size=1.7)
    assert float(jnp.std(models.W_K)) == pytest.approx(1.7, rel=0.1)
    assert float(jnp.std(models.W1)) == pytest.approx(1.0, rel=0.1)  # sqrt(6 / (3 * 2))
    np.testing.assert_allclose(jnp.sum(models.w2**2, axis=1), 1.0, rtol=1e-12)
    assert not np.asarray(models.b2).any()


def test_weights_are_those_of_the_stated_draws():
    models = gaussian_self_attention(np.random.default_rng(5), 2, 3, 4, 2, 5, 7, size=1.7, rows=3)
    draw = np.random.default_rng(5)
    for k in range(2):
        queries = 1.7 * draw.standard_normal((2, 2, 4))
        for name, matrix in zip(("W_Q", "W_K"), queries, strict=True):
            padded = np.vstack([matrix, np.zeros((1, 4))])
            np.testing.assert_allclose(getattr(models, name)[k], padded, rtol=1e-14)
        np.testing.assert_array_equal(models.W_V[k], draw.standard_normal((5, 4)))
        W1 = draw.standard_normal((15, 7)) * (6 / 15) ** 0.5
        np.testing.assert_allclose(models.W1[k], W1, rtol=1e-14)
        w2 = draw.choice([-1.0, 1.0], 7) / 7**0.5
        np.testing.assert_allclose(models.w2[k], w2, rtol=1e-14)
    np.testing.assert_array_equal(models.b2, [0.0, 0.0])
