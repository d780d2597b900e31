import jax
import jax.numpy as jnp
import numpy as np
import pytest

from liu2021analyzing.library.noisy_grid.attention import digit_attention, digit_cells
from liu2021analyzing.library.noisy_grid.data import load_placed_digits
from liu2021analyzing.library.noisy_grid.grid_cnn import (
    AttentionCnn,
    GridSizes,
    make_grid_model,
)


def _models(kind):
    keys = jax.random.split(jax.random.key(0), 2)
    sizes = GridSizes(6, (2, 2), 4, 4)
    return jax.vmap(lambda key: make_grid_model(key, kind, sizes, np.dtype("float32")))(keys)


def test_marked_cells_hold_the_digit():
    grids, first = load_placed_digits(size=6, cell=6, stand_in=True)
    own = digit_cells(first)
    assert own.sum(axis=1).tolist() == [4] * 6
    # Noise fills a cell; enlarged digits have white corners, which noise has not.
    zeros = (grids == 0).sum(axis=2)
    assert np.all(zeros[~own] == 0)
    assert np.all(zeros.sum(axis=1) > 0)


class _Similarity(AttentionCnn):
    """Attention by the similarity of pixels, times the number that stands in for the biases."""

    def weights(self, cells):
        return jax.nn.softmax(self.b2 * jnp.tanh(cells) @ cells.T, axis=0)


def test_shares_and_maps_are_sums_over_the_definition():
    factors, first = np.array([0.3, -0.8, 1.1]), np.array([0, 10, 5, 6, 2])
    grids = np.random.default_rng(3).normal(size=(5, 16, 2))
    models = _Similarity(None, None, None, jnp.asarray(factors))
    own = digit_cells(first)
    assert [np.flatnonzero(row).tolist() for row in own] == [
        [0, 1, 4, 5], [10, 11, 14, 15], [5, 6, 9, 10], [6, 7, 10, 11], [2, 3, 6, 7]
    ]  # fmt: skip
    found = digit_attention(models, grids, own)
    assert found.share.shape == (3, 2)
    for e, factor in enumerate(factors):
        sums = {True: [], False: []}
        for image, (grid, digit) in enumerate(zip(grids, own, strict=True)):
            maps = np.zeros(16)
            for query in range(16):
                shares = np.exp([factor * np.tanh(cell) @ grid[query] for cell in grid])
                shares /= np.sum(shares)
                sums[bool(digit[query])].append(sum(shares[digit]))
                maps += shares / 16
            np.testing.assert_allclose(found.maps[e, image], maps, rtol=1e-12)
        expected = [sum(sums[True]) / 20, sum(sums[False]) / 60]
        np.testing.assert_allclose(found.share[e], expected, rtol=1e-12)


def test_networks_without_attention_have_numbers_of_the_same_shapes():
    found = digit_attention({"W": np.zeros((3, 7))}, np.ones((5, 16, 4)), np.ones((5, 16), bool))
    assert (found.share.shape, found.maps.shape) == ((3, 2), (3, 5, 16))
    assert np.isnan(found.share).all()
    assert np.isnan(found.maps).all()


@pytest.mark.thorough
def test_shares_are_means_of_the_weights_on_the_digit():
    grids, first = load_placed_digits(size=3, cell=6, stand_in=True)
    own, models = digit_cells(first), _models("attention")
    found = digit_attention(models, grids, own)
    one = jax.tree.map(lambda a: a[1], models)
    weights = [np.asarray(one.weights(jnp.asarray(grid))) for grid in grids]  # cell, query
    from_digit = np.mean(
        [w[cells][:, cells].sum(axis=0) for w, cells in zip(weights, own, strict=True)]
    )
    from_noise = np.mean(
        [w[cells][:, ~cells].sum(axis=0) for w, cells in zip(weights, own, strict=True)]
    )
    assert np.allclose(found.share[1], [from_digit, from_noise], rtol=1e-5)
    assert np.allclose(found.maps[1], [w.mean(axis=1) for w in weights], rtol=1e-5)


@pytest.mark.thorough
def test_equal_weights_give_a_quarter_to_the_digit_and_a_plain_network_nothing():
    grids, first = load_placed_digits(size=3, cell=6, stand_in=True)
    equal = digit_attention(_models("equal"), grids, digit_cells(first))
    # Four of 16 cells; 16 roundings of single precision.
    assert np.allclose(equal.share, 0.25, atol=16 * np.finfo("f4").eps)
    assert np.allclose(equal.maps.sum(axis=2), 1, atol=16 * np.finfo("f4").eps)
    assert np.isnan(digit_attention(_models("cnn"), grids, digit_cells(first)).share).all()
