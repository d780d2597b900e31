import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.fixed_attention import (
    EuclideanAttention,
    SoftmaxAttention,
    TopAttention,
    UniformAttention,
)


def test_top_of_a_softmax_keeps_the_largest_weights():
    draw = np.random.default_rng(0)
    matrix, x = draw.normal(size=(6, 6)), draw.normal(size=6)
    logits = matrix @ x / 0.5
    weights = np.exp(logits) / np.exp(logits).sum()
    found = SoftmaxAttention(jnp.asarray(matrix), temperature=0.5)
    # Six products and a softmax of logits of size ten.
    assert np.allclose(found(jnp.asarray(x)), weights, rtol=200 * np.finfo(float).eps)
    top = np.asarray(TopAttention(found, 2)(jnp.asarray(x)))
    kept = np.argsort(weights)[-2:]
    expected = np.zeros(6)
    expected[kept] = weights[kept] / weights[kept].sum()
    assert np.allclose(top, expected, rtol=200 * np.finfo(float).eps, atol=0)


def test_weights_of_any_sum_keep_it_and_have_norm_one_where_asked():
    x = jnp.array([0.5, 3.0, 1.5, 2.0, -1.0])
    np.testing.assert_allclose(UniformAttention()(x), [0.2] * 5, rtol=1e-15)
    top = TopAttention(lambda x: x, 2)(x)
    # 3 and 2 times the sum of all, 6, over theirs.
    np.testing.assert_allclose(top, [0.0, 3.6, 0.0, 2.4, 0.0], rtol=1e-14)
    np.testing.assert_allclose(TopAttention(lambda x: x, 5)(x), x, rtol=1e-14)
    unit = EuclideanAttention(lambda x: x)(jnp.array([2.0, -3.0, 6.0]))
    np.testing.assert_allclose(unit, [2 / 7, -3 / 7, 6 / 7], rtol=1e-14)
    matrix = jnp.array([[0.2, -1.0, 0.3], [0.5, 0.0, -0.4], [1.0, 2.0, 0.1]])
    found = SoftmaxAttention(matrix, temperature=2.5)(jnp.array([1.0, 3.0, -2.0]))
    powers = np.exp(np.array([0.2 - 3 - 0.6, 0.5 + 0.8, 1 + 6 - 0.2]) / 2.5)
    np.testing.assert_allclose(found, powers / sum(powers), rtol=1e-13)


def test_norms_differ_as_the_module_says():
    x = jnp.ones(9)
    assert np.isclose(np.linalg.norm(UniformAttention()(x)), 1 / 3, rtol=1e-15)
    top = TopAttention(UniformAttention(), 4)
    assert np.isclose(np.linalg.norm(EuclideanAttention(top)(x)), 1, rtol=1e-15)
    assert np.count_nonzero(top(x)) == 4


def test_unusable_settings_are_refused():
    with pytest.raises(UserError, match="s0 = 3 exceeds p = 2"):
        TopAttention(UniformAttention(), 3)(jnp.ones(2))
    with pytest.raises(UserError, match="s0 = 0"):
        TopAttention(UniformAttention(), 0)
    with pytest.raises(UserError, match=r"temperature = -1\.0"):
        SoftmaxAttention(jnp.eye(2), -1.0)
