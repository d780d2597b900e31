"""The class in norm balls: largest norms, and bounds of single covers."""

import jax
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.bounds.comparison.single_layer_class import (
    LayerNorms,
    norms_in_ball,
    norms_of_dense_matrix,
    single_layer_bounds,
)
from attlas.bounds.comparison.transformer_weights import matrix_norms
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single
from attlas.core.errors import UserError

FIELDS = ("total", "column", "row_sum", "spectral")


@pytest.mark.parametrize(
    ("ball", "own"), [("1,1", "total"), ("1,inf", "column"), ("2,1", "row_sum")]
)
def test_largest_norms_in_a_ball_are_upper_bounds_and_attained(ball, own):
    rng, d = np.random.default_rng(0), 4
    matrices = [np.eye(1, d * d).reshape(d, d), np.eye(d), np.eye(d, 1) * np.ones(d)]
    matrices += [np.eye(d, 1).T * np.ones((d, 1)), *rng.normal(size=(20, d, d))]
    found = []
    for W in matrices:
        norms = matrix_norms(W)
        found.append([getattr(norms, name) / getattr(norms, own) for name in FIELDS])
    limits = norms_in_ball(ball, 1.0, d)
    # The norms are certified upper values, above by roundings.
    np.testing.assert_allclose(np.max(found, axis=0), limits[:4], rtol=1e-9)
    assert limits.token == 2.0


@pytest.mark.parametrize("rows", [None, 3])
def test_bounds_are_those_of_each_cover_in_the_order_asked_for(rows):
    d, m, k = 8, 1e5, rows or 8
    norms = LayerNorms(0.9, 0.5, 0.6, 0.2, 1.7)
    covers = ["parameters", "2,1", 20 * m, "1,inf", "1,1"]
    found = single_layer_bounds(norms, covers, d, m, rows=rows)
    C = [
        trauger2023_cover("2,1", 0.6, 1.7, k, d, m),
        edelman2022_cover(0.6, 1.0, 20 * m, k, m),
        trauger2023_cover("1,inf", 0.5, 1.7, k, d),
        trauger2023_cover("1,1", 0.9, 1.0, k, d),
    ]
    wanted = [float(trauger2023_single(1.0, each, 1.0, d, m, constants="sharp")) for each in C]
    counted = float(parameter_counting_single(1.0, 0.2, 1.0, k * d, d, m))
    # One program or several: a few roundings.
    np.testing.assert_allclose(found, [counted, *wanted], rtol=1e-12)


def test_norms_of_a_dense_matrix_are_those_of_its_draw_over_its_row_lengths():
    W = generator(jax.random.key(3)).normal(size=(5, 5))
    lengths = np.sqrt(np.sum(W**2, axis=1)).sum()
    sizes = np.abs(W).sum(), np.abs(W).sum(axis=0).max(), lengths, np.linalg.norm(W, 2)
    found = norms_of_dense_matrix(jax.random.key(3), 5)
    wanted = [*(size / lengths for size in sizes), (10 / np.pi) ** 0.5]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_one_row_costs_less_and_unknown_covers_are_named():
    norms = norms_in_ball("1,1", 1.0, 16)
    covers = ["1,1", "parameters"]
    whole = single_layer_bounds(norms, covers, 16, 1e6)
    one = single_layer_bounds(norms, covers, 16, 1e6, rows=1)
    assert np.all(np.asarray(one) < np.asarray(whole))
    with pytest.raises(UserError, match="'3,1' is unknown"):
        single_layer_bounds(norms, ["3,1"], 16, 1e6)
    with pytest.raises(UserError, match="'3,1' is unknown"):
        norms_in_ball("3,1", 1.0, 16)


def test_a_multiple_of_a_matrix_has_multiples_of_its_norms_and_the_same_tokens():
    found = LayerNorms(2.0, 3.0, 5.0, 7.0, 11.0).scaled(0.5)
    assert found == LayerNorms(1.0, 1.5, 2.5, 3.5, 11.0)
