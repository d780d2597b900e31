"""A trained model on one word, repeated: what Gu et al. (2025) prove of it holds exactly."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.transformers.forward import attention_input, attention_weights, rotate
from attlas.transformers.load_model import load_model
from attlas_audit.library.softmax_weights import repeated_token_ceiling

T = 40


@pytest.fixture(scope="module")
def model(data_dir):
    return load_model(data_dir / "stories260k", dtype="float64")


def test_hidden_rows_agree_at_every_position(model):
    rows = np.asarray(model.hidden(np.full(T, 403)))
    spread = np.abs(rows - rows[:, :1]).max()
    # a mean of equal rows is that row up to the rounding of a sum of T weights, in each layer
    assert spread <= 20 * T * np.finfo(float).eps * np.abs(rows).max()


@pytest.mark.thorough
def test_no_weight_exceeds_the_ceiling_of_rotary_positions(model):
    x = model.embed(np.full(T, 403))
    largest_share = 0.0
    for index in range(model.layers):
        layer = model.layer(index)
        read, attention = attention_input(layer, x), layer.attention
        weights = np.asarray(attention_weights(attention, read))
        queries = jnp.einsum("td,hdk->htk", read, attention.W_Q)
        keys = jnp.einsum("td,gdk->gtk", read, attention.W_K)[jnp.array(attention.group)]
        lengths = jnp.linalg.norm(queries, axis=-1) * jnp.linalg.norm(keys, axis=-1)
        np.testing.assert_allclose(
            jnp.linalg.norm(rotate(attention.rotary, queries), axis=-1),
            jnp.linalg.norm(queries, axis=-1),
            rtol=1e-12,
        )
        radius = np.asarray(attention.scale * lengths)[:, 0]
        for seen in range(1, T + 1):
            ceiling = np.asarray(repeated_token_ceiling(radius, float(seen)))
            share = weights[:, seen - 1].max(axis=-1) / ceiling
            largest_share = max(largest_share, float(share.max()))
            assert np.all(share <= 1 + 1e-12)
        x = model.hidden(np.full(T, 403))[index + 1]
    assert largest_share == pytest.approx(1.0)  # one visible token has weight 1, the ceiling
