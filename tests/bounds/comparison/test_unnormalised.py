"""The rows on one layer against the formulas called by hand."""

import jax
import numpy as np
import pytest

from attlas.bounds.comparison.bound_table import Inputs
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.comparison.unnormalised import unnormalised
from attlas.bounds.comparison.weight_norms import weight_norms
from attlas.bounds.covering.edelman2022_cover import edelman2022_cover
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_single

HEAD = Head(
    np.diag([0.5, 0.25]), np.array([[1.0, 2.0], [0.5, 0.0]]), np.array([[1.0, -1.0], [0, 3]])
)
INPUTS = Inputs(7, 1.0, 1.2, 0.9)
SAMPLES = 10**4


def rows(weights: TransformerWeights) -> dict[str, float]:
    with jax.enable_x64(True):
        table = unnormalised([(weight_norms(weights), None)], INPUTS, SAMPLES, 1.0)
        values = table.values(np.full(len(table.bounds), float(SAMPLES)))[0]
    return dict(zip([bound.label for bound in table.bounds], values.tolist(), strict=True))


def test_one_head_by_hand_and_heads_add_up():
    w = np.array([0.25, -0.5])
    C = trauger2023_cover("1,1", 0.75, 1.0, 2, 2)
    # ||w||_1 = 3/4, columns of W_c have l_1 norm 4 at most, those of W_v 2
    value = float(trauger2023_single(0.75 * 4 * 2, C, 1.0, 2, SAMPLES, largest_entry=0.9))
    for heads in (1, 3):
        found = rows(TransformerWeights(((HEAD,) * heads,), w))
        np.testing.assert_allclose(found["1,1 sharp"], heads * value, rtol=1e-12)
        np.testing.assert_allclose(found["trivial"], heads * 6 * 0.9, rtol=1e-12)


@pytest.mark.parametrize("rank", [1, 3])
def test_every_row_of_a_head_by_its_formula(rank):
    """Two factors of W_QK in three dimensions, inputs of three lengths, L = 1.3."""
    rng = np.random.default_rng(1)
    Q, K, (V, C) = (
        rng.normal(size=(3, rank)),
        rng.normal(size=(3, rank)),
        rng.normal(size=(2, 3, 3)),
    )
    w, m = np.array([0.2, -0.1, 0.3]), 10.0**8
    weights = TransformerWeights(((Head((Q, K), V, C),),), w)
    inputs = Inputs(7, 0.8, 1.2, 0.6)
    with jax.enable_x64(True):
        table = unnormalised([(weight_norms(weights), None)], inputs, 10**8, 1.3)
        values = table.values(np.full(len(table.bounds), m))[0]
    found = dict(zip([bound.label for bound in table.bounds], values, strict=True))
    M = np.abs(Q @ K.T)
    lengths = [np.sqrt((M**2).sum(axis=axis)).sum() for axis in (1, 0)]
    outer = 0.6 * 1.3 * np.abs(C).sum(axis=0).max() * np.abs(V).sum(axis=0).max()
    covers = {
        "1,1": trauger2023_cover("1,1", M.sum(), 0.8, 3, 3),
        "1,inf": trauger2023_cover("1,inf", min(M.sum(0).max(), M.sum(1).max()), 1.2, 3, 3),
        "2,1": trauger2023_cover("2,1", min(lengths), 1.2, 3, 3, m),
    }
    wanted = {
        f"{ball} {constants}": trauger2023_single(
            outer, C, 0.8, 3, m, constants=constants, largest_entry=0.6
        )
        for ball, C in covers.items()
        for constants in ("printed", "corrected", "sharp")
    }
    tokens = edelman2022_cover(min(lengths), 0.8, 7 * m, 3, m)
    cls = edelman2022_cover(lengths[1], 0.8, m, 3, m)
    for label, coefficient in (("log T", tokens), ("log m", cls)):
        wanted[label] = trauger2023_single(outer, coefficient, 0.8, 3, m, largest_entry=0.6)
    spectral = np.linalg.norm(Q @ K.T, 2)
    counts = [
        parameter_counting_single(outer, spectral, 0.8, count, 3, m, factored)
        for count, factored in ((9, False), (6 * rank, True))
    ]
    wanted |= {"parameters": min(map(float, counts)), "trivial": outer * 0.6}
    assert found.keys() == wanted.keys()
    for label, value in wanted.items():
        assert label == "trivial" or value < 0.9 * outer * 0.6
        np.testing.assert_allclose(found[label], value, rtol=1e-9, err_msg=label)


def test_factors_are_counted_where_they_have_fewer_numbers_and_shares_are_those_of_the_heads():
    rng = np.random.default_rng(2)
    Q, K, V, C = rng.normal(size=(8, 1)), rng.normal(size=(8, 1)), np.eye(8), np.eye(8)
    weights = TransformerWeights(((Head((Q, K), V, C), Head((Q, K), 3 * V, C)),), np.ones(8) / 8)
    with jax.enable_x64(True):
        table = unnormalised([(weight_norms(weights), None)], INPUTS, 10**7, 1.0)
        values = table.values(np.full(len(table.bounds), 1e7))[0]
    labels = [bound.label for bound in table.bounds]
    spectral = np.linalg.norm(Q) * np.linalg.norm(K)
    one = parameter_counting_single(1.0, spectral, 1.0, 16, 8, 1e7, True)
    np.testing.assert_allclose(values[labels.index("parameters")], 4 * one, rtol=1e-9)
    np.testing.assert_allclose(table.shares, np.tile([0.25, 0.75], (len(labels), 1)), rtol=1e-9)
