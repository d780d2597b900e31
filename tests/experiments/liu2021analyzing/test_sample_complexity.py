"""What the experiment rests on: its networks are the library's, its teachers are balanced."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.experiments.liu2021analyzing.sample_complexity import (
    EXPERIMENT,
    _attended,
    _outputs,
    _ratio,
    _tasks,
    _teacher,
    two_layer,
)
from attlas.models.attention.fixed_attention import (
    EuclideanAttention,
    SoftmaxAttention,
    TopAttention,
)
from attlas.models.networks.two_layer import TwoLayer
from attlas.runs.cell import Scale
from attlas.runs.record import Record

EPS = np.finfo(float).eps


def test_networks_are_those_of_the_library():
    rng = np.random.default_rng(0)
    W1, w2, x = rng.standard_normal((5, 4)), rng.standard_normal(4), rng.standard_normal(5)
    expected = TwoLayer(jnp.asarray(W1), jnp.asarray(w2))(jnp.asarray(x))
    theta = jnp.asarray(np.r_[W1.ravel(), w2])
    assert float(two_layer(theta, jnp.asarray(x), jnp.zeros(0))) == pytest.approx(float(expected))
    assert _outputs(x[None], W1, w2)[0] == pytest.approx(float(expected))


def test_moving_weights_are_the_largest_of_a_softmax():
    rng = np.random.default_rng(1)
    x, M = rng.uniform(-1, 1, (6, 5)), rng.standard_normal((5, 5))
    # So high a temperature makes the weights equal up to its inverse.
    hot = 1e9
    attention = EuclideanAttention(TopAttention(SoftmaxAttention(jnp.asarray(M), hot), 2))
    weights = jax.vmap(attention)(jnp.abs(jnp.asarray(x)))
    np.testing.assert_allclose(_attended("moving", 2, x, M), x * np.asarray(weights), atol=1e-7)
    assert (_attended("fixed", 2, x, M)[:, 2:] == 0).all()


def test_balanced_teachers_have_mean_zero_on_every_support():
    W1, w2 = _teacher(np.random.default_rng(2), 4, 4)
    x = np.random.default_rng(3).uniform(-1, 1, 4)
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=4)))
    for support in ([1, 1, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]):
        values = _outputs(signs * x * np.array(support), W1, w2)
        assert abs(values.mean()) < 100 * EPS
        assert np.abs(values).max() > 0.01


def test_tasks_start_with_equal_weights_and_have_labels_of_one_size():
    s = {"p": 4, "multiples": [4], "d": 2, "fresh": 50, "s0": [2]}
    tasks = list(_tasks(s, 0))
    assert len(tasks) == 1 + 2 * 2
    norms = [np.linalg.norm(u[:, :2] * np.sqrt(2) - tasks[2][0][:, :2]) for u, _ in tasks[1:2]]
    assert norms[0] < 100 * EPS  # inputs with two fixed weights, and without attention
    for _, truth in tasks:
        assert truth[16:].std() == pytest.approx(1)


def test_ratio_of_pairs_that_differ_by_a_factor_has_no_spread():
    base = np.array([1.0, 2.0, 4.0])
    found = _ratio(3 * base, base)
    assert found.value == pytest.approx(3)
    assert found.high - found.low < 1e-12
    loose = _ratio(base, np.ones(3))
    assert loose.low < 7 / 3 < loose.high


def test_a_support_of_all_that_counts_is_reported_beside_the_papers_factor():
    cell = EXPERIMENT.cells(Scale.SMOKE)[0]
    arrays = EXPERIMENT.run(cell)
    assert arrays["error"].shape == (2, 1, 2, 2, 2)
    assert np.isfinite(arrays["error"]).all()
    record = Record("sample_complexity", cell, arrays, {}, "k")
    rows = EXPERIMENT.table([record]).to_dict("records")
    assert [row["paper (p/s0)^2"] for row in rows] == [4.0] * 4
    assert [row["corrected"] for row in rows] == ["2", "2", "1", "a floor, no ratio of n"]
