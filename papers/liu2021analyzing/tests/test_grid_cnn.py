import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.noisy_grid.data import place_in_grid
from liu2021analyzing.library.noisy_grid.grid_cnn import (
    PAPER_SIZES,
    GridSizes,
    grid_parameters,
    make_attention_cnn,
    make_grid_cnn,
    make_grid_model,
)


def _features(model, image):
    """Two convolutions and the pooling, pixel by pixel."""
    z = image[:, :, None]
    for filters, bias in zip((model.first, model.second), model.biases, strict=True):
        size = z.shape[0] - 2
        filters, out = np.asarray(filters), np.zeros((size, size, bias.shape[0]))
        for i, j in np.ndindex(size, size):
            out[i, j] = np.einsum("abm,abmk->k", z[i : i + 3, j : j + 3], filters)
        z = np.maximum(out + np.asarray(bias), 0)
    half = z.shape[0] // 2
    pooled = [
        z[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max((0, 1)) for i, j in np.ndindex(half, half)
    ]
    return np.concatenate(pooled)


@pytest.fixture(scope="module")
def cells():
    draw = np.random.default_rng(0)
    return place_in_grid(draw.random((1, 14, 14)), draw)[0][0]


def _nudged(model):
    """Biases are not zero after training: the test gives them values."""
    return jax.tree.map(lambda a: a + 0.1 if a.ndim == 1 else a, model)


def test_the_plain_network_sees_the_whole_image(cells):
    model = _nudged(make_grid_cnn(jax.random.key(0), 7, (2, 3), hidden=4, classes=5))
    image = cells.reshape(4, 4, 7, 7).swapaxes(1, 2).reshape(28, 28)
    hidden = np.maximum(_features(model.convolutions, image) @ np.asarray(model.W1) + 0.1, 0)
    expected = hidden @ np.asarray(model.W2) + 0.1
    found = jax.jit(lambda c: model(c))(jnp.asarray(cells))
    # 432 products of numbers of size one after two convolutions of 9 and 18.
    assert np.max(np.abs(np.asarray(found) - expected)) < 1000 * np.finfo(float).eps


def test_the_attention_network_sees_cells_as_words(cells):
    model = _nudged(make_attention_cnn(jax.random.key(1), 7, (2, 3), width=4, hidden=5, classes=6))
    words = np.array([_features(model.convolutions, c.reshape(7, 7)) for c in cells])
    W_Q, W_K, W_V = (
        np.asarray(a) for a in (model.attention.W_Q, model.attention.W_K, model.attention.W_V)
    )
    weights = np.exp(words @ W_Q.T @ W_K @ words.T / 2)
    weights /= weights.sum(axis=1, keepdims=True)
    flat = (weights @ words @ W_V.T).ravel()
    hidden = np.maximum(flat @ np.asarray(model.attention.W1) + 0.1, 0)
    expected = hidden @ np.asarray(model.W2) + 0.1
    found, map_ = jax.jit(lambda c: (model(c), model.weights(c)))(jnp.asarray(cells))
    # Sixteen words of three features and 64 products after a softmax.
    room = 1000 * np.finfo(float).eps
    assert np.max(np.abs(np.asarray(found) - expected)) < room
    assert np.max(np.abs(np.asarray(map_).T - weights)) < room


def test_equal_weights_and_the_counts_of_the_paper():
    shapes = jax.eval_shape(
        lambda key: make_attention_cnn(key, equal_weights=True), jax.random.key(0)
    )
    assert shapes.attention.equal_weights
    assert sum(leaf.size for leaf in jax.tree.leaves(shapes)) == 659_926
    twice = jax.eval_shape(lambda key: make_grid_cnn(key, filters=(64, 64)), jax.random.key(0))
    assert sum(leaf.size for leaf in jax.tree.leaves(twice)) == 5_576_778


def test_the_plain_network_takes_cells_too_small_for_one_of_their_own():
    """An image of side 12 has 8 pixels after both convolutions and 4 after the pooling."""

    def make(key, cell):
        return make_grid_cnn(key, cell, (2, 3), hidden=4, classes=5)

    model = jax.eval_shape(lambda key: make(key, 3), jax.random.key(0))
    assert (model.W1.shape, model.W2.shape) == ((4 * 4 * 3, 4), (4, 5))
    with pytest.raises(UserError, match="images of side 4"):
        make(jax.random.key(0), 1)


def test_unusable_sizes_are_refused():
    with pytest.raises(UserError, match="images of side 5"):
        make_attention_cnn(jax.random.key(0), cell=5)
    with pytest.raises(UserError, match="hidden = 0"):
        make_grid_cnn(jax.random.key(0), hidden=0)
    model = make_grid_cnn(jax.random.key(0), 7, (2, 3), hidden=4)
    for shape in ((9, 49), (16, 50)):
        with pytest.raises(UserError, match="give 16 cells"):
            model(jnp.ones(shape))


SMALL = GridSizes(6, (2, 3), 4, 5)


def test_networks_have_the_papers_parameter_counts():
    assert round(grid_parameters("cnn", PAPER_SIZES["cnn"]) / 1000) == 5558
    # The paper has 670k and does not say the widths; its IMDB model's give this.
    assert grid_parameters("attention", PAPER_SIZES["attention"]) == 659_926
    assert grid_parameters("equal", PAPER_SIZES["equal"]) == 659_926


@pytest.mark.thorough
def test_kinds_differ_in_their_weights_alone():
    key = jax.random.key(0)
    attention, equal = (
        make_grid_model(key, kind, SMALL, np.dtype("float32")) for kind in ("attention", "equal")
    )
    assert np.array_equal(attention.attention.W1, equal.attention.W1)
    cells = jnp.asarray(np.random.default_rng(0).random((16, 36), np.float32))
    assert np.allclose(equal.weights(cells), 1 / 16)
    assert not np.allclose(attention.weights(cells), 1 / 16, atol=1e-5)
    assert make_grid_model(key, "cnn", SMALL, np.dtype("float32"))(cells).shape == (10,)


def test_an_unknown_kind_is_refused_in_one_line():
    with pytest.raises(UserError, match="no network 'mlp' for noisy grids: choose cnn, attention"):
        make_grid_model(jax.random.key(0), "mlp", SMALL)
