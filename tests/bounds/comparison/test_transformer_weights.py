"""Norms against direct computation, upper values, and shapes refused."""

import numpy as np
import pytest

from attlas.bounds.comparison.transformer_weights import (
    Head,
    TransformerWeights,
    check_weights,
    cls_row_sum,
    matrix_norms,
    query_key_norms,
)
from attlas.core.errors import UserError


def test_norms_are_upper_values_and_close():
    rng = np.random.default_rng(0)
    M = rng.normal(size=(7, 4))
    norms = matrix_norms(M)
    exact = {
        "spectral": np.linalg.norm(M, 2),
        "total": np.abs(M).sum(),
        "column": np.linalg.norm(M, 1),
        "row_sum": np.linalg.norm(M, axis=1).sum(),
        "row": np.linalg.norm(M, np.inf),
    }
    for name, value in exact.items():
        # the allowance is 11 eps ||M||_F^2 under a root
        assert value <= getattr(norms, name) <= value * (1 + 1e-13)


def test_factors_and_their_product_agree():
    rng = np.random.default_rng(1)
    Q, K = rng.normal(size=(2, 6, 2))
    pair, product = query_key_norms((Q, K)), query_key_norms(Q @ K.T)
    assert (pair.rank, product.rank) == (2, 6)
    for name in ("spectral", "total", "column", "row_sum", "row"):
        # the product of rank 2 has a zero eigenvalue block: 12 eps ||M||_F^2
        np.testing.assert_allclose(getattr(pair, name), getattr(product, name), rtol=1e-12)
    assert pair.column == pytest.approx(
        min(np.linalg.norm(Q @ K.T, 1), np.linalg.norm(Q @ K.T, np.inf))
    )
    assert pair.row_sum <= cls_row_sum(Head((Q, K), Q, Q.T)) * (1 + 1e-12)


def test_bad_weights_are_refused_in_one_line():
    good = Head(np.eye(2), np.ones((2, 3)), np.ones((3, 2)))
    w = np.ones(2)
    assert check_weights(TransformerWeights(((good,),), w)) == 2
    cases = [
        (TransformerWeights(((good._replace(output=np.ones((2, 2))),),), w), "output has shape"),
        (TransformerWeights(((good._replace(value=np.full((2, 3), np.nan)),),), w), "value is not"),
        (TransformerWeights(((good,),), np.array([1.0, np.inf])), "readout is not finite"),
        (TransformerWeights(((good,),), np.ones((1, 1, 2))), "readout has shape"),
        (TransformerWeights(((),), w), "no head"),
    ]
    for weights, words in cases:
        with pytest.raises(UserError, match=words) as caught:
            check_weights(weights)
        assert "\n" not in str(caught.value)


def test_the_rank_is_at_most_the_sides_and_what_the_factors_allow():
    M = np.arange(15.0).reshape(5, 3)
    assert [matrix_norms(M, rank).rank for rank in (None, 2, 9)] == [3, 2, 3]
    assert matrix_norms(M.T).rank == 3
    found = matrix_norms(M)
    assert (found.rows, found.columns) == (5, 3)
