import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.networks.encoder import make_encoder

SIZES = {"width": 4, "blocks": 2, "heads": 2, "hidden": 6}


def _reference(model, tokens, mask):
    """The encoder written with NumPy loops over heads, all positions in every block."""
    erf = np.vectorize(math.erf)

    def norm(x, scale):
        centred = x - x.mean(axis=1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * scale

    embedded = np.asarray(model.embedding)[np.asarray(tokens)]
    x = np.concatenate([np.asarray(model.start)[None], embedded]) + np.asarray(model.positions)
    seen = np.concatenate([[True], np.asarray(mask)])
    for block in model.blocks:
        parts = []
        for head in range(block.heads):
            part = slice(head * 2, head * 2 + 2)
            q, k, v = (x @ np.asarray(w)[:, part] for w in (block.query, block.key, block.value))
            weights = np.exp(q @ k.T / np.sqrt(2)) * seen
            parts.append(weights / weights.sum(axis=1, keepdims=True) @ v)
        h = norm(
            x + np.concatenate(parts, axis=1) @ np.asarray(block.output),
            np.asarray(block.scales[0]),
        )
        hidden = h @ np.asarray(block.up)
        hidden = hidden * (1 + erf(hidden / np.sqrt(2))) / 2
        x = norm(h + hidden @ np.asarray(block.down), np.asarray(block.scales[1]))
    return x[0] @ np.asarray(model.readout)


def test_logit_agrees_with_a_plain_computation():
    model = make_encoder(jax.random.key(0), 7, 5, **SIZES)
    tokens = jnp.array([1, 6, 2, 0, 0])
    mask = jnp.arange(5) < 3
    expected = _reference(model, tokens, mask)
    # 5 positions, width 4, two blocks: a few hundred roundings of numbers of size one.
    assert abs(float(model(tokens, mask)) - expected) < 500 * np.finfo(float).eps


def test_padding_is_not_seen():
    model = make_encoder(jax.random.key(1), 7, 5, **SIZES)
    mask = jnp.arange(5) < 3
    one, other = jnp.array([1, 6, 2, 0, 0]), jnp.array([1, 6, 2, 5, 4])
    assert float(model(one, mask)) == float(model(other, mask))
    for weights in model.attention(one, mask):
        assert float(jnp.max(weights[:, :, 4:])) == 0
        assert np.allclose(np.sum(weights, axis=2), 1, rtol=1e-14)


def test_continuous_tokens_select_rows_when_one_hot():
    model = make_encoder(jax.random.key(2), 7, 5, **SIZES)
    tokens, mask = jnp.array([1, 6, 2, 3, 0]), jnp.ones(5, bool)
    continuous = model(jax.nn.one_hot(tokens, 7), mask)
    assert np.isclose(float(model(tokens, mask)), float(continuous), rtol=1e-13)


def test_dropout_is_random_and_its_mean_embedding_is_unchanged():
    model = make_encoder(jax.random.key(3), 7, 5, **SIZES, dropout=0.3)
    tokens, mask = jnp.arange(5), jnp.ones(5, bool)
    run = eqx.filter_jit(lambda keys: jax.vmap(lambda k: model(tokens, mask, k))(keys))
    logits = run(jax.random.split(jax.random.key(0), 64))
    assert len(np.unique(logits)) > 60
    assert float(model(tokens, mask)) == float(model(tokens, mask))


def test_float32_stays_float32():
    model = make_encoder(jax.random.key(0), 7, 5, **SIZES, dtype=jnp.float32)
    assert model(jnp.arange(5), jnp.ones(5, bool)).dtype == jnp.float32
    arrays = eqx.filter(model, eqx.is_array)
    assert {leaf.dtype for leaf in jax.tree.leaves(arrays)} == {jnp.dtype("float32")}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"heads": 3}, "3 heads do not divide width 4"),
        ({"blocks": 0}, "blocks = 0"),
        ({"dropout": 1.0}, "dropout = 1.0"),
    ],
)
def test_bad_sizes_are_refused(change, said):
    with pytest.raises(UserError, match=said):
        make_encoder(jax.random.key(0), 7, 5, **(SIZES | change))
