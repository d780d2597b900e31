"""The multi-head model against its formula written out, and its sizes."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.attention.multi_head import (
    Decoder,
    MultiHead,
    head_norms,
    make_multi_head,
    parameter_norm,
)

H, T, D = 2, 3, 4


def draw(decoder):
    rng = np.random.default_rng(7)
    U = rng.normal(size=(H, T, D) if decoder is Decoder.FULL else (H, D))
    return U, rng.normal(size=(H, D, D)), rng.normal(size=(T, D))


@pytest.mark.parametrize("decoder", list(Decoder))
def test_against_loops(decoder):
    U, W, X = draw(decoder)
    total = 0.0
    for h in range(H):
        for t in range(T):
            scores = [np.exp(X[t] @ W[h] @ X[s]) for s in range(T)]
            token = sum(w * x for w, x in zip(scores, X, strict=True)) / sum(scores)
            if decoder is Decoder.FULL:
                total += U[h, t] @ token
            elif decoder is Decoder.POOLED or t == T - 1:
                total += U[h] @ token
    model = MultiHead(jnp.asarray(U), jnp.asarray(W), decoder)
    full = MultiHead(model.token_decoders(T), model.W)
    # Sums of H T T d terms of size a few.
    limit = 32 * H * T * T * D * np.finfo(float).eps
    assert abs(float(model(jnp.asarray(X))) - total / np.sqrt(H)) <= limit
    assert abs(float(full(jnp.asarray(X))) - total / np.sqrt(H)) <= limit
    rows = jnp.sum(model.attention(jnp.asarray(X)), axis=-1)
    assert jnp.max(jnp.abs(rows - 1)) <= 8 * T * np.finfo(float).eps


@pytest.mark.parametrize("decoder", list(Decoder))
def test_norms_and_zero_model(decoder):
    U, W, X = draw(decoder)
    model = MultiHead(jnp.asarray(U), jnp.asarray(W), decoder)
    squares = [np.sum(U[h] ** 2) + np.sum(W[h] ** 2) for h in range(H)]
    limit = 8 * H * T * D * np.finfo(float).eps * sum(squares)
    assert np.max(np.abs(np.asarray(head_norms(model)) - np.sqrt(squares))) <= limit
    assert abs(float(parameter_norm(model)) - np.sqrt(sum(squares))) <= limit
    zero = make_multi_head(H, T, D, decoder)
    assert zero.U.shape == U.shape
    assert float(zero(jnp.asarray(X))) == 0.0


@pytest.mark.parametrize("sizes", [(0, 2, 2), (1, 0, 2), (1, 2, 0)])
def test_sizes_below_one(sizes):
    with pytest.raises(UserError, match="at least"):
        make_multi_head(*sizes)
