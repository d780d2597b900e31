import jax
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.deep_self_attention import make_deep_self_attention

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


def test_softplus_reaches_every_layer():
    soft = make_deep_self_attention(jax.random.key(0), **SIZES, sharpness=5.0)
    assert [layer.sharpness for layer in soft.layers] == [5.0, 5.0]
    assert soft.readout.sharpness == 5.0


@pytest.mark.parametrize("change", [{"dimensions": ()}, {"dimensions": (3, 0)}, {"units": 0}])
def test_bad_sizes_are_refused(change):
    with pytest.raises(UserError, match="give at least one layer"):
        make_deep_self_attention(jax.random.key(0), **(SIZES | change))
