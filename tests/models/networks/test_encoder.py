import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.models.networks.encoder import make_encoder

SIZES = {"width": 12, "blocks": 2, "heads": 3, "hidden": 7}


def _dropped(x, rate, key):
    """Entries that are left out with a rate; the others grow so that the mean stays."""
    if key is None:
        return x
    return np.asarray(jax.random.bernoulli(key, 1 - rate, np.shape(x))) * x / (1 - rate)


def _norm(x, scale):
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-5) * np.asarray(scale)


def _reference(model, tokens, mask, key=None, rate=0.0):
    """The encoder written with NumPy loops over heads; the last block at the first position."""
    erf = np.vectorize(math.erf)
    embedded = np.asarray(model.embedding)[np.asarray(tokens)]
    x = np.concatenate([np.asarray(model.start)[None], embedded]) + np.asarray(model.positions)
    seen = np.concatenate([[True], np.asarray(mask)])
    keys = [None] * 3 if key is None else jax.random.split(key, 3)
    x = _dropped(x, rate, keys[0])
    for block, block_key in zip(model.blocks, keys[1:], strict=True):
        four = [None] * 4 if key is None else jax.random.split(block_key, 4)
        asked = x[:1] if block is model.blocks[-1] else x
        maps, values = [], []
        for head in range(3):
            part = slice(head * 4, head * 4 + 4)
            q, k, v = (
                a @ np.asarray(w)[:, part]
                for a, w in ((asked, block.query), (x, block.key), (x, block.value))
            )
            weights = np.exp(q @ k.T / 2) * seen
            maps.append(weights / weights.sum(axis=1, keepdims=True))
            values.append(v)
        mixed = [
            m @ v for m, v in zip(_dropped(np.array(maps), rate, four[0]), values, strict=True)
        ]
        mixed = np.concatenate(mixed, axis=1) @ np.asarray(block.output)
        h = _norm(asked + _dropped(mixed, rate, four[1]), block.scales[0])
        hidden = h @ np.asarray(block.up)
        hidden = _dropped(hidden * (1 + erf(hidden / np.sqrt(2))) / 2, rate, four[2])
        x = _norm(h + _dropped(hidden @ np.asarray(block.down), rate, four[3]), block.scales[1])
    return x[0] @ np.asarray(model.readout)


@pytest.mark.parametrize("key", [None, 8])
def test_logit_agrees_with_a_plain_computation(key):
    """Without dropout and with it, for layer norms of different scales."""
    model = make_encoder(jax.random.key(0), 7, 5, **SIZES, dropout=0.3)
    scales = np.random.default_rng(1).uniform(0.5, 1.5, (2, 2, 12))
    model = eqx.tree_at(lambda m: [block.scales for block in m.blocks], model, [*scales])
    model = jax.tree.map(jnp.asarray, model)
    tokens = jnp.array([1, 6, 2, 0, 0])
    mask = jnp.arange(5) < 3
    key = None if key is None else jax.random.key(key)
    expected = _reference(model, tokens, mask, key, 0.3)
    # 5 positions, width 12, two blocks: a few hundred roundings of numbers of size one.
    assert (
        abs(float(eqx.filter_jit(model)(tokens, mask, key)) - expected) < 500 * np.finfo(float).eps
    )


def test_the_start_is_drawn_from_keys_that_differ():
    model = make_encoder(jax.random.key(3), 7, 5, **SIZES, deviation=0.2)
    first, second, third, fourth, *blocks = jax.random.split(jax.random.key(3), 6)
    gaussian = {"embedding": (first, (7, 12), 1), "start": (second, (12,), 0.2)}
    for name, (key, shape, scale) in (gaussian | {"positions": (third, (6, 12), 0.2)}).items():
        wanted = scale * np.asarray(jax.random.normal(key, shape))
        np.testing.assert_allclose(getattr(model, name), wanted, rtol=1e-15)

    def uniform(key, shape):
        """Between -+ 1 / sqrt(fan-in)."""
        return np.asarray(jax.random.uniform(key, shape, minval=-1)) / np.sqrt(shape[0])

    close = {"rtol": 1e-14, "atol": 1e-16}
    np.testing.assert_allclose(model.readout, uniform(fourth, (12, 1))[:, 0], **close)
    for key, block in zip(blocks, model.blocks, strict=True):
        names = ("query", "key", "value", "output", "up", "down")
        for one, name in zip(jax.random.split(key, 6), names, strict=True):
            matrix = getattr(block, name)
            np.testing.assert_allclose(matrix, uniform(one, matrix.shape), **close)
        assert block.scales.tolist() == np.ones((2, 12)).tolist()
        assert (block.up.shape, block.down.shape) == ((12, 7), (7, 12))


@pytest.mark.thorough
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


@pytest.mark.thorough
def test_float32_stays_float32():
    model = make_encoder(jax.random.key(0), 7, 5, **SIZES, dtype=jnp.float32)
    assert model(jnp.arange(5), jnp.ones(5, bool)).dtype == jnp.float32
    arrays = eqx.filter(model, eqx.is_array)
    assert {leaf.dtype for leaf in jax.tree.leaves(arrays)} == {jnp.dtype("float32")}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"heads": 5}, "5 heads do not divide width 12"),
        ({"blocks": 0}, "blocks = 0"),
        ({"dropout": 1.0}, "dropout = 1.0"),
    ],
)
def test_bad_sizes_are_refused(change, said):
    with pytest.raises(UserError, match=said):
        make_encoder(jax.random.key(0), 7, 5, **(SIZES | change))
