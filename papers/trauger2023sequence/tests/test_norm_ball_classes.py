"""Steps and values of the classes in NumPy, at radii that are no powers of each other."""

import jax.numpy as jnp
import numpy as np
import pytest

from trauger2023sequence.library.measures.norm_ball_classes import (
    AttentionClass,
    LinearClass,
    Sequences,
)

DRAW = np.random.default_rng(0)
RADIUS, VALUE_RADIUS, FACTOR, SLOPE, STEP = 3.0, 5.0, 0.7, 1.1, 0.3
ATTENTION = AttentionClass("1,1", *map(jnp.array, (RADIUS, VALUE_RADIUS, FACTOR, SLOPE)))
LINEAR = LinearClass("1,1", jnp.array(RADIUS))
X, QUERIES = DRAW.normal(size=(6, 4, 3)), DRAW.normal(size=(6, 3))
SAMPLE = Sequences(jnp.asarray(X), jnp.asarray(QUERIES))


def along(gradient, even):
    """Steepest ascent on the l_1 ball of the entries, or the direction of the gradient."""
    if not even:
        return gradient / np.sqrt((gradient**2).sum())
    corner = np.abs(gradient) == np.abs(gradient).max()
    return np.where(corner, np.sign(gradient), 0)


@pytest.mark.parametrize("even", [True, False])
def test_a_step_is_of_its_length_in_radii(even):
    W, G = DRAW.normal(size=(2, 3, 3))
    v, g = DRAW.normal(size=(2, 3, 1))
    arguments = jnp.array(STEP), jnp.array(even)
    found = LINEAR.ascend(jnp.asarray(W), jnp.asarray(G), *arguments)
    np.testing.assert_allclose(found, W + 0.9 * along(G, even), rtol=1e-14)
    parameters = jnp.asarray(W), jnp.asarray(v), jnp.array(-1.0)
    gradient = jnp.asarray(G), jnp.asarray(g), jnp.array(8.0)
    moved, moved_v, sign = ATTENTION.ascend(parameters, gradient, *arguments)
    np.testing.assert_allclose(moved, W + 0.9 * along(G, even), rtol=1e-14)
    np.testing.assert_allclose(moved_v, v + 1.5 * along(g, even), rtol=1e-14)
    assert float(sign) == -1


def test_values_are_those_of_the_printed_function():
    W, v = DRAW.normal(size=(3, 3)), DRAW.normal(size=(3, 1))
    found = ATTENTION((jnp.asarray(W), jnp.asarray(v), jnp.array(-1.0)), SAMPLE)
    expected = []
    for tokens, query in zip(X, QUERIES, strict=True):
        weights = np.exp(tokens @ W @ query)
        pooled = tokens.T @ (weights / weights.sum())
        expected.append(-FACTOR * max(0.0, float(v[:, 0] @ pooled)))
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    assert 0 < np.count_nonzero(expected) < 6
    signs = DRAW.choice([-1.0, 1.0], (2, 6))
    sums = [sum(s * C for s, C in zip(row, X, strict=True)) for row in signs]
    np.testing.assert_allclose(LINEAR(jnp.asarray(X[0]), SAMPLE.tokens), (X[0] * X).sum((1, 2)))
    np.testing.assert_allclose(
        LINEAR.suprema(jnp.asarray(signs), SAMPLE.tokens),
        [RADIUS / 6 * np.abs(C).max() for C in sums],
    )


def test_largest_values_are_those_of_the_radii():
    assert LINEAR.largest(SAMPLE.tokens) == pytest.approx(RADIUS * np.abs(X).max())
    assert ATTENTION.largest(SAMPLE) == pytest.approx(
        FACTOR * SLOPE * VALUE_RADIUS * np.abs(X).max()
    )


def test_starts_are_normal_draws_of_twice_the_radius_with_signs_in_turn():
    W, v, signs = ATTENTION.draw(np.random.default_rng(5), (2, 4), SAMPLE)
    draw = np.random.default_rng(5)
    expected = 2 * RADIUS / 3 * draw.normal(size=(2, 4, 3, 3))
    expected[:, 0] = 0
    np.testing.assert_allclose(W, expected, rtol=1e-14)
    np.testing.assert_allclose(
        v, 2 * VALUE_RADIUS / np.sqrt(3) * draw.normal(size=(2, 4, 3, 1)), rtol=1e-14
    )
    np.testing.assert_array_equal(signs, [[1, -1, 1, -1]] * 2)
    linear = LINEAR.draw(np.random.default_rng(5), (2, 4), SAMPLE.tokens)
    np.testing.assert_array_equal(linear, np.random.default_rng(5).normal(size=(2, 4, 4, 3)))
