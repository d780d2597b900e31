"""Exact counts against Zaslavsky's formulas, known arrangements, and regions merged by hand."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from liu2021analyzing.library.bounds.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
)
from liu2021analyzing.library.measures.cell_enumeration import enumerate_cells
from liu2021analyzing.library.measures.linear_regions import (
    _signs,
    activation_patterns,
    count_cells,
    count_linear_regions,
    frozen_regions,
    sampled_cells,
)
from liu2021analyzing.library.models.self_attention_mlp import (
    SelfAttentionMLP,
    make_self_attention_mlp,
)

KEY = jax.random.key(0)


@pytest.mark.parametrize(("n", "s"), [(5, 1), (8, 2), (9, 3), (7, 4), (3, 5)])
def test_generic_arrangements_attain_the_maxima(n, s):
    draw = np.random.default_rng(n)
    W, b = draw.standard_normal((n, s)), draw.standard_normal(n)
    assert count_cells(W, b) == liu2021_regions(n, s)
    assert count_cells(W) == liu2021_central_regions_maximum(n, s)


def braid(s: int) -> np.ndarray:
    """Hyperplanes x_i = x_j."""
    eye = np.eye(s)
    return np.array([eye[i] - eye[j] for i in range(s) for j in range(i)])


@pytest.mark.parametrize(
    ("W", "b", "cells"),
    [
        (braid(4), None, 24),
        (braid(5), None, 120),
        (np.eye(4), None, 16),
        (np.repeat(np.eye(2), 3, axis=0), np.array([0.0, 1, 2, 0, 1, 2]), 16),
        (np.ones((4, 3)), np.array([0.0, 1, 1, 5]), 4),
        (np.array([[1.0, 2], [2, 4], [0, 0]]), np.array([1.0, 2, 3]), 2),
        (np.zeros((3, 2)), None, 1),
        # Central lines at all multiples of 1/7: equal ones count once.
        (np.array([[1.0, k] for k in range(7)]), None, 14),
    ],
)
def test_degenerate_arrangements_are_counted_exactly(W, b, cells):
    assert count_cells(W, b) == cells


def test_thirds_are_generic_until_they_are_rounded_back():
    # Three lines through the point (1/10, 3/10), which is not a float.
    W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    b = -np.array([0.1, 0.2, 0.1 + 0.2])
    assert count_cells(W, b) == 7
    assert count_cells(W, b, denominator=100) == 6


def test_the_construction_of_theorem_4_has_one_more_piece_in_every_direction():
    q, s = 3, 2
    W = np.vstack([np.outer([1.0, 2, 2], row) for row in np.eye(s)])
    b = np.tile([0.0, -1, -2], s)
    w2 = np.tile([1.0, -1, 1], s)
    built = liu2021_regions(q * s, s, "corrected")
    assert count_cells(W, b) == count_linear_regions(W, w2, b) == built


def merged_by_hand(W: np.ndarray, b: np.ndarray, w2: np.ndarray) -> int:
    """Cells joined across every facet where the function's gradient does not change."""
    signs = enumerate_cells(W, b).unwrap().signs
    gradients = (signs > 0) * w2 @ W
    parent = list(range(len(signs)))

    def root(k: int) -> int:
        while parent[k] != k:
            k = parent[k]
        return k

    rows = np.c_[W, b] / np.linalg.norm(W, axis=1)[:, None]
    same = np.abs(rows @ rows.T) ** 2
    lengths = np.diag(same) ** 0.5
    classes = np.isclose(same, lengths[:, None] * lengths[None, :], rtol=1e-12)
    for i in range(len(signs)):
        for j in range(i):
            crossed = np.flatnonzero(signs[i] != signs[j])
            facet = classes[crossed[0]][crossed].all()
            if facet and np.allclose(gradients[i], gradients[j], atol=1e-12):
                parent[root(i)] = root(j)
    return sum(root(k) == k for k in range(len(signs)))


def test_regions_of_the_function_are_cells_merged_where_nothing_changes():
    draw = np.random.default_rng(5)
    W, b = draw.standard_normal((4, 2)), draw.standard_normal(4)
    # Powers of two keep planes equal. Two kinks cancel, two add up, one unit is unused.
    W = np.vstack([W, -2 * W[:1], 4 * W[1:2]])
    b = np.r_[b, -2 * b[0], 4 * b[1]]
    w2 = np.array([2.0, 1.0, 0.0, 1.0, -1.0, 1.0])
    assert count_cells(W, b) == liu2021_regions(4, 2)
    assert count_linear_regions(W, w2, b) == merged_by_hand(W, b, w2) == 4
    w2[2] = 0.5
    assert count_linear_regions(W, w2, b) == merged_by_hand(W, b, w2) == 7


def test_a_known_mask_leaves_the_dimensions_that_it_keeps():
    draw = np.random.default_rng(6)
    W, mask = draw.standard_normal((6, 8)), np.array([1.0, 0, 0.5, 0, 0, 0, 0, 0])
    masked = W * mask[None, :]
    assert count_cells(masked) == liu2021_central_regions_maximum(6, 2)
    b = draw.standard_normal(6)
    assert count_linear_regions(masked, np.ones(6), b) == liu2021_regions(6, 2)


