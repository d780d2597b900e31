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


def normalised(array):
    return array / np.sqrt(np.sum(np.square(array), axis=-1, keepdims=True))


def test_tokens_queries_and_head_are_gaussian_directions():
    """Whose four keys are different ones, so that nothing depends on anything else."""
    data = make_token_selection(jax.random.key(5), n=2, T=3, d=4)
    tokens, queries, head, labels = jax.random.split(jax.random.key(5), 4)
    gaussian = {"X": (tokens, (2, 3, 4)), "z": (queries, (2, 4)), "v": (head, (4,))}
    for name, (key, shape) in gaussian.items():
        wanted = normalised(np.asarray(jax.random.normal(key, shape)))
        np.testing.assert_allclose(getattr(data, name), wanted, rtol=4 * EPS)
    assert np.array_equal(data.y, jax.random.rademacher(labels, (2,)))
    scores = [[data.y[i] * sum(data.X[i, t] * data.v) for t in range(3)] for i in range(2)]
    np.testing.assert_allclose(token_scores(data), scores, rtol=0, atol=8 * EPS)
    assert optimal_tokens(data).tolist() == np.argmax(scores, axis=1).tolist()


def test_separable_tokens_move_up_to_the_margin_and_no_further():
    data = make_separable_selection(jax.random.key(3), n=2, T=3, d=4, margin=0.5)
    draw, plant = jax.random.split(jax.random.key(3))
    before = make_token_selection(draw, 2, 3, 4)
    W = np.asarray(jax.random.normal(plant, (4, 4)))
    moves = 0
    for i in range(2):
        u, best = W @ np.asarray(before.z[i]), int(optimal_tokens(before)[i])
        along = u - (u @ before.v) * before.v
        for t in range(3):
            lacks = 0.5 - (before.X[i, best] - before.X[i, t]) @ u
            short = max(float(lacks), 0.0) * (t != best)
            moves += short > 0
            wanted = before.X[i, t] - short * along / (along @ u)
            np.testing.assert_allclose(data.X[i, t], wanted, rtol=0, atol=64 * EPS)
        assert int(data.tokens[i]) == best
    assert 0 < moves < 4
    np.testing.assert_allclose(data.separator, 2 * W, rtol=2 * EPS)


def test_an_infeasible_pair_is_a_sample_and_its_mirror():
    data = make_infeasible_selection(jax.random.key(1), n=4, T=3, d=4)
    half = make_token_selection(jax.random.key(1), 2, 3, 4)
    for i in range(4):
        sign = (-1.0) ** i
        assert np.array_equal(data.X[i], sign * half.X[i // 2])
        assert (data.y[i], data.tokens[i]) == (
            sign * half.y[i // 2],
            np.argmax(half.y[i // 2] * half.X[i // 2] @ half.v),
        )
        assert np.array_equal(data.z[i], half.z[i // 2])
    assert np.array_equal(data.v, half.v)


@pytest.mark.parametrize("shape", [(3, 2, 5), (2, 3, 7)])
def test_support_tokens_are_those_written_out(shape):
    n, T, d = shape
    data = make_support_selection(jax.random.key(2), n=n, T=T, d=d)
    draw, labels, place = jax.random.split(jax.random.key(2), 3)
    head, *rows = np.asarray(jax.random.normal(draw, (1 + n * (T + 2), d)))
    front = np.arange(d) < (d if T == 2 else d // 2)
    v = normalised(head * front) + head * ~front
    np.testing.assert_allclose(data.v, v, rtol=8 * EPS)
    assert np.array_equal(data.y, jax.random.rademacher(labels, (n,)))
    assert np.array_equal(data.tokens, jax.random.randint(place, (n,), 0, T))
    for i in range(n):
        block = rows[i * (T + 2) : (i + 1) * (T + 2)]
        unit = v * front
        noise = block[0] * front
        g = float(data.y[i]) * unit + (noise - noise @ unit * unit) / 2 / np.sqrt(d)
        spread = np.array([row * ~front / np.sqrt(d) for row in block[3:]])
        spread -= spread.mean(axis=0)
        if T > 2:
            back = normalised(v * ~front)
            spread -= np.outer(spread @ back, back)
        middle = normalised(block[1]) / 4
        tokens = [middle + g / 2] + [middle - g / 2 - e for e in spread]
        wanted = np.roll(tokens, int(data.tokens[i]), axis=0)
        np.testing.assert_allclose(data.X[i], wanted, rtol=0, atol=16 * EPS)
        query = np.where(np.arange(d) % n == i, block[2], 0)
        np.testing.assert_allclose(data.z[i], normalised(query), rtol=8 * EPS)
    # The other tokens: all of score one below.
    scores = np.sort(token_scores(data), axis=1)
    np.testing.assert_allclose(scores[:, -1:] - scores[:, :-1], 1, rtol=64 * EPS)


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
