"""Generators keep what they promise; bad data are refused in one line."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.token_selection import (
    TokenSelection,
    make_infeasible_selection,
    make_separable_selection,
    make_support_selection,
    make_token_selection,
    optimal_tokens,
    token_scores,
    validate,
)

EPS = np.finfo(np.float64).eps


def differences(data):
    best = jnp.take_along_axis(data.X, data.tokens[:, None, None], 1)
    return best - data.X


@pytest.mark.thorough
def test_unit_sphere():
    data = make_token_selection(jax.random.key(0))
    for rows in (data.X, data.z, data.v):
        assert jnp.allclose(jnp.linalg.norm(rows, axis=-1), 1, atol=8 * EPS)
    assert set(np.asarray(data.y).tolist()) <= {-1.0, 1.0}
    validate(data)


@pytest.mark.thorough
def test_separable_keeps_scores_and_is_separated():
    key = jax.random.key(3)
    data = make_separable_selection(key, margin=2.0)
    plain = make_token_selection(jax.random.split(key)[0])
    # Moves are orthogonal to v: scores keep ten products' rounding, times moves of size ~ 10.
    assert jnp.allclose(token_scores(data), token_scores(plain), rtol=0, atol=1000 * EPS)
    margins = jnp.einsum("ntd,de,ne->nt", differences(data), data.separator, data.z)
    assert jnp.all((margins >= 1 - 1000 * EPS) | (jnp.arange(8)[None, :] == data.tokens[:, None]))


@pytest.mark.thorough
def test_infeasible_pairs_oppose_each_other():
    data = make_infeasible_selection(jax.random.key(1), n=4, T=3)
    features = differences(data)[:, :, :, None] * data.z[:, None, None, :]
    assert jnp.array_equal(features[0::2], -features[1::2])
    scores = token_scores(data)
    # Ten products each; rows of one product may be summed in different orders.
    assert jnp.allclose(scores[0::2], scores[1::2], rtol=0, atol=16 * EPS)
    assert jnp.array_equal(data.tokens, optimal_tokens(data))


@pytest.mark.thorough
@pytest.mark.parametrize(("n", "T", "d"), [(1, 2, 4), (3, 2, 5), (2, 4, 8)])
def test_every_other_token_is_a_support_token(n, T, d):
    """The SVM's gradient condition at equal multipliers, and all constraints at one."""
    data = make_support_selection(jax.random.key(2), n=n, T=T, d=d)
    assert jnp.array_equal(optimal_tokens(data), data.tokens)
    gaps = jnp.sort(jnp.max(token_scores(data), 1)[:, None] - token_scores(data), axis=1)[:, 1:]
    assert jnp.allclose(gaps, 1, atol=64 * EPS)
    D = differences(data)
    for p in (1.5, 3.0):
        q = p / (p - 1)
        mean = jnp.sum(D, axis=1) / (T - 1)
        A = mean[:, :, None] * data.z[:, None, :]
        direction = jnp.sum(
            jnp.sign(A)
            * jnp.abs(A) ** (q - 1)
            / jnp.sum(jnp.abs(A) ** q, axis=(1, 2), keepdims=True),
            axis=0,
        )
        margins = jnp.einsum("ntd,de,ne->nt", D, direction, data.z)
        others = jnp.sort(margins, axis=1)[:, 1:]
        assert jnp.allclose(others, 1, atol=256 * EPS)


def test_counts_that_do_not_fit_are_refused():
    with pytest.raises(UserError, match="pairs"):
        make_infeasible_selection(jax.random.key(0), n=3)
    with pytest.raises(UserError, match="do not fit"):
        make_support_selection(jax.random.key(0), n=5, d=4)


def altered(**fields):
    data = make_token_selection(jax.random.key(0), n=2, T=3, d=4)
    for name, value in fields.items():
        data = eqx.tree_at(lambda t, name=name: getattr(t, name), data, value)
    return data


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (altered(y=jnp.array([1.0, 2.0])), r"y\[1\] = 2.0 is not \+1 or -1"),
        (altered(v=jnp.array([0.0, np.nan, 0.0, 0.0])), r"v\[1\] = nan is not finite"),
        (altered(X=jnp.full((2, 3, 4), np.inf)), r"X\[0, 0, 0\] = inf is not finite"),
        (altered(z=jnp.ones((2, 3))), r"z has shape \(2, 3\)"),
        (altered(X=jnp.ones((2, 1, 4))), "T = 1"),
        (altered(X=jnp.ones((0, 3, 4)), y=jnp.ones(0), z=jnp.ones((0, 4))), "no sample"),
    ],
)
def test_bad_data_are_refused_in_one_line(data: TokenSelection, message):
    with pytest.raises(UserError, match=message) as caught:
        validate(data)
    assert "\n" not in str(caught.value)
