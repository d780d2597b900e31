"""Margins of selections, against a matrix known to be max-margin and against random ones."""

import numpy as np

from attlas.audit.data_level.selected_tokens import (
    HeadTokens,
    locally_optimal,
    random_selection,
    selected_tokens,
)
from attlas.solvers import max_margin
from attlas.solvers.attention_svm import attention_svm

DRAW = np.random.default_rng(13)
T, D, N, K = 6, 9, 3, 9


def heads(seen=None, *matrices):
    """One sequence and the matrices of its heads, as two factors with a wider query side."""
    tokens, queries = DRAW.normal(size=(T, D)), DRAW.normal(size=(N, D + 1))
    factors = matrices or [(DRAW.normal(size=(D, K)), DRAW.normal(size=(K, D + 1)))] * 2
    return HeadTokens(tokens, queries, factors, np.ones((N, T), bool) if seen is None else seen)


def test_agrees_with_the_svm_in_full_dimension():
    given = heads()
    found = selected_tokens(given)
    X = np.pad(given.tokens, ((0, 0), (0, 1)))
    full = attention_svm(np.stack([X] * N), given.queries, found.selection[0], 2.0)
    assert np.isclose(found.margin[0], 1 / np.linalg.norm(full.unwrap()), rtol=1e-7)
    W = np.pad(given.matrices[0][0] @ given.matrices[0][1], ((0, 1), (0, 0)))
    scores = X @ W @ given.queries.T
    assert np.array_equal(found.selection[0], scores.argmax(axis=0))


def test_the_svm_itself_is_max_margin_and_others_are_not():
    given = heads()
    first = selected_tokens(given)
    X = np.pad(given.tokens, ((0, 0), (0, 1)))
    best = attention_svm(np.stack([X] * N), given.queries, first.selection[0], 2.0).unwrap()
    own = given._replace(matrices=[(np.eye(D), best[:D])])
    found = selected_tokens(own)
    assert np.array_equal(found.selection[0], first.selection[0])
    assert np.isclose(found.cosine[0], 1, atol=1e-7)
    assert np.isclose(found.reached[0], found.margin[0], rtol=1e-6)
    assert first.cosine[0] < 0.99
    assert first.reached[0] < first.margin[0]


def test_what_a_row_does_not_see_is_no_constraint():
    seen = np.ones((N, T), bool)
    seen[:, 4:] = False
    given = heads(seen)
    cut = given._replace(tokens=given.tokens[:4], seen=seen[:, :4])
    whole, part = selected_tokens(given), selected_tokens(cut)
    assert np.array_equal(whole.selection, part.selection)
    assert np.allclose(whole.margin, part.margin, rtol=1e-7)
    assert not whole.margins[:, :, 4:].any()


def test_a_head_with_many_rows_is_solved_on_working_sets(monkeypatch):
    """All rows of a text between queries and keys, and the same constraints solved at once."""
    sizes, rows, tokens, width = [], 60, 40, 4
    unit = np.eye(width)
    keys, queries = DRAW.normal(size=(1, tokens, width)), DRAW.normal(size=(1, rows, width))
    given = HeadTokens(keys, queries, [(unit, unit)], np.ones((rows, tokens), bool))
    solve = max_margin.cutting_planes
    monkeypatch.setattr(
        max_margin,
        "cutting_planes",
        lambda part, *rest: sizes.append(part.shape) or solve(part, *rest),
    )
    found = selected_tokens(given)
    assert sizes == [(1, rows * (tokens - 1), width**2)]
    assert found.reached[0] <= found.margin[0]
    monkeypatch.setattr(max_margin, "_MANY_SMOOTH", np.inf)
    whole = selected_tokens(given)
    assert len(sizes) == 1
    np.testing.assert_allclose(found.margin, whole.margin, rtol=1e-8)
    np.testing.assert_allclose(found.cosine, whole.cosine, rtol=1e-4)


def test_a_repeated_token_cannot_be_selected():
    given = heads()
    tokens = given.tokens.copy()
    tokens[1] = tokens[0]
    found = selected_tokens(given._replace(tokens=tokens), np.zeros((2, N), int))
    assert np.array_equal(found.margin, [0, 0])
    assert np.isnan(found.cosine).all()
    assert not locally_optimal(found, np.ones((2, N, T))).any()


def test_local_optimality_asks_support_tokens_only():
    given = heads()
    found = selected_tokens(given)
    others = found.margins > 0
    support = others & (found.margins <= 1 + 1e-6)
    far = others & ~support
    assert support.any()
    assert far.any()
    better_far = np.where(far, 2.0, np.where(support, 0.0, 1.0))
    assert locally_optimal(found, better_far).all()
    better_near = np.where(support, 2.0, 1.0)
    assert not locally_optimal(found, better_near)[support.any(axis=2)].any()


def test_random_selections_are_visible_and_cover_all():
    seen = np.array([[True, True, False], [True, True, True]])
    found = random_selection(seen, 200, DRAW)
    assert set(found[:, 0]) == {0, 1}
    assert set(found[:, 1]) == {0, 1, 2}
