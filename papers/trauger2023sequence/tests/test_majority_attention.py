import jax
import jax.numpy as jnp
import numpy as np
import pytest

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


def test_total_counts_every_parameter_once():
    model = shaken()
    flat = np.concatenate([np.ravel(a) for a in jax.tree.leaves(model)])
    np.testing.assert_allclose(total_absolute_weight(model), np.abs(flat).sum(), rtol=1e2 * EPS)


def test_empty_sizes_are_refused():
    with pytest.raises(UserError, match="at least 1 of each"):
        make_majority_attention(jax.random.key(0), heads=0)