def test_sampling_is_a_lower_bound_that_becomes_sharp():
    draw = np.random.default_rng(7)
    W, b = draw.standard_normal((6, 2)), draw.standard_normal(6)
    few, many = (sampled_cells(W, b, key=KEY, lines=lines) for lines in (2, 3000))
    assert few < many <= count_cells(W, b)
    assert many >= 0.9 * count_cells(W, b)
    assert sampled_cells(braid(4), key=KEY, lines=1000) == math.factorial(4)
    assert sampled_cells(np.zeros((2, 2)), key=KEY) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: count_cells(np.array([[np.inf]])), "NaN or infinite"),
        (lambda: count_cells(np.random.default_rng(0).random((40, 20))), "over 1000000 cells"),
        (lambda: sampled_cells(np.eye(2), key=KEY, lines=0), "at least one"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(UserError, match=message):
        call()


def test_a_line_passes_the_cells_at_both_of_its_ends():
    # One point on the line cuts it in two, two points in three.
    assert sampled_cells(np.ones((1, 1)), key=KEY, lines=1) == 2
    assert sampled_cells(np.ones((2, 1)), np.array([0.0, 1.0]), key=KEY, lines=1) == 3


def test_many_points_meet_every_cell_and_few_points_at_most_themselves():
    rng = np.random.default_rng(0)
    W, b = rng.standard_normal((5, 2)), rng.standard_normal(5)
    # Cells of a plane reach far: points at several scales find them.
    points = 10 ** rng.uniform(-1, 3, (40_000, 1)) * rng.standard_normal((40_000, 2))
    assert activation_patterns(W, b, points) == count_cells(W, b)
    assert activation_patterns(W, b, points[:3]) <= 3
    with pytest.raises(UserError, match="one dimension"):
        activation_patterns(W, b, np.ones((3, 4)))


def test_units_of_the_frozen_network_are_those_of_the_model_at_its_input():
    model = make_self_attention_mlp(jax.random.key(0), 3, 1, 2, 1, 4, biases=True)
    x = jnp.array([[0.3, -1.0, 0.7]])
    A, values = np.asarray(model.attention(x)), np.asarray(model.W_V @ x)[0]
    units = np.maximum((A @ np.asarray(model.W1)).T @ values + np.asarray(model.b1), 0)
    np.testing.assert_allclose(units, model.features(x), rtol=1e-12)


def test_one_input_with_all_attention_leaves_half_lines():
    one = jnp.ones((1, 1))
    W1 = jnp.array([[1.0, 1.0, 2.0], [0.0, 0.0, 0.0]])
    model = SelfAttentionMLP(one, one, one, W1, jnp.ones(3), jnp.array([0.0, 1.0, 4.0]))
    first_word = np.array([[[1.0, 1.0], [0.0, 0.0]]])
    points = np.array([[-3.0, 5.0], [-1.5, 0.0], [-1.5, 9.0], [4.0, 0.0]])
    # Offsets 0, -1 and -2 on the first value cut a line into four; the points meet three.
    assert frozen_regions(model, first_word, points) == (4.0, 3.0)


def test_cells_on_the_stated_lines_by_flips_of_signs():
    """Far out the signs are those of the speeds; each crossing flips one."""
    draw = np.random.default_rng(4)
    W, b = draw.standard_normal((5, 3)), 6 * draw.standard_normal(5)
    W[3] = 0.0
    for lines in (1, 4):
        stream = generator(KEY)
        kept = [0, 1, 2, 4]
        extent = 1 + max(abs(b[k]) / np.linalg.norm(W[k]) for k in kept)
        seen = set()
        for _ in range(lines):
            start, direction = extent * stream.standard_normal((2, 3))
            speed, height = W[kept] @ direction, W[kept] @ start + b[kept]
            signs = -np.sign(speed)
            seen.add(tuple(signs))
            for k in np.argsort(-height / speed):
                signs[k] *= -1
                seen.add(tuple(signs))
        assert sampled_cells(W, b, key=KEY, lines=lines) == len(seen)


def test_points_within_rounding_of_a_hyperplane_are_left_out():
    """Threshold (d + 2) eps (|w| |x| + |b|) = 12 eps, for a value that is computed exactly."""
    eps, normals, offsets = np.finfo(float).eps, np.array([[1.0, 1.0], [1.0, 0.0]]), [0.5, 0.0]
    for steps, count in ((0, 0), (11, 0), (13, 1)):
        points = np.array([[1.0, -1.5 + steps * eps]])
        assert len(_signs(points, normals, np.array(offsets))) == count


def test_a_unit_is_inactive_on_its_hyperplane():
    on_it, below = [0.0, 1.0], [-1.0, 1.0]
    assert activation_patterns(np.eye(2), np.zeros(2), np.array([on_it, below])) == 1


def test_frozen_regions_are_means_over_inputs():
    one = jnp.ones((1, 1))
    W1 = jnp.array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    model = SelfAttentionMLP(one, one, one, W1, jnp.ones(3))
    both, first = np.eye(2), np.array([[1.0, 1.0], [0.0, 0.0]])
    points = np.array([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]])
    # Two lines through zero make four cells, of which points meet three; one line makes two.
    assert frozen_regions(model, np.stack([both, first]), points) == (3.0, 2.5)
