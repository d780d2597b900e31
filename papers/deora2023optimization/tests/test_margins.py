"""Margins and their scalings: what each is free of."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.attention.multi_head import MultiHead, parameter_norm
from deora2023optimization.library.measures.margins import (
    decoder_margin,
    homogeneous_margin,
    margins,
    normalised_margin,
)

DRAWS = np.random.default_rng(4)
MODEL = MultiHead(
    jnp.asarray(DRAWS.standard_normal((2, 3, 2))), jnp.asarray(DRAWS.standard_normal((2, 2, 2)))
)
X = jnp.asarray(DRAWS.standard_normal((5, 3, 2)))
y = jnp.array([1.0, -1.0, 1.0, -1.0, 1.0])


@pytest.mark.thorough
def test_margin_at_a_norm_is_the_models_own_there():
    scaled = jax.tree.map(lambda leaf: leaf * (jnp.sqrt(2.0) / parameter_norm(MODEL)), MODEL)
    found = normalised_margin(MODEL, X, y)
    one_by_one = min(float(label * scaled(x)) for x, label in zip(X, y, strict=True))
    assert np.isclose(float(found), one_by_one, rtol=1e-12)
    twice = jax.tree.map(lambda leaf: 2 * leaf, MODEL)
    assert np.isclose(float(normalised_margin(twice, X, y)), float(found), rtol=1e-12)
    # Attention is homogeneous in no order: a power of the norm does not undo the scale.
    for order in (1.0, 2.0, 3.0):
        ratio = homogeneous_margin(twice, X, y, order) / homogeneous_margin(MODEL, X, y, order)
        assert abs(float(ratio) - 1) > 1e-3


def test_decoder_margin_is_free_of_the_decoders_scale():
    louder = MultiHead(3 * MODEL.U, MODEL.W)
    assert np.isclose(
        float(decoder_margin(louder, X, y)), float(decoder_margin(MODEL, X, y)), rtol=1e-12
    )
    expected = float(jnp.min(margins(MODEL, X, y))) / float(jnp.sqrt(jnp.sum(MODEL.U**2)))
    assert np.isclose(float(decoder_margin(MODEL, X, y)), expected, rtol=1e-12)


def test_zero_parameters_have_no_margin_at_a_norm():
    nothing = jax.tree.map(jnp.zeros_like, MODEL)
    assert np.isnan(float(normalised_margin(nothing, X, y)))
    assert margins(nothing, X, y).tolist() == [0.0] * 5


def test_a_norm_is_positive():
    with pytest.raises(UserError, match="positive"):
        normalised_margin(MODEL, X, y, norm=0.0)


@pytest.mark.parametrize("order", [1.0, 3.0])
def test_the_homogeneous_margin_by_loops(order):
    outputs = []
    for x in np.asarray(X):
        total = 0.0
        for u, w in zip(np.asarray(MODEL.U), np.asarray(MODEL.W), strict=True):
            weights = np.exp(x @ w @ x.T)
            total += np.sum(u * (weights / weights.sum(axis=1, keepdims=True) @ x))
        outputs.append(total / np.sqrt(2))
    norm = np.sqrt(np.sum(np.asarray(MODEL.U) ** 2) + np.sum(np.asarray(MODEL.W) ** 2))
    least = min(np.asarray(y) * outputs)
    found = homogeneous_margin(MODEL, X, y, order)
    np.testing.assert_allclose(found, least / norm**order, rtol=1e-12)
