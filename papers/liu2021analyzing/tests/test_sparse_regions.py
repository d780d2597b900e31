"""Counts of regions against the known maxima and against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.bounds.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
)
from liu2021analyzing.library.measures.linear_regions import sampled_cells
from liu2021analyzing.library.training import sparse_regions
from liu2021analyzing.library.training.sparse_regions import (
    marked_words,
    masked_regions,
    softmax_regions,
    trained_regions,
)


def test_random_networks_attain_the_maxima_of_the_inputs_they_see():
    found = masked_regions(np.random.default_rng(0), 5, 3, 2, seed=0)
    for s0 in (1, 2, 3):
        assert np.all(found[:, s0 - 1, 0] == liu2021_regions(5, s0))
        assert np.all(found[:, s0 - 1, 1] == liu2021_central_regions_maximum(5, s0))
    assert np.all(found[..., 2] <= found[..., 0])


def test_cold_softmax_has_one_input_and_as_many_regions_as_units():
    found = softmax_regions(np.random.default_rng(0), 4, 3, 3, [1e-3, 1e3], points=5000)
    np.testing.assert_allclose(found.support, np.tile([1.0, 3.0], (3, 1)), rtol=1e-2)
    assert np.all(found.met[:, 0] <= 5)
    assert np.all(found.met <= liu2021_regions(4, 3))


def test_sharper_logits_concentrate_and_training_learns():
    training = {"step_size": 0.3, "steps": 300}
    states = [(0, 1.0), (1, 1.0), (1, 5.0)]
    found = trained_regions(np.random.default_rng(0), 4, 3, 32, training, states, 2, 1000)
    assert found.support[2] < found.support[1]
    assert found.loss[1] < found.loss[0]
    assert np.all(found.met <= found.exact)


def test_marks_and_labels():
    x, y = marked_words(np.random.default_rng(1), 200, 3)
    assert x.shape == (200, 3, 3)
    assert set(y.tolist()) == {-1.0, 1.0}
    assert set(x[:, 1].argmax(axis=1).tolist()) == {0, 1, 2}
    assert (np.abs(x[:, 0]) == 1).all()
    assert (np.abs(x[:, 2]) <= 1).all()
    with pytest.raises(UserError, match="n = 0"):
        marked_words(np.random.default_rng(1), 0, 3)


def test_softmax_networks_are_those_of_the_stated_draws():
    n1, p, temperatures, points = 4, 3, (0.7, 2.5), 13
    found = softmax_regions(np.random.default_rng(6), n1, p, 2, temperatures, points)
    draw = np.random.default_rng(6)
    cube = 2 * draw.random((points, p)) - 1
    for k in range(2):
        W, b = draw.standard_normal((n1, p)), 0.3 * draw.standard_normal(n1)
        logits = draw.standard_normal(p)
        for i, temperature in enumerate(temperatures):
            f = np.exp(logits / temperature)
            ordered = np.sort(f)[::-1] / np.sqrt(np.sum(f**2))
            s0 = 1 + np.sum(np.sqrt(np.cumsum(ordered**2)) < 0.9)
            support = np.sum(f) ** 2 / np.sum(f**2)
            signs = {tuple(W @ (x * f / np.linalg.norm(f)) + b > 0) for x in cube}
            measured = found.s0[k, i], found.support[k, i], found.met[k, i]
            np.testing.assert_allclose(measured, (s0, support, len(signs)), rtol=1e-12)


def test_masked_networks_are_those_of_the_stated_draws():
    """Of the plane by the faces of an arrangement: 1 + lines + crossings."""
    found = masked_regions(np.random.default_rng(2), 3, 2, 2, seed=4)
    draw = np.random.default_rng(2)
    for k in range(2):
        W = draw.standard_normal((3, 2))
        b = draw.standard_normal((2, 3))[0]
        for s0 in (1, 2):
            met = sampled_cells(W[:, :s0], b, key=jax.random.key(4000 + k))
            assert found[k, s0 - 1].tolist() == [(4, 7)[s0 - 1], (2, 6)[s0 - 1], met]


def test_lines_are_drawn_from_a_key_of_the_seed_and_the_network(monkeypatch):
    keys = []

    def sampled_cells(W, b, *, key):
        keys.append(jax.random.key_data(key).tolist())
        return len(keys)

    monkeypatch.setattr(sparse_regions, "sampled_cells", sampled_cells)
    found = masked_regions(np.random.default_rng(2), 3, 2, 3, seed=4)
    expected = [jax.random.key_data(jax.random.key(4000 + k)).tolist() for k in range(3)]
    assert keys == [key for key in expected for _ in range(2)]
    assert found[..., 2].tolist() == [[1, 2], [3, 4], [5, 6]]


def test_marked_words_are_those_of_the_stated_draws():
    x, y = marked_words(np.random.default_rng(3), 7, 4)
    draw = np.random.default_rng(3)
    signs, marked = draw.choice([-1.0, 1.0], (7, 4)), draw.integers(4, size=7)
    noise = 2 * draw.random((7, 4)) - 1
    np.testing.assert_array_equal(x[:, 0], signs)
    np.testing.assert_array_equal(x[:, 1], np.arange(4) == marked[:, None])
    np.testing.assert_allclose(x[:, 2], noise, rtol=0, atol=1e-15)
    assert y.tolist() == [row[place] for row, place in zip(signs, marked, strict=True)]


def test_one_step_of_training_by_hand(monkeypatch):
    """Draws, Xavier's limits, a gradient step, attention columns and accuracy from definitions.

    Before the step no unit is active on the second sample: an output of zero is wrong.
    """
    n1, p, samples, frozen, points = 5, 3, 6, 2, 7
    calls = []

    def frozen_regions(model, weights, cube):
        calls.append((model, weights, cube))
        return len(calls), len(calls) / 2

    monkeypatch.setattr(sparse_regions, "frozen_regions", frozen_regions)
    training, states = {"step_size": 0.4, "steps": 2}, [(0, 1.0), (1, 3.0)]
    draw = np.random.default_rng(2)
    found = trained_regions(draw, n1, p, samples, training, states, frozen, points)
    draw = np.random.default_rng(2)
    x, y = marked_words(draw, samples, p)
    shapes = ((2, 3), (2, 3), (1, 3), (p, n1), (n1, 1))
    start = [np.sqrt(6 / (m + n)) * (2 * draw.random((m, n)) - 1) for m, n in shapes]
    parameters = [jnp.asarray(a) for a in (*start[:4], start[4][:, 0], np.zeros(n1), 0.0)]
    cube = 2 * draw.random((points, p)) - 1

    def forward(parameters, x):
        W_Q, W_K, W_V, W1, w2, b1, b2 = parameters
        weights = jax.nn.softmax((W_K @ x).T @ (W_Q @ x) / jnp.sqrt(2.0), axis=0)
        hidden = jnp.maximum((W_V @ x @ weights).T.reshape(-1) @ W1 + b1, 0)
        return hidden @ w2 + b2, weights

    def loss(parameters):
        outputs = jax.vmap(lambda x: forward(parameters, x)[0])(x)
        return jnp.mean(jnp.log1p(jnp.exp(-y * outputs)))

    value, slope = jax.jit(jax.value_and_grad(loss))(parameters)
    later = [a - 0.4 * g for a, g in zip(parameters, slope, strict=True)]
    np.testing.assert_allclose(found.loss, [value, loss(later)], rtol=1e-10)
    later[0] = 3.0 * later[0]
    for k, each in enumerate((parameters, later)):
        outputs, weights = jax.jit(jax.vmap(forward, (None, 0)))(each, x)
        columns = np.swapaxes(np.asarray(weights), 1, 2).reshape(-1, p)
        support = np.mean(1 / np.sum(columns**2, axis=1))
        ordered = -np.sort(-columns, axis=1)
        share = np.cumsum(ordered**2, axis=1) / np.sum(columns**2, axis=1)[:, None]
        s0 = np.mean(1 + np.sum(share < 0.9**2, axis=1))
        accuracy = np.mean(np.sign(outputs) == y)
        assert (float(outputs[1]) == 0) == (k == 0)
        measured = [getattr(found, name)[k] for name in ("s0", "support", "accuracy")]
        np.testing.assert_allclose(measured, (s0, support, accuracy), rtol=1e-9)
        assert (found.exact[k], found.met[k]) == (k + 1, (k + 1) / 2)
        np.testing.assert_allclose(calls[k][1], weights[:frozen], rtol=1e-9)
        np.testing.assert_allclose(calls[k][2], cube, rtol=0, atol=1e-15)
