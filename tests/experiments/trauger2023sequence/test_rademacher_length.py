"""What the experiment rests on: repeated tokens, and sum pooling's value without an ascent."""

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import pytest

from attlas.experiments.trauger2023sequence.rademacher_length import (
    EXPERIMENT,
    KINDS,
    SHARED,
    _curve,
    _sample,
)
from attlas.measures.complexity.norm_ball_classes import AttentionClass, Sequences
from attlas.runs.cell import Scale
from attlas.runs.record import Record

EPS = np.finfo(float).eps


def settings() -> dict:
    return {"n": 5, "d": 3, "lengths": [4]}


def test_a_sequence_repeated_whole_is_the_same_function():
    tokens, queries = _sample(settings(), 0, KINDS[0])
    one = jnp.array(1.0)
    attention = AttentionClass("1,1", jnp.array(3.0), one, one, one)
    rng = np.random.default_rng(1)
    parameters = (jnp.asarray(rng.normal(size=(3, 3))), jnp.asarray(rng.normal(size=(3, 1))), one)
    short, long = (
        attention(parameters, Sequences(jnp.asarray(each, float), jnp.asarray(queries, float)))
        for each in (tokens, np.tile(tokens, (1, SHARED // 4, 1)))
    )
    # Sums of SHARED tokens of length one, and exponentials of scores of order ten.
    np.testing.assert_allclose(short, long, atol=10 * SHARED * EPS)


def test_tokens_have_length_one_and_centres_of_their_own():
    for kind in KINDS:
        tokens, queries = _sample({**settings(), "lengths": [300]}, 0, kind)
        for each in (tokens, queries):
            lengths = np.linalg.norm(each.astype(float), axis=-1)
            np.testing.assert_allclose(lengths, 1, atol=3 * np.finfo(np.float32).eps)
        means = np.linalg.norm(tokens.mean(axis=1), axis=1)
        # A mean of 300 directions without a centre has a length of about 300^(-1/2) = .06.
        assert (means.min() > 0.2) if kind == KINDS[0] else (means.max() < 0.2)


def test_half_the_linear_functions_lie_in_the_hull_of_sum_pooling():
    rng = np.random.default_rng(2)
    sums, signs = rng.normal(size=(7, 3)), rng.choice([-1.0, 1.0], 7)
    value = np.abs(signs @ sums).max() / 2
    best = max(
        abs(float(signs @ np.maximum(sums @ v, 0))) for v in np.concatenate([np.eye(3), -np.eye(3)])
    )
    assert value <= best * (1 + 10 * EPS)


@pytest.mark.parametrize(("last", "said"), [(1.0, "No ball shows growth"), (2.0, "It grows for")])
def test_caption_says_whether_it_grows(last, said):
    base = 1e-3 * np.array([1.0, 1.1, 0.9, 1.0])
    softmax = np.stack([[base, last * base]] * 2)
    arrays = {
        "length": np.array([10, 1000]),
        "softmax": softmax,
        "sum": 100 * softmax,
        "log_T": np.array([0.5, 0.6]),
        **{name: np.array([0.4, 0.4]) for name in ("theorem", "corrected", "parameters")},
    }
    record = Record("rademacher_length", EXPERIMENT.cells(Scale.QUICK)[0], arrays, {}, "k")
    (panel,) = EXPERIMENT.figures([record])
    assert said in panel.caption
    assert "is nowhere exceeded" in panel.caption
    assert "log T rises by 20.0 %" in panel.caption
    plt.close(panel.figure)
    ratio, reach = _curve(softmax[0]).change
    assert ratio == pytest.approx(last, rel=10 * EPS)
    assert reach < 1e-12  # every sign vector changes by the same factor
    row = EXPERIMENT.table([record]).to_dict("records")[0]
    assert row["Theorem 4.1 / estimate"] == pytest.approx(400, rel=100 * EPS)


def test_a_bound_that_is_passed_is_said():
    softmax = np.full((2, 2, 3), 0.5) + np.array([0.0, 0.01, -0.01])
    arrays = {"length": np.array([10, 100]), "softmax": softmax, "sum": softmax}
    arrays |= dict.fromkeys(("log_T", "theorem", "corrected", "parameters"), np.array([0.4, 0.4]))
    record = Record("rademacher_length", EXPERIMENT.cells(Scale.QUICK)[1], arrays, {}, "k")
    (panel,) = EXPERIMENT.figures([record])
    assert "is EXCEEDED for (2,1)" in panel.caption
    plt.close(panel.figure)


def test_estimates_stand_below_every_bound_at_smoke_scale():
    (cell,) = EXPERIMENT.cells(Scale.SMOKE)
    arrays = EXPERIMENT.run(type(cell)({**cell.settings, "lengths": [2, 5], "repeats": 2**16}))
    best = arrays["softmax"].mean(axis=2).max(axis=0)
    for name in ("theorem", "corrected", "log_T", "parameters"):
        assert np.all(best < arrays[name]), name
        assert np.all(arrays[name] < 1)
    assert jax.tree.all(jax.tree.map(lambda a: bool(np.all(np.isfinite(a))), dict(arrays)))
