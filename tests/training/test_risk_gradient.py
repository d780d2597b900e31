"""The closed form of the risk's gradient against its definition and autodiff, for every decoder."""

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


def output(U, W, decoder, sample):
    """Phi(X) head by head and query by query, eq. (2), for complex parameters too."""
    total = 0
    for U_h, W_h in zip(U, W, strict=True):
        for t, query in enumerate(sample):
            logits = sample @ (W_h.T @ query)
            powers = np.exp(logits - logits.real.max())
            mixed = powers @ sample / powers.sum()
            if decoder is Decoder.FULL:
                total += U_h[t] @ mixed
            elif decoder is Decoder.POOLED or t == len(sample) - 1:
                total += U_h @ mixed
    return total / len(W) ** 0.5


def plain_risk(U, W, decoder, X, y, weights):
    margins = y * np.array([output(U, W, decoder, sample) for sample in X])
    return np.mean(weights * np.log1p(np.exp(-margins)))


def by_complex_step(U, W, *data):
    """Risk and gradient from Im f(x + i h) / h, which loses no digit."""
    slopes = [np.zeros_like(U), np.zeros_like(W)]
    for k, slope in enumerate(slopes):
        for index in np.ndindex(slope.shape):
            moved = [U.astype(complex), W.astype(complex)]
            moved[k][index] += 1e-30j
            slope[index] = plain_risk(*moved, *data).imag / 1e-30
    return plain_risk(U, W, *data), *slopes


def drawn(decoder, *stack, heads=3, samples=2, tokens=4, d=5):
    """Models, samples, labels and weights; a common part of the logits would overflow alone."""
    draw = np.random.default_rng(1)
    U = draw.normal(size=(*stack, heads, *[tokens] * (decoder is Decoder.FULL), d))
    W = draw.normal(size=(*stack, heads, d, d))
    X = draw.normal(size=(samples, tokens, d))
    W[..., 0, :] *= 0.03
    W[..., 0, 0] = 1.0
    X[..., 0], U[..., 0] = 30.0, 0.01 * U[..., 0]
    return U, W, X, np.array([1.0, -1.0]), np.array([0.7, 1.9])


CLOSE = {"rtol": 0, "atol": 1e-11}
"""Logits of 900 have a rounding of 1e-13, which features of 30 carry into the gradient."""


def of_arrays(decoder):
    def numbers(U, W, X, y, weights):
        value, slope = risk_gradient(MultiHead(U, W, decoder), X, y, weights)
        assert slope.decoder is decoder
        return value, slope.U, slope.W

    return numbers


@pytest.mark.parametrize("columns", [1, 1000], ids=["side by side", "one by one"])
@pytest.mark.parametrize("decoder", list(Decoder))
def test_both_forms_have_the_risk_and_gradient_of_the_definition(monkeypatch, decoder, columns):
    monkeypatch.setattr("attlas.training.risk_gradient._NARROW", columns)
    U, W, X, y, weights = drawn(decoder, 2)
    several = np.array([[1.3, 0.2], weights])
    stacked = jax.jit(jax.vmap(of_arrays(decoder), (0, 0, None, None, 0)))
    computed = stacked(*map(jnp.asarray, (U, W, X, y, several)))
    for k in range(2):
        expected = by_complex_step(U[k], W[k], decoder, X, y, several[k])
        for exact, found in zip(expected, computed, strict=True):
            np.testing.assert_allclose(found[k], exact, **CLOSE)


def test_attention_to_one_token_alone_overflows_nowhere(monkeypatch):
    monkeypatch.setattr("attlas.training.risk_gradient._NARROW", 1)
    U, W, X, y, weights = drawn(Decoder.LAST)
    numbers = jax.jit(of_arrays(Decoder.LAST))
    computed = numbers(*map(jnp.asarray, (U, 300 * W, X, y, weights)))
    expected = by_complex_step(U, 300 * W, Decoder.LAST, X, y, weights)
    for exact, found in zip(expected, computed, strict=True):
        np.testing.assert_allclose(found, exact, **CLOSE)


@pytest.mark.parametrize("decoder", list(Decoder))
def test_outputs_are_those_of_the_definition(decoder):
    U, W, X, _, _ = drawn(decoder)
    found = model_outputs(MultiHead(jnp.asarray(U), jnp.asarray(W), decoder), jnp.asarray(X))
    np.testing.assert_allclose(found, [output(U, W, decoder, x) for x in X], **CLOSE)


def test_maps_within_maps_and_models_with_samples_of_their_own():
    U, W, X, y, weights = drawn(Decoder.LAST, 2, 3)
    several = np.array([weights, 2 * weights, [0.0, 1.0]])
    numbers = of_arrays(Decoder.LAST)
    inner = jax.vmap(numbers, (0, 0, None, None, 0))
    outer = jax.jit(jax.vmap(inner, (0, 0, None, None, None)))
    computed = outer(*map(jnp.asarray, (U, W, X, y, several)))
    for at in ((0, 2), (1, 0)):
        expected = by_complex_step(U[at], W[at], Decoder.LAST, X, y, several[at[1]])
        for exact, found in zip(expected, computed, strict=True):
            np.testing.assert_allclose(found[at], exact, **CLOSE)

    samples, alone = np.stack([X, X[:, ::-1]]), (U[0, 0], W[0, 0])
    each = jax.jit(jax.vmap(numbers, (None, None, 0, None, None)))
    computed = each(*map(jnp.asarray, (*alone, samples, y, weights)))
    expected = by_complex_step(*alone, Decoder.LAST, samples[1], y, weights)
    for exact, found in zip(expected, computed, strict=True):
        np.testing.assert_allclose(found[1], exact, **CLOSE)
