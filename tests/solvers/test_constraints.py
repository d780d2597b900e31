"""The structured operators agree with the dense matrix they stand for."""

import numpy as np
import pytest

from attlas.solvers.constraints import AttentionRows, ConstraintOperator, PairRows, VectorRows

RNG = np.random.default_rng(0)
WHOLE = AttentionRows(RNG.normal(size=(1, 3, 4, 5)), RNG.normal(size=(1, 3, 5)))
LONG = AttentionRows(RNG.normal(size=(1, 2, 30, 25)), RNG.normal(size=(1, 2, 25)))
CASES = {
    "whole": WHOLE,
    "part": WHOLE.part(np.array([0, 1, 5, 8, 11])),
    "part of part": WHOLE.part(np.array([0, 1, 5, 8, 11])).part(np.array([1, 3])),
    "plain": VectorRows(RNG.normal(size=(1, 6, 25))),
    "part sample by sample": LONG.part(np.arange(5, 55)),
    "scaled": WHOLE.scaled(np.array([3.0])),
}


@pytest.mark.parametrize("name", CASES)
def test_equal_weights_give_a_multiple_of_the_plain_gram_matrix(name):
    rows = CASES[name]
    _, m, size = rows.shape
    A = rows.select(np.arange(m))
    np.testing.assert_allclose(
        rows.gram(np.full((1, size), 3.0))[0], 3 * A @ A.T, rtol=1e-12, atol=1e-11
    )


def test_a_batch_of_equal_weights_has_a_gram_matrix_for_each_problem():
    rows = AttentionRows(RNG.normal(size=(3, 2, 4, 5)), RNG.normal(size=(3, 2, 5)))
    together = rows.gram(np.repeat([[1.0], [2.0], [0.5]], 25, axis=1))
    for i, weight in enumerate((1.0, 2.0, 0.5)):
        alone = rows.take(np.array([i])).gram(np.full((1, 25), weight))
        np.testing.assert_allclose(together[i], alone[0], rtol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_operator_is_its_matrix(name):
    rows = CASES[name]
    assert isinstance(rows, ConstraintOperator)
    _, m, size = rows.shape
    A = rows.select(np.arange(m))
    w, l = RNG.normal(size=(1, size)), RNG.normal(size=(1, m))
    h = RNG.uniform(0.5, 2, size=(1, size))
    # rounding of sums of at most 25 terms of order one
    close = {"rtol": 0, "atol": 25 * 64 * np.finfo(float).eps}
    assert rows.shape == (1, *A.shape)
    assert rows.gram(h).shape == (1, m, m)
    np.testing.assert_allclose(rows.apply(w)[0], A @ w[0], **close)
    np.testing.assert_allclose(rows.adjoint(l)[0], A.T @ l[0], **close)
    np.testing.assert_allclose(rows.gram(h)[0], (A * h) @ A.T, **{**close, "rtol": 1e-13})
    np.testing.assert_allclose(rows.lengths()[0], np.linalg.norm(A, axis=1), **close)


def test_a_part_of_a_batch_is_that_of_its_first_problem():
    matrix = RNG.normal(size=(3, 5, 4))
    part = VectorRows(matrix).part(np.array([1, 4]))
    np.testing.assert_array_equal(part.matrix, matrix[:1, [1, 4]])


@pytest.mark.parametrize("batch", [1, 3])
def test_the_attention_of_each_problem_is_its_own(batch):
    """A batch whose sizes all differ, against products of one row at a time."""
    n, others, d = 2, 4, 5
    rows = AttentionRows(RNG.normal(size=(batch, n, others, d)), RNG.normal(size=(batch, n, d)))
    w, l, h = RNG.normal(size=(batch, 25)), RNG.normal(size=(batch, 8)), RNG.random((batch, 25))
    assert rows.shape == (batch, 8, 25)
    found = rows.apply(w), rows.adjoint(l), rows.gram(h), rows.lengths()
    for k in range(batch):
        A = [
            np.outer(rows.differences[k, i, s], rows.queries[k, i]).ravel()
            for i in range(n)
            for s in range(others)
        ]
        exact = A @ w[k], l[k] @ A, A @ np.diag(h[k]) @ np.transpose(A), np.linalg.norm(A, axis=1)
        for mine, theirs in zip(found, exact, strict=True):
            np.testing.assert_allclose(mine[k], theirs, rtol=0, atol=1e-12)


def test_part_keeps_the_chosen_rows():
    index = np.array([2, 3, 7])
    part = WHOLE.part(index)
    assert isinstance(part, PairRows)
    np.testing.assert_array_equal(part.select(np.arange(3)), WHOLE.select(index))


def test_every_problem_is_scaled_by_its_own_factor():
    factor, w = np.array([3.0, 0.25]), RNG.normal(size=(2, 9))
    plain = VectorRows(RNG.normal(size=(2, 4, 9)))
    attention = AttentionRows(RNG.normal(size=(2, 2, 4, 3)), RNG.normal(size=(2, 2, 3)))
    for rows in (plain, attention):
        scaled = rows.scaled(factor)
        np.testing.assert_allclose(scaled.apply(w), factor[:, None] * rows.apply(w), rtol=1e-13)
    pairs = attention.part(np.array([1, 3, 6]))
    exact = 5 * pairs.select(np.arange(3))
    np.testing.assert_allclose(pairs.scaled(np.array([5.0])).select(np.arange(3)), exact)
