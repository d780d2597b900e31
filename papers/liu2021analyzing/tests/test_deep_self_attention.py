import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.deep_self_attention import (
    SelfAttentionLayer,
    make_deep_self_attention,
)

SIZES = {"p": 4, "dimensions": (3, 5, 2), "d_q": 2, "d_v": 3, "units": 6}


def _attended(layer, x):
    """Word by word; an attention matrix and the attended values."""
    W_Q, W_K, W_V = (np.asarray(a) for a in (layer.W_Q, layer.W_K, layer.W_V))
    columns = []
    for query in x.T:
        weights = np.exp([(W_Q @ query) @ (W_K @ other) / np.sqrt(2) / 0.5 for other in x.T])
        columns.append(weights / weights.sum())
    return np.array(columns).T, W_V @ x @ np.array(columns).T


@pytest.mark.thorough
def test_output_agrees_with_a_plain_computation():
    model = make_deep_self_attention(jax.random.key(0), **SIZES, temperature=0.5)
    x = np.random.default_rng(0).normal(size=(3, 4))
    maps, now = [], x
    for layer in model.layers:
        weights, values = _attended(layer, now)
        maps.append(weights)
        now = np.asarray(layer.W2) @ np.maximum(np.asarray(layer.W1).T @ values, 0)
    weights, values = _attended(model.readout, now)
    hidden = np.maximum(np.asarray(model.readout.W1).T @ values.T.ravel(), 0)
    # Three layers of about a hundred roundings of numbers of size one.
    room = 1000 * np.finfo(float).eps
    assert [layer.W2.shape for layer in model.layers] == [(5, 6), (2, 6)]
    output, found = jax.jit(lambda x: (model(x), model.attention(x)))(x)
    assert abs(float(output) - hidden @ np.asarray(model.readout.w2)) < room
    for mine, theirs in zip(found, [*maps, weights], strict=True):
        assert np.max(np.abs(np.asarray(mine) - theirs)) < room


def test_a_layer_attends_and_reads_word_by_word():
    rng = np.random.default_rng(3)
    W_Q, W_K, W_V, W1, W2, x = (
        rng.standard_normal(shape) for shape in ((3, 4), (3, 4), (2, 4), (2, 7), (6, 7), (4, 5))
    )
    layer = SelfAttentionLayer(*map(jnp.asarray, (W_Q, W_K, W_V, W1, W2)), temperature=0.7)
    weights, found = jax.jit(lambda x: (layer.attention(x), layer(x)))(x)
    for z in range(5):
        shares = np.array([np.exp((W_K @ word) @ (W_Q @ x[:, z]) / (0.7 * 3**0.5)) for word in x.T])
        shares /= sum(shares)
        np.testing.assert_allclose(weights[:, z], shares, rtol=1e-11)
        value = sum(share * (W_V @ word) for share, word in zip(shares, x.T, strict=True))
        np.testing.assert_allclose(found[:, z], W2 @ np.maximum(W1.T @ value, 0), rtol=1e-10)


def test_each_layer_reads_the_dimension_that_the_one_before_it_gives():
    def make(key):
        return make_deep_self_attention(key, p=4, dimensions=(3, 5, 2, 7), d_q=6, d_v=8, units=9)

    model = jax.eval_shape(make, jax.random.key(0))
    shapes = [[a.shape for a in (m.W_Q, m.W_K, m.W_V, m.W1, m.W2)] for m in model.layers]
    expected = [[(6, t), (6, t), (8, t), (8, 9), (k, 9)] for t, k in ((3, 5), (5, 2), (2, 7))]
    assert shapes == expected
    assert model.readout.W_Q.shape == (6, 7)
    assert model.readout.W1.shape == (32, 9)


def test_softplus_reaches_every_layer():
    soft = make_deep_self_attention(jax.random.key(0), **SIZES, sharpness=5.0)
    assert [layer.sharpness for layer in soft.layers] == [5.0, 5.0]
    assert soft.readout.sharpness == 5.0


@pytest.mark.parametrize("change", [{"dimensions": ()}, {"dimensions": (3, 0)}, {"units": 0}])
def test_bad_sizes_are_refused(change):
    with pytest.raises(UserError, match="give at least one layer"):
        make_deep_self_attention(jax.random.key(0), **(SIZES | change))
