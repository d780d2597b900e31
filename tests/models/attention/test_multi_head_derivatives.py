"""Lemma 1's closed forms against automatic differentiation, for every decoder."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.models.attention.multi_head_derivatives import (
    hessian_form,
    mixed_derivative,
    model_gradient,
    model_hessian,
    second_derivative,
)

T, D = 4, 3
EPS = np.finfo(float).eps


def draw(heads, decoder, seed=0):
    """Tokens, a model with logits of size a few, and a direction of the same structure."""
    rng = np.random.default_rng(seed)
    shape = (heads, T, D) if decoder is Decoder.FULL else (heads, D)
    parts = [
        MultiHead(
            jnp.asarray(rng.normal(size=shape)),
            jnp.asarray(rng.normal(size=(heads, D, D))),
            decoder,
        )
        for _ in range(2)
    ]
    return jnp.asarray(rng.normal(size=(T, D))), *parts


def close(ours, other):
    """Sums of at most T T d d H terms, a softmax and its derivatives: rounding of that many."""
    size = max(1.0, float(jnp.max(jnp.abs(other))))
    return float(jnp.max(jnp.abs(ours - other))) <= 16 * T * T * D * EPS * size


@pytest.mark.thorough
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("decoder", list(Decoder))
def test_gradient_and_hessian(decoder, heads):
    X, model, direction = draw(heads, decoder)
    flat, unravel = ravel_pytree(model)

    @jax.jit
    def automatic(flat):
        def value(flat):
            return unravel(flat)(X)

        return jax.grad(value)(flat), jax.hessian(value)(flat)

    slope, hessian = automatic(flat)
    gradient = jax.jit(model_gradient)(model, X)
    assert gradient.decoder is decoder
    assert close(ravel_pytree(gradient)[0], slope)
    assert close(jax.jit(model_hessian)(model, X), hessian)
    along = ravel_pytree(direction)[0]
    form = along @ hessian @ along
    assert abs(hessian_form(model, X, direction) - form) <= 16 * T * T * D * EPS * float(
        jnp.abs(along) @ jnp.abs(hessian) @ jnp.abs(along)
    )


def test_mixed_and_second_derivative():
    X, model, _ = draw(1, Decoder.FULL, seed=1)
    U, W = model.U[0], model.W[0]
    rng = np.random.default_rng(2)
    a, b, c = (jnp.asarray(rng.normal(size=size)) for size in (T, D, D))

    def phi(U, W):
        return MultiHead(U[None], W[None])(X)

    mixed = jax.jit(jax.jacrev(lambda W: a @ jax.grad(phi)(U, W) @ b))(W)
    second = jax.jit(jax.jacfwd(lambda W: c @ jax.grad(phi, argnums=1)(U, W) @ b))(W)
    assert close(mixed_derivative(W, X, a, b), mixed)
    assert close(second_derivative(U, W, X, c, b), second)


def test_large_logits_stay_finite():
    X, model, direction = draw(2, Decoder.FULL)
    model = MultiHead(model.U, 1e6 * model.W)
    assert jnp.all(jnp.isfinite(model_hessian(model, X)))
    assert jnp.isfinite(hessian_form(model, X, direction))
