"""What the experiment rests on: its networks are the library's, its pairs are pairs."""

import jax.numpy as jnp
import numpy as np
import pytest

from attlas.experiments.liu2021analyzing.inconsistency import (
    EXPERIMENT,
    _change,
    _limit,
    _task,
    _weights,
    levels,
)
from attlas.experiments.liu2021analyzing.instances import no_attention, self_attention
from attlas.models.attention.self_attention_mlp import SelfAttentionMLP
from attlas.models.networks.two_layer import TwoLayer
from attlas.runs.cell import Scale
from attlas.runs.record import Record

SIZES = {"p": 3, "t": 2, "d_v": 2, "d": 4}


def test_self_attention_is_the_librarys_at_any_temperature():
    rng = np.random.default_rng(0)
    theta, x = rng.standard_normal(2 * 5 * 2 + 4 + 24 + 4 + 1), rng.uniform(-1, 1, (2, 3))
    W_Q, W_K = theta[:20].reshape(2, 5, 2)
    W_V, W1 = theta[20:24].reshape(2, 2), theta[24:48].reshape(6, 4)
    parts = (jnp.asarray(a) for a in (W_Q, W_K, W_V, W1, theta[48:52]))
    model = SelfAttentionMLP(*parts, b2=jnp.asarray(theta[52]), temperature=0.5)
    outputs = self_attention(3, 2, 5, 2, 4)
    found = outputs(jnp.asarray(theta), jnp.asarray(x), jnp.array([2.0]))
    assert float(found) == pytest.approx(float(model(jnp.asarray(x))), rel=1e-12)


def test_rows_of_zeros_change_nothing_once_the_factor_makes_up_for_them():
    few, more = (_weights(np.random.default_rng(1), SIZES, 1, padded, 1.0) for padded in (1, 4))
    x = jnp.asarray(np.random.default_rng(2).uniform(-1, 1, (2, 3)))
    first = self_attention(3, 2, 1, 2, 4)(jnp.asarray(few), x, jnp.array([1.0]))
    second = self_attention(3, 2, 4, 2, 4)(jnp.asarray(more), x, jnp.array([2.0]))
    assert float(first) == pytest.approx(float(second), rel=1e-12)


def test_the_network_without_attention_is_the_librarys():
    rng = np.random.default_rng(3)
    W1, w2 = rng.standard_normal((6, 4)), rng.standard_normal(4)
    x, b2 = rng.uniform(-1, 1, (2, 3)), 0.3
    model = TwoLayer(jnp.asarray(W1), jnp.asarray(w2), b2=jnp.asarray(b2))
    theta = jnp.asarray(np.r_[W1.ravel(), w2, b2])
    found = no_attention(3, 2, 4)(theta, jnp.asarray(x), jnp.zeros(1))
    assert float(found) == pytest.approx(float(model(jnp.asarray(x.T.ravel()))), rel=1e-12)


def test_tasks_of_a_seed_share_their_first_samples_and_their_truth():
    s = {**SIZES, "d_q": 2, "fresh": 40}
    short, long = _task(s, 0, 5), _task(s, 0, 9)
    np.testing.assert_array_equal(short.fresh, long.fresh)
    np.testing.assert_array_equal(short.x, long.x[:5])
    np.testing.assert_allclose(short.truth, long.truth, rtol=1e-12)
    assert short.truth.mean() == pytest.approx(0, abs=1e-12)
    assert short.truth.std() == pytest.approx(1)


def test_the_plain_student_comes_first_and_once():
    assert levels({"d_q": (1, 2), "temperature": (0.2,)}, 2) == [
        ("plain", 2),
        ("d_q", 1),
        ("temperature", 0.2),
    ]


def test_changes_in_pairs_and_limits_of_powers():
    plain = np.array([1.0, 5.0, 0.2])
    assert _change(3 * plain, plain) == pytest.approx((3.0, 3.0, 3.0))
    n = np.array([16.0, 64.0, 256.0])[:, None]
    errors = np.array([0.4, 0.5, 0.6]) + 3 / n
    assert _limit(errors).value == pytest.approx(0.5)


def test_captions_name_what_is_clearly_larger():
    cell = next(c for c in EXPERIMENT.cells(Scale.QUICK) if "sweeps" in c.settings)
    count = len(levels(cell.settings["sweeps"], 2))
    errors = np.ones((count, 4)) * np.array([1.0, 1.1, 0.9, 1.0])
    errors[1] *= [2.0, 2.1, 2.2, 2.0]
    record = Record("inconsistency", cell, {"error": errors}, {}, "k")
    (panel,) = EXPERIMENT.figures([record])
    assert "Clearly smaller: none; clearly larger: d_q = 1." in panel.caption
    assert "over the plain" in EXPERIMENT.table([record]).columns
