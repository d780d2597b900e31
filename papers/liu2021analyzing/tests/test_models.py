import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.noisy_grid.models import (
    PAPER_SIZES,
    GridSizes,
    grid_parameters,
    make_grid_model,
)

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
