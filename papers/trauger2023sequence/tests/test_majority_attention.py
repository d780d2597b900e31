import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from trauger2023sequence.library.models.majority_attention import (
    make_majority_attention,
    total_absolute_weight,
)

EPS = float(np.finfo(float).eps)


def shaken(seed=0):
    """A model whose biases are not zero either."""
    model = make_majority_attention(jax.random.key(seed), 5, 2, 3, "float64")
    draw = np.random.default_rng(seed)
    return jax.tree.map(lambda a: a + 0.3 * draw.normal(size=a.shape), model)


def test_logits_are_those_of_attention_written_head_by_head():
    model = shaken()
    parts = [jax.tree.map(np.asarray, part) for part in (model.query, model.key, model.value)]
    X = np.random.default_rng(1).normal(size=(4, 5))
    total = np.array(model.output[1])
    for h in range(2):
        Q, K, V = (X @ kernel[:, h] + bias[h] for kernel, bias in parts)
        weights = np.exp(Q[-1] @ K.T / np.sqrt(3))
        total += (weights / weights.sum()) @ V @ np.asarray(model.output[0][h])
    wide = np.maximum(total, 0) @ np.asarray(model.dense[0]) + np.asarray(model.dense[1])
    logits = wide @ np.asarray(model.readout[0]) + np.asarray(model.readout[1])
    np.testing.assert_allclose(model(jnp.asarray(X)), logits, rtol=1e3 * EPS, atol=1e3 * EPS)


def test_start_has_the_ranges_of_the_released_layers():
    model = make_majority_attention(jax.random.key(0))
    for (kernel, bias), fans in (
        (model.query, 64 * (2 + 64)),
        (model.value, 64 * (2 + 64)),
        (model.output, 2 * (64 + 64)),
        (model.dense, 64 + 64),
    ):
        limit = np.sqrt(6 / fans)
        # The largest of 4096 or more uniform draws is over 0.99 of the limit.
        assert 0.99 * limit < np.abs(np.asarray(kernel)).max() <= limit * (1 + 1e-6)
        assert not jnp.any(bias)
    # 128 normal draws: four standard deviations of their spread.
    assert abs(np.std(np.asarray(model.readout[0])) / 0.05 - 1) < 4 / np.sqrt(2 * 128)


def test_kernels_are_the_stream_of_the_key_in_order():
    model = make_majority_attention(jax.random.key(7), 5, 2, 3, "float64")
    draw = generator(jax.random.key(7))
    # Keras' fans (a, b, c) -> (a b, a c): 5 * (2 + 3), 2 * (3 + 5), and 5 + 5 of a matrix.
    drawn = [np.sqrt(6 / 25) * (2 * draw.random((5, 2, 3)) - 1) for _ in range(3)]
    readout = 0.05 * draw.normal(size=(5, 2))
    drawn.append(np.sqrt(6 / 16) * (2 * draw.random((2, 3, 5)) - 1))
    drawn.append(np.sqrt(6 / 10) * (2 * draw.random((5, 5)) - 1))
    drawn.append(readout)
    biases = [(2, 3), (2, 3), (2, 3), (5,), (5,), (2,)]
    parts = (model.query, model.key, model.value, model.output, model.dense, model.readout)
    for (kernel, bias), expected, shape in zip(parts, drawn, biases, strict=True):
        np.testing.assert_allclose(kernel, expected, rtol=1e-14, atol=1e-16)
        np.testing.assert_array_equal(bias, np.zeros(shape))


def test_total_counts_every_parameter_once():
    model = shaken()
    flat = np.concatenate([np.ravel(a) for a in jax.tree.leaves(model)])
    np.testing.assert_allclose(total_absolute_weight(model), np.abs(flat).sum(), rtol=1e2 * EPS)


def test_empty_sizes_are_refused():
    with pytest.raises(UserError, match="at least 1 of each"):
        make_majority_attention(jax.random.key(0), heads=0)
