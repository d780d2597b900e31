"""Optimal tokens by definition, on solved selections."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.token_selection import (
    TokenSelection,
    make_separable_selection,
    optimal_tokens,
)
from attlas.solvers.attention_svm import attention_svm
from attlas.solvers.token_optimality import (
    attention_margins,
    is_locally_optimal,
    support_tokens,
)
from julistiono2024optimizing.library.solvers.selection_geometry import selection_geometry

DATA = make_separable_selection(jax.random.key(1), n=3, T=4, d=5)


@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_globally_optimal_tokens_are_locally_optimal(p):
    tokens = optimal_tokens(DATA)
    found = attention_svm(DATA.X, DATA.z, tokens, p)
    assert bool(is_locally_optimal(DATA, tokens, found.unwrap()))


def test_support_tokens_carry_all_multipliers():
    tokens = optimal_tokens(DATA)
    found = attention_svm(DATA.X, DATA.z, tokens, 2.0)
    support = np.asarray(support_tokens(DATA.X, DATA.z, tokens, found.unwrap()))
    dual = found.certificate["dual"]
    assert support.any()
    # complementary slackness: l_j (margin_j - 1) sums to at most gap times norm
    slack = (dual * (found.certificate["margins"] - 1)).sum(where=dual > 0)
    assert abs(slack) <= 4 * found.certificate["gap"] * found.certificate["norm_upper"] + 1e-12
    assert dual[~support].sum() <= 1e-6 * dual.sum()


def test_local_optimality_is_the_definition():
    scores = np.asarray(DATA.y[:, None] * (DATA.X @ DATA.v))
    seen = set()
    choices = zip(scores.argmax(1).tolist(), scores.argmin(1).tolist(), strict=True)
    for tokens in itertools.product(*choices):
        chosen = jnp.array(tokens)
        found = attention_svm(DATA.X, DATA.z, chosen, 2.0)
        told = bool(is_locally_optimal(DATA, chosen, found.value))
        if found.converged:
            margins = np.asarray(attention_margins(DATA.X, DATA.z, chosen, found.unwrap()))
            support = [
                (i, t) for i in range(3) for t in range(4)
                if t != tokens[i] and margins[i, t] < 1 + 1e-6
            ]  # fmt: skip
            expected = all(scores[i, tokens[i]] > scores[i, t] for i, t in support)
        else:
            expected = False
        assert told == expected
        seen.add(told)
    assert seen == {True, False}


@pytest.mark.thorough
def test_geometry_against_loops():
    tokens = optimal_tokens(DATA)
    W = attention_svm(DATA.X, DATA.z, tokens, 3.0).unwrap()
    found = selection_geometry(DATA, tokens, W, 3.0)
    h = np.einsum("ntd,de,ne->nt", DATA.X, W, DATA.z)
    support = np.asarray(support_tokens(DATA.X, DATA.z, tokens, W))
    gaps = [
        h[i, t] - h[i, s]
        for i in range(3) for t in range(4) for s in range(4)
        if support[i, t] and not support[i, s] and s != tokens[i]
    ]  # fmt: skip
    assert float(found.delta_prime) == pytest.approx(min(gaps), rel=1e-9)
    outer = [np.outer(DATA.X[i, t], DATA.z[i]) for i in range(3) for t in range(4)]
    largest = max((np.abs(o) ** 1.5).sum() ** (2 / 3) for o in outer)
    assert float(found.A) == pytest.approx(largest * float(found.norm), rel=1e-12)


def test_a_margin_counts_as_one_up_to_a_millionth():
    # The margins of the tokens are 1 + 4e-7, 1 + 4e-6 and 2 at W = 1, and the score falls along.
    margin = np.array([0.0, 1 + 4e-7, 1 + 4e-6, 2.0])
    X, one = jnp.asarray(-margin)[None, :, None], jnp.ones((1, 1))
    tokens = jnp.array([0])
    assert support_tokens(X, one, tokens, one).tolist() == [[False, True, False, False]]
    wider = support_tokens(X, one, tokens, one, tolerance=1e-5)
    assert wider.tolist() == [[False, True, True, False]]


def test_only_support_tokens_decide_local_optimality():
    # The second token has the larger score: its margin of 1 + 4e-6 counts at tolerance 1e-5 only.
    X = jnp.array([[[0.0, 0.0], [-1 - 4e-6, 1.0]]])
    data = TokenSelection(X, jnp.ones(1), jnp.array([[1.0, 0.0]]), jnp.array([0.0, 1.0]))
    tokens = jnp.array([0])
    assert bool(is_locally_optimal(data, tokens, jnp.eye(2)))
    assert not bool(is_locally_optimal(data, tokens, jnp.eye(2), tolerance=1e-5))


def test_a_tie_of_scores_or_a_matrix_that_is_no_number_is_not_optimal():
    X = jnp.array([[[0.0, 0.5], [-1.0, 0.5], [-9.0, 4.0]]])
    data = TokenSelection(X, jnp.ones(1), jnp.array([[1.0, 0.0]]), jnp.array([0.0, 1.0]))
    tokens = jnp.array([0])
    assert not bool(is_locally_optimal(data, tokens, jnp.eye(2)))
    better = TokenSelection(X.at[0, 0, 1].set(0.6), data.y, data.z, data.v)
    assert bool(is_locally_optimal(better, tokens, jnp.eye(2)))
    assert not bool(is_locally_optimal(better, tokens, jnp.array([[1.0, 0.0], [jnp.nan, 1.0]])))


def test_a_margin_of_exactly_one_and_the_tolerance_counts_as_one():
    X, one = jnp.array([[[0.0], [-1.25], [-1.375]]]), jnp.ones((1, 1))
    found = support_tokens(X, one, jnp.array([0]), one, tolerance=0.25)
    assert found.tolist() == [[False, True, False]]
