"""The closed form of the risk's gradient against autodiff, for every decoder."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.losses.empirical_risk import empirical_risk
from attlas.losses.margin_loss import margin_loss
from attlas.models.attention.multi_head import Decoder, MultiHead, make_multi_head
from attlas.training.risk_gradient import model_outputs, risk_gradient

DRAW = np.random.default_rng(0)
X = jnp.asarray(DRAW.standard_normal((5, 4, 3)))
Y = jnp.asarray([1.0, -1, 1, 1, -1])
WEIGHTS = jnp.asarray([1.0, 0, 1, 2, 1])


def random_model(decoder):
    zero = make_multi_head(2, 4, 3, decoder)
    return jax.tree.map(lambda a: jnp.asarray(DRAW.standard_normal(a.shape)), zero)


@pytest.mark.thorough
@pytest.mark.parametrize("decoder", list(Decoder))
def test_closed_form_is_the_gradient(decoder):
    model = random_model(decoder)
    risk = jax.value_and_grad(
        lambda m: empirical_risk(m, X, Y, margin_loss("logistic").value, WEIGHTS)
    )

    (value, slope), (expected, autodiff) = risk_gradient(model, X, Y, WEIGHTS), risk(model)

    # Sums of 240 products of normal numbers, in two orders.
    assert abs(float(value - expected)) < 1e-14
    for a, b in zip(jax.tree.leaves(slope), jax.tree.leaves(autodiff), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)
    np.testing.assert_allclose(model_outputs(model, X), jax.vmap(model)(X), rtol=0, atol=1e-13)


def test_single_precision_stays_single():
    model, data, y, w = jax.tree.map(
        lambda a: a.astype(jnp.float32), (random_model(Decoder.FULL), X, Y, WEIGHTS)
    )
    value, slope = risk_gradient(model, data, y, w, "exponential")
    assert {a.dtype for a in jax.tree.leaves((value, slope))} == {jnp.dtype(jnp.float32)}
    assert isinstance(slope, MultiHead)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("decoder", "axes"),
    [
        *((decoder, (0, None, None, 0)) for decoder in Decoder),
        (Decoder.POOLED, (None, None, None, 0)),
        (Decoder.FULL, (0, 0, 0, None)),
    ],
)
def test_many_models_at_once_are_each_alone(decoder, axes):
    first, second = random_model(decoder), random_model(decoder)
    several = [
        jax.tree.map(lambda a, b: jnp.stack([a, b] * 3), first, second),
        jnp.stack([X, 2 * X] * 3),
        jnp.stack([Y, -Y] * 3),
        jnp.stack([WEIGHTS, 2 * WEIGHTS] * 3),
    ]
    alone = [(first, second), (X, 2 * X), (Y, -Y), (WEIGHTS, 2 * WEIGHTS)]
    given = [
        many if axis == 0 else one[0] for many, one, axis in zip(several, alone, axes, strict=True)
    ]

    found = jax.jit(jax.vmap(risk_gradient, axes))(*given)

    for k in range(2):
        expected = jax.value_and_grad(
            lambda m, X, y, w: empirical_risk(m, X, y, margin_loss("logistic").value, w)
        )(*(one[k if axis == 0 else 0] for one, axis in zip(alone, axes, strict=True)))
        # Sums of 240 products of normal numbers, up to twice as large, in two orders.
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(a[k], b, rtol=0, atol=1e-13)
