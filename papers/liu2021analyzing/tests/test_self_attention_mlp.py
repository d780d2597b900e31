import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.models.self_attention_mlp import make_self_attention_mlp

SIZES = {"p": 4, "t": 3, "d_q": 2, "d_v": 5, "d": 6}


def _reference(model, x):
    """The model word by word, as section 2 of the paper spells it."""
    W_Q, W_K, W_V, W1, w2 = (np.asarray(a) for a in jax.tree.leaves(model)[:5])
    p = x.shape[1]
    attended, columns = [], []
    for z in range(p):
        logits = np.array([(W_Q @ x[:, z]) @ (W_K @ x[:, j]) for j in range(p)])
        weights = np.exp(logits / np.sqrt(W_Q.shape[0]) / model.temperature)
        columns.append(weights / weights.sum())
        attended.append(sum(columns[z][j] * (W_V @ x[:, j]) for j in range(p)))
    hidden = np.maximum(sum(v @ W1[z * 5 : z * 5 + 5] for z, v in enumerate(attended)), 0)
    return np.array(columns).T, np.array(attended).T, w2 @ hidden


@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_output_agrees_with_a_plain_computation(temperature):
    model = make_self_attention_mlp(jax.random.key(0), **SIZES, temperature=temperature)
    x = np.random.default_rng(0).normal(size=(3, 4))
    weights, attended, output = _reference(model, x)
    # Some dozens of roundings of numbers of size one, logits multiplied by at most five.
    room = 500 * np.finfo(float).eps
    assert np.max(np.abs(np.asarray(model.attention(jnp.asarray(x))) - weights)) < room
    assert np.max(np.abs(np.asarray(model.attended(jnp.asarray(x))) - attended)) < room
    assert abs(float(model(jnp.asarray(x))) - output) < room


def test_a_colder_softmax_is_more_concentrated():
    x = jnp.asarray(np.random.default_rng(1).normal(size=(3, 4)))
    warm = make_self_attention_mlp(jax.random.key(0), **SIZES)
    cold = dataclasses.replace(warm, temperature=0.2)
    largest = [np.max(m.attention(x), axis=0) for m in (warm, cold)]
    assert np.all(largest[1] > largest[0])


def test_equal_weights_are_equal_and_biases_move_the_output():
    x = jnp.asarray(np.random.default_rng(2).normal(size=(3, 4)))
    model = make_self_attention_mlp(jax.random.key(0), **SIZES, equal_weights=True, biases=True)
    assert np.array_equal(model.attention(x), np.full((4, 4), 0.25))
    mean = np.asarray(model.W_V @ jnp.mean(x, axis=1, keepdims=True))
    # Sums of four and three numbers of size one.
    assert np.max(np.abs(np.asarray(model.attended(x)) - mean)) < 50 * np.finfo(float).eps
    moved = dataclasses.replace(model, b2=jnp.array(2.0))
    assert np.isclose(float(moved(x)), float(model(x)) + 2, rtol=1e-14)


def test_units_and_outputs_have_biases_and_a_softplus_where_asked():
    rng = np.random.default_rng(4)
    model = make_self_attention_mlp(jax.random.key(0), **SIZES, biases=True, sharpness=3.0)
    assert not np.any(model.b1)
    b1, b2 = rng.normal(size=6), rng.normal()
    model = dataclasses.replace(model, b1=jnp.asarray(b1), b2=jnp.asarray(b2))
    x = rng.normal(size=(3, 4))
    z = _reference(model, x)[1].T.ravel() @ np.asarray(model.W1) + b1
    units = np.log(1 + np.exp(3 * z)) / 3
    np.testing.assert_allclose(model.features(jnp.asarray(x)), units, rtol=1e-11)
    np.testing.assert_allclose(model(jnp.asarray(x)), units @ np.asarray(model.w2) + b2, rtol=1e-11)


@pytest.mark.thorough
def test_float32_stays_float32():
    model = make_self_attention_mlp(jax.random.key(0), **SIZES, dtype=jnp.float32)
    assert model(jnp.ones((3, 4), jnp.float32)).dtype == jnp.float32


@pytest.mark.parametrize(
    ("change", "said"),
    [({"d_v": 0}, "d_v = 0"), ({"temperature": 0.0}, "temperature = 0.0"), ({"p": -1}, "p = -1")],
)
def test_bad_sizes_are_refused(change, said):
    with pytest.raises(UserError, match=said):
        make_self_attention_mlp(jax.random.key(0), **(SIZES | change))


def test_entries_start_within_xaviers_limits():
    """sqrt(6 / (m + n)) bounds each matrix of sizes m and n, and many draws come near it."""
    keys = jax.random.split(jax.random.key(7), 100)
    model = jax.jit(
        jax.vmap(lambda key: make_self_attention_mlp(key, p=4, t=2, d_q=5, d_v=3, d=3))
    )(keys)
    pairs = ((model.W_Q, 5 + 2), (model.W_K, 5 + 2), (model.W_V, 3 + 2))
    for matrix, size in (*pairs, (model.W1, 12 + 3), (model.w2, 3 + 1)):
        limit = np.sqrt(6 / size)
        assert 0.97 * limit < float(abs(matrix).max()) <= limit
