import jax
import jax.numpy as jnp
import numpy as np
import pytest

from liu2021analyzing.library.noisy_grid.attention import digit_attention, digit_cells
from liu2021analyzing.library.noisy_grid.data import load_placed_digits
from liu2021analyzing.library.noisy_grid.grid_cnn import GridSizes, make_grid_model


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
