"""The forward pass against loops over tokens and heads."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from random_transformer import random_attention, random_norm, random_transformer

from attlas.transformers.canonical import Dense, Embedding, PatchEmbedding, Readout
from attlas.transformers.forward import (
    apply_layer,
    attended,
    attention_input,
    attention_logits,
    attention_weights,
    embed,
    embed_patches,
    embed_sequences,
    head_outputs,
    read_out,
    visible,
)

DRAW = np.random.default_rng(6)
X = DRAW.normal(size=(5, 6))


def normed(norm, x):
    return x / np.sqrt((x**2).mean() + norm.eps) * np.asarray(norm.gain) + np.asarray(norm.bias)


def turned(x, angle):
    """The first two coordinates turn, the third stays."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([c * x[0] - s * x[1], s * x[0] + c * x[1], x[2]])


def by_hand(a, x):
    """Maps and the attention's sum, one pair of tokens at a time."""
    T, H = len(x), len(a.group)
    maps, total = np.zeros((H, T, T)), np.tile(np.asarray(a.b_O), (T, 1))
    frequency = 0.0 if a.rotary is None else float(a.rotary.frequencies[0])
    for h, g in enumerate(a.group):
        queries = [row @ np.asarray(a.W_Q[h]) + np.asarray(a.b_Q[h]) for row in x]
        keys = [row @ np.asarray(a.W_K[g]) + np.asarray(a.b_K[g]) for row in x]
        values = [row @ np.asarray(a.W_V[g]) + np.asarray(a.b_V[g]) for row in x]
        if a.query_norm is not None:
            queries = [normed(a.query_norm, each) for each in queries]
            keys = [normed(a.key_norm, each) for each in keys]
        for i in range(T):
            sees = [
                j
                for j in range(T)
                if (j <= i or not a.causal) and (a.window is None or i - j < a.window)
            ]
            logits = [
                a.scale * turned(queries[i], i * frequency) @ turned(keys[j], j * frequency)
                for j in sees
            ]
            weights = np.exp(logits) / np.sum(np.exp(logits))
            maps[h, i, sees] = weights
            total[i] += sum(w * values[j] for w, j in zip(weights, sees, strict=True)) @ np.asarray(
                a.W_O[h]
            )
    return maps, total


