"""What the experiment rests on: its risk, its starts, and how points are told apart."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.experiments.liu2021analyzing.landscape import (
    EXPERIMENT,
    FAR,
    L2,
    LOST,
    MINIMUM,
    ORIGIN,
    SADDLE,
    SHARPNESS,
    _attended,
    _kinds,
    _network,
    _outputs,
    _starts,
    _teacher,
    risk,
)
from attlas.models.networks.two_layer import TwoLayer
from attlas.runs.cell import Scale
from attlas.runs.record import Record


def test_risk_is_that_of_the_librarys_network():
    rng = np.random.default_rng(0)
    W1, w2 = rng.standard_normal((3, 2)), rng.standard_normal(2)
    z, y = rng.standard_normal((5, 3)), rng.standard_normal(5)
    model = TwoLayer(jnp.asarray(W1), jnp.asarray(w2), sharpness=SHARPNESS)
    expected = np.asarray(jax.vmap(model)(jnp.asarray(z)))
    np.testing.assert_allclose(_outputs(z, W1, w2), expected, rtol=1e-12)
    theta = jnp.asarray(np.r_[W1.ravel(), w2])
    np.testing.assert_allclose(_network(theta, jnp.asarray(z[0]), jnp.zeros(0)), expected[0])
    weight = np.array([1.0, 1, 1, 0, 0])
    parts = (jnp.asarray(a) for a in (z, y, weight))
    found = risk((jnp.asarray(W1), jnp.asarray(w2)), *parts)
    penalty = L2 / 2 * (np.sum(W1**2) + np.sum(w2**2))
    assert float(found) == pytest.approx(np.mean((expected - y)[:3] ** 2) / 2 + penalty)


def test_the_origin_and_the_teacher_are_starts_and_a_third_has_equal_units():
    rng = np.random.default_rng(1)
    W1, w2 = _teacher(rng, 4, 2)
    first, second = _starts(rng, {"p": 4, "units": 2, "starts": 7}, W1, w2)
    assert not first[0].any()
    assert not second[0].any()
    np.testing.assert_array_equal(first[1], W1)
    np.testing.assert_array_equal(first[3, :, 0], first[3, :, 1])
    assert (first[2, :, 0] != first[2, :, 1]).all()


def test_attended_inputs_have_weights_of_norm_one():
    rng = np.random.default_rng(2)
    x = rng.choice([-1.0, 1.0], (6, 4)) * rng.uniform(0.5, 1, (6, 4))
    for task, count in (("attention", 2), ("baseline", 4)):
        weights = _attended(task, x, rng.standard_normal((4, 4))) / x
        np.testing.assert_allclose(np.sum(weights**2, axis=1), 1)
        assert ((weights > 0).sum(axis=1) == count).all()


def test_kinds_of_points():
    layers = [np.array([[1.0], [1.0], [0.0], [9.0], [1.0]])[:, :, None], np.ones((5, 1))]
    layers[1][2] = 0.0
    certificate = {
        "gradient_norm": np.array([0.0, 0.0, 0.0, 0.0, 1.0]),
        "smallest": np.array([0.1, -0.1, -0.1, 0.1, 0.1]),
        "rounding": np.full(5, 1e-12),
    }
    found = _kinds(layers, [1.0, 1.0], certificate, 1e-8)
    assert found.tolist() == [MINIMUM, SADDLE, ORIGIN, FAR, LOST]


def test_the_origin_is_found_and_its_error_is_the_variance():
    (cell,) = EXPERIMENT.cells(Scale.SMOKE)
    arrays = EXPERIMENT.run(cell)
    assert (arrays["kind"][:, :, 0] == ORIGIN).all()
    # Truth has deviation 1 over the fresh inputs, and mean zero up to their number's root.
    assert np.all(np.abs(arrays["error"][:, :, 0] - 1) < 5 / cell.settings["fresh"])
    record = Record("landscape", cell, arrays, {}, "k")
    assert len(EXPERIMENT.table([record])) == 3 * 2
