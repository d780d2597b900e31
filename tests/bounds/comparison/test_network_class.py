"""The class of a network: what its arrays and costs hold, against its weights."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.comparison.bound_table import Inputs
from attlas.bounds.comparison.network_class import (
    counting,
    network_class,
    network_costs,
    part_names,
)
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.comparison.weight_norms import weight_norms
from attlas.bounds.covering.norm_grid import norm_grid_cost

ONE = Head(np.diag([2.0, 1.0]), np.diag([3.0, 1.0]), np.diag([4.0, 1.0]))
TWO = Head(np.diag([5.0, 1.0]), np.diag([6.0, 1.0]), np.diag([7.0, 1.0]))
WEIGHTS = TransformerWeights(((ONE,), (TWO, ONE)), np.array([0.6, 0.8]))
NORMS = weight_norms(WEIGHTS)
SPECTRAL = [1.0, 4, 3, 2, 7, 6, 5, 4, 3, 2]


def test_arrays_have_the_readout_first_and_the_heads_of_uneven_layers_in_order():
    with jax.enable_x64(True):
        network = network_class(NORMS, Inputs(7, 0.5, 0.6, 0.4), 1.0, 1.0)
        np.testing.assert_allclose(network.norms["spectral"], SPECTRAL, rtol=1e-12)
        np.testing.assert_allclose(network.radius, 1.0, rtol=1e-12)
        # values and keys of the first layer read tokens, W_c and the second layer unit vectors
        assert network.l2.tolist() == [1.0, 1.0, 0.5, 0.5, *6 * [1.0]]
        np.testing.assert_allclose(network.l1, [2**0.5, 2**0.5, 0.6, 0.6, *6 * [2**0.5]])
        growth = 7 * 6 * (1 + 2 * 5) + 4 * 3 * (1 + 2 * 2)
        costs = [1, growth, growth * 4, growth * 4 * 3 / 4, 1, 7, 42, 1, 4, 12]
        np.testing.assert_allclose(network.beta["sharp"], costs, rtol=1e-12)
    names = part_names(NORMS)
    assert names[:3] == ("the readout", "W_c of layer 1", "W_v of layer 1")
    assert names[-1] == "W_QK of layer 2, head 2"


def test_a_matrix_is_counted_whole_unless_its_factors_have_fewer_numbers():
    norms = {
        "rows": [4.0, 4.0, 3.0, 5.0], "columns": [4.0, 4.0, 6.0, 5.0], "rank": [2.0, 1.0, 3.0, 2.0],
        "spectral": [3.0, 3.0, 0.0, 0.5],
    }  # fmt: skip
    numbers, scales = counting(
        {name: jnp.array(values) for name, values in norms.items()}, jnp.array([1.0, 0.5, 1.0, 2.0])
    )
    assert numbers.tolist() == [16, 8, 18, 20]
    np.testing.assert_allclose(scales, [6, 6, 1e-300, 4], rtol=1e-14)


def test_costs_are_the_nats_of_the_norms_on_a_grid():
    costs = network_costs(NORMS.rounded(4), 4)
    nats = norm_grid_cost(np.array(NORMS.rounded(4).readout[3:]), 4)
    assert [array[0] for array in costs.norms.values()] == nats.tolist()
    assert costs.recursion == costs.norms["row_length"][0] + costs.norms["spectral"][1:].sum()
    assert costs.orientation == 3 * math.log(2)