@pytest.mark.parametrize(
    "settings",
    [
        {"causal": False},
        {"H": 4},
        {"rotary": True, "norms": True, "window": 2},
    ],
)
def test_attention_agrees_with_loops(settings):
    attention = random_attention(DRAW, **settings)
    maps, total = by_hand(attention, X)
    weights = attention_weights(attention, jnp.asarray(X))
    np.testing.assert_allclose(weights, maps, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(attended(attention, weights, jnp.asarray(X)), total, rtol=1e-9)
    heads = head_outputs(attention, weights, jnp.asarray(X))
    np.testing.assert_allclose(heads.sum(axis=0) + attention.b_O[None], total, rtol=1e-9)


def test_rotary_logits_depend_on_the_distance_alone():
    attention = random_attention(DRAW, rotary=True)
    same = jnp.tile(jnp.asarray(X[:1]), (5, 1))
    logits = np.asarray(attention_logits(attention, same))[0]
    for offset in range(-4, 5):
        diagonal = np.diagonal(logits, offset)
        np.testing.assert_allclose(diagonal, diagonal[0], rtol=1e-10)
    assert abs(logits[0, 1] - logits[0, 2]) > 1e-3


def test_masks():
    window = visible(random_attention(DRAW, window=2), 4)
    expected = np.tril(np.ones((4, 4))) - np.tril(np.ones((4, 4)), -2)
    np.testing.assert_array_equal(window, expected.astype(bool))
    present = jnp.array([True, True, False])
    both = visible(random_attention(DRAW, causal=False), 3, present)
    np.testing.assert_array_equal(both, [[1, 1, 0], [1, 1, 0], [1, 0, 0]])


def _on_rows(norm):
    assert norm is not None
    return lambda rows: np.asarray(norm(jnp.asarray(rows)))


@pytest.mark.parametrize("norm_placement", ["pre-norm", "post-norm", "parallel"])
def test_layers_place_their_norms(norm_placement):
    layer = random_transformer(3, norm_placement=norm_placement).layer(0)
    first, second = map(_on_rows, (layer.attention_norm, layer.feedforward_norm))
    units = layer.feedforward

    def feed(rows):
        inner = jnp.asarray(rows @ np.asarray(units.inner.W) + np.asarray(units.inner.b))
        outer = np.asarray(jax.nn.gelu(inner, approximate=False))
        return outer @ np.asarray(units.outer.W) + np.asarray(units.outer.b)

    added = by_hand(layer.attention, X if norm_placement == "post-norm" else first(X))[1]
    if norm_placement == "post-norm":
        middle = first(X + added)
        expected = second(middle + feed(middle))
    elif norm_placement == "parallel":
        expected = X + added + feed(second(X))
    else:
        expected = X + added + feed(second(X + added))
    found, _ = apply_layer(layer, jnp.asarray(X))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    assert attention_input(layer, jnp.asarray(X)) is not None
    assert found.shape == X.shape


def test_embeddings_add_position_and_kind_before_norm_and_projection():
    table, places = DRAW.normal(size=(7, 4)), DRAW.normal(size=(6, 4))
    kind, W, b = DRAW.normal(size=4), DRAW.normal(size=(4, 3)), DRAW.normal(size=3)
    norm = random_norm(DRAW, 4)
    dense = Dense(jnp.asarray(W), jnp.asarray(b))
    made = Embedding(*map(jnp.asarray, (table, places, kind)), norm, dense, 2.0, 2)
    tokens = np.array([6, 0, 6])
    rows = 2 * table[tokens] + places[2:5] + kind
    expected = np.asarray(norm(jnp.asarray(rows))) @ W + b
    np.testing.assert_allclose(embed(made, jnp.asarray(tokens)), expected, rtol=1e-12)
    many = embed_sequences(made, jnp.asarray(np.stack([tokens, tokens[::-1]])))
    np.testing.assert_allclose(many[0], expected, rtol=1e-12)
    plain = dataclasses.replace(made, positions=None, kind=None, norm=None, projection=None)
    np.testing.assert_allclose(embed(plain, jnp.asarray(tokens)), 2 * table[tokens], rtol=1e-15)


def test_patches_are_read_row_by_row_channels_first():
    image = np.arange(2 * 2 * 4.0).reshape(2, 2, 4)
    patches = Dense(jnp.eye(8), jnp.zeros(8))
    made = PatchEmbedding(patches, jnp.full(8, -1.0), jnp.zeros((3, 8)), 2, (1, 2))
    found = embed_patches(made, jnp.asarray(image))
    np.testing.assert_array_equal(found[0], np.full(8, -1.0))
    np.testing.assert_array_equal(found[1], image[:, :, :2].ravel())
    np.testing.assert_array_equal(found[2], image[:, :, 2:].ravel())


def test_the_readout_transforms_before_the_words_and_may_read_the_first_token_only():
    dense, words = (
        Dense(jnp.asarray(DRAW.normal(size=s)), jnp.asarray(DRAW.normal(size=s[1])))
        for s in ((6, 4), (4, 3))
    )
    norm = random_norm(DRAW, 4)
    readout = Readout(None, dense, norm, words, "relu", True)
    middle = np.maximum(X[0] @ np.asarray(dense.W) + np.asarray(dense.b), 0)
    rows = np.asarray(norm(jnp.asarray(middle[None])))
    expected = rows[0] @ np.asarray(words.W) + np.asarray(words.b)
    found = read_out(readout, jnp.asarray(X))
    assert found.shape == (3,)
    np.testing.assert_allclose(found, expected, rtol=1e-11)
    every = read_out(dataclasses.replace(readout, first_only=False), jnp.asarray(X))
    np.testing.assert_allclose(every[0], found, rtol=1e-11)


def test_positions_pass_over_padding_where_a_model_counts_so():
    words, positions = jnp.asarray(DRAW.normal(size=(5, 4))), jnp.asarray(DRAW.normal(size=(9, 4)))
    table = Embedding(words, positions, first_position=2, padding=1)
    tokens, rows = jnp.array([0, 1, 3, 1, 1, 4]), np.array([2, 1, 3, 1, 1, 4])
    expected = words[tokens] + positions[rows]
    assert np.array_equal(embed(table, tokens), expected)
    assert np.array_equal(embed_sequences(table, tokens[None])[0], expected)
