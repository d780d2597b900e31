"""Balanced teachers, attention weights of norm one, and outputs that are the library's."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.data.attended_regression import (
    attended_inputs,
    attended_tasks,
    attention_matrix,
    balanced_layers,
    layer_outputs,
)
from liu2021analyzing.library.models.fixed_attention import (
    EuclideanAttention,
    SoftmaxAttention,
    TopAttention,
)
from liu2021analyzing.library.models.two_layer import TwoLayer

EPS = np.finfo(float).eps


@pytest.mark.parametrize("sharpness", [None, 5.0])
def test_outputs_are_those_of_the_librarys_network(sharpness):
    rng = np.random.default_rng(0)
    W1, w2, x = rng.standard_normal((5, 4)), rng.standard_normal(4), rng.standard_normal((3, 5))
    model = TwoLayer(jnp.asarray(W1), jnp.asarray(w2), sharpness=sharpness)
    expected = np.asarray(jax.vmap(model)(jnp.asarray(x)))
    np.testing.assert_allclose(layer_outputs(x, W1, w2, sharpness), expected, rtol=1e-12)


def test_balanced_teachers_have_mean_zero_on_every_support():
    W1, w2 = balanced_layers(np.random.default_rng(2), 4, 4)
    x = np.random.default_rng(3).uniform(-1, 1, 4)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    for support in ([1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]):
        values = layer_outputs(signs * x * np.array(support), W1, w2)
        assert abs(values.mean()) < 100 * EPS
        assert np.abs(values).max() > 0.01
    with pytest.raises(UserError, match="even number"):
        balanced_layers(np.random.default_rng(0), 4, 3)


@pytest.mark.thorough
def test_moving_weights_are_the_largest_of_a_softmax():
    rng = np.random.default_rng(1)
    x, M = rng.uniform(-1, 1, (6, 5)), rng.standard_normal((5, 5))
    # So high a temperature makes the weights equal up to its inverse.
    hot = 1e9
    attention = EuclideanAttention(TopAttention(SoftmaxAttention(jnp.asarray(M), hot), 2))
    weights = jax.vmap(attention)(jnp.abs(jnp.asarray(x)))
    np.testing.assert_allclose(attended_inputs(x, 2, M), x * np.asarray(weights), atol=1e-7)


@pytest.mark.parametrize("moving", [False, True])
def test_weights_have_norm_one_and_s0_of_them_count(moving):
    rng = np.random.default_rng(2)
    x = rng.choice([-1.0, 1.0], (6, 4)) * rng.uniform(0.5, 1, (6, 4))
    for s0 in (1, 2, 4):
        weights = attended_inputs(x, s0, attention_matrix(rng, 4) if moving else None) / x
        np.testing.assert_allclose(np.sum(weights**2, axis=1), 1)
        assert ((weights > 0).sum(axis=1) == s0).all()
        assert moving or (weights[:, s0:] == 0).all()
    with pytest.raises(UserError, match="s0 = 5"):
        attended_inputs(x, 5)


@pytest.mark.parametrize("s0", [1, 7])
def test_the_largest_of_many_weights_count_whatever_their_order(s0):
    """So many inputs that a partition does not sort them; each weight reads its own input."""
    rng = np.random.default_rng(4)
    x, factors = rng.uniform(-1, 1, (3, 2000)), rng.standard_normal(2000)
    found = attended_inputs(x, s0, np.diag(factors))
    for own, sample in zip(found, x, strict=True):
        largest = np.argsort(factors * abs(sample))[-s0:]
        expected = np.zeros(2000)
        expected[largest] = sample[largest] / s0**0.5
        np.testing.assert_allclose(own, expected, rtol=1e-14)


def test_tasks_start_with_equal_weights_and_have_labels_of_one_size():
    tasks = list(attended_tasks(np.random.default_rng(0), 4, 2, [2, 3], 16, 50))
    assert len(tasks) == 1 + 2 * 2 * 2
    x = tasks[2][0]
    assert np.abs(tasks[0][0] * 2 - x).max() < 100 * EPS
    np.testing.assert_allclose(tasks[1][0][:, :2] * np.sqrt(2), x[:, :2])
    for u, truth in tasks:
        assert u.shape == (66, 4)
        assert truth[16:].std() == pytest.approx(1)
    # Both students of a task have its truth, and fixed and moving weights are different tasks.
    np.testing.assert_array_equal(tasks[1][1], tasks[2][1])
    assert np.abs(tasks[1][1] - tasks[5][1]).max() > 0.1


def test_tasks_are_those_of_the_stated_draws():
    """Weights, inputs and truths of each task from the generator's stream, sample by sample."""
    p, d, n, fresh, sizes = 5, 6, 4, 9, (2, 3)
    tasks = list(attended_tasks(np.random.default_rng(3), p, d, sizes, n, fresh))
    draw = np.random.default_rng(3)
    half, w2 = draw.standard_normal((p, 3)), draw.choice([-1.0, 1.0], 3)
    x, M = draw.uniform(-1, 1, (n + fresh, p)), draw.standard_normal((p, p))
    signs = np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    M = M - M.sum(axis=1)[:, None] / p
    expected = [(x / 5**0.5,)]
    for moving in (False, True):
        for s0 in sizes:
            attended = np.zeros_like(x)
            for row, sample in zip(attended, x, strict=True):
                places = np.argsort(-M @ np.abs(sample))[:s0] if moving else np.arange(s0)
                row[places] = sample[places] / s0**0.5
            expected.append((attended, x))
    at = 0
    for inputs in expected:
        u = inputs[0]
        mirrored = (signs * u) @ half
        truth = (np.maximum(u @ half, 0) - np.maximum(mirrored, 0)) @ w2
        centred = truth[n:] - truth[n:].sum() / fresh
        truth /= ((centred**2).sum() / fresh) ** 0.5
        for read in inputs:
            np.testing.assert_allclose(tasks[at][0], read, rtol=1e-13)
            np.testing.assert_allclose(tasks[at][1], truth, rtol=1e-11, atol=1e-13)
            at += 1
    assert at == len(tasks)


def test_output_weights_have_size_one_and_both_signs():
    w2 = balanced_layers(np.random.default_rng(0), 3, 40)[1]
    assert set(w2[:20].tolist()) == {-1.0, 1.0}
    np.testing.assert_array_equal(w2[20:], -w2[:20])
