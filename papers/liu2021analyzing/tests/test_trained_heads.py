import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.checkpoint import checkpointed
from attlas.data.tokenized_mixture import make_tokenized_mixture, sample_mixture
from attlas.experiments.checkpoint_files import CheckpointFiles
from attlas.training import ensemble
from liu2021analyzing.library.audit import head_audit, trained_heads
from liu2021analyzing.library.audit.head_audit import AuditSettings
from liu2021analyzing.library.audit.trained_heads import (
    Descent,
    sample_mixtures,
    train_heads,
    training_facts,
)

MIXTURE = {"T": 4, "d": 6, "M": 2, "Z_mu": 0.4, "Z": 1.0}
DESCENT = Descent(radius=4.0, steps=50, records=3, left_out=2, deviation=0.2)


@pytest.fixture(scope="module")
def samples():
    return sample_mixtures(jax.random.key(0), 2, (6, 9), **MIXTURE)


@pytest.fixture(scope="module")
def heads(samples):
    return train_heads(samples, DESCENT)


def test_tokens_stay_within_the_known_bound(samples):
    norms = np.linalg.norm(samples.X, axis=-1)
    assert norms.max() <= samples.R
    assert not np.array_equal(samples.X[0], samples.X[1])
    # training and fresh samples are drawn apart
    assert not np.array_equal(samples.X[:, :6], samples.fresh_X[:, :6])


def test_every_step_is_certified_and_lowers_the_risk(heads, samples):
    assert heads.steps.tolist() == [0, 1, 50]
    assert np.all(np.diff(heads.seen.risk[..., 0], axis=1) < 0)
    assert training_facts(heads, samples, DESCENT.radius)["certified"].tolist() == [True, True]
    assert training_facts(heads, samples, 0.0)["certified"].tolist() == [False, False]


@pytest.mark.thorough
def test_heads_that_were_kept_are_not_trained_or_searched_again(
    heads, samples, tmp_path, monkeypatch
):
    """Where states are kept, heads train one by one; killed at the second and at the third."""
    calls = {"training": 0, "margins": 0}

    def stopping(name, function):
        def call(*given, **settings):
            calls[name] += 1
            if calls[name] == 2:
                raise KeyboardInterrupt
            return function(*given, **settings)

        return call

    monkeypatch.setattr(ensemble, "available_cores", lambda: 1)
    monkeypatch.setattr(trained_heads, "_train", stopping("training", trained_heads._train))
    margins = stopping("margins", head_audit.head_margins)
    monkeypatch.setattr(head_audit, "head_margins", margins)
    settings = AuditSettings(searches=3, climb=2)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt), checkpointed(CheckpointFiles(tmp_path, {}), 0.0):
            head_audit._margins(train_heads(samples, DESCENT), settings)
    with checkpointed(CheckpointFiles(tmp_path, {}), 0.0):
        alone = train_heads(samples, DESCENT)
        found = head_audit._margins(alone, settings)
    # Two more of the first tell the shapes of what was kept.
    assert calls == {"training": 5, "margins": 3}
    # Sums of six samples in another order, over fifty steps.
    room = {"rtol": 1e4 * np.finfo(float).eps, "atol": 1e4 * np.finfo(float).eps}
    for one, other in zip(jax.tree.leaves(alone.path), jax.tree.leaves(heads.path), strict=True):
        np.testing.assert_allclose(one, other, **room)
    expected = head_audit._margins(alone, settings)
    for one, other in zip(found, expected, strict=True):
        jax.tree.map(np.testing.assert_array_equal, one, other)


def test_stability_starts_at_zero_and_grows(heads):
    assert np.all(heads.stability[:, 0] == 0)
    assert np.all(np.diff(heads.stability, axis=1) > 0)


def test_relevant_mass_is_the_attention_on_the_relevant_token(heads, samples):
    found = training_facts(heads, samples, DESCENT.radius)
    head, k = 1, 2
    u, W = heads.path.U[head, k, 0], heads.path.W[head, k, 0]
    X = samples.fresh_X[head]
    weights = np.array(jax.nn.softmax(np.einsum("nd,de,nte->nt", X[:, -1], W, X), axis=1))
    mean = weights[samples.fresh_relevant[head].astype(bool)].mean()
    assert u.shape == (6,)
    assert np.isclose(found["relevant_mass"][head, k], mean)
    picked = [
        samples.relevant[head, i, token] for i, token in enumerate(heads.seen.tokens[head].tolist())
    ]
    assert np.isclose(found["relevant_selected"][head], np.mean(picked))


def test_start_step_schedule_and_samples_left_out_are_as_stated(samples, monkeypatch):
    """The stated stream, step 1 / (beta_3 + beta_1^2 / 4), records from a thousandth of all."""
    passed = []

    def train(start, data, weights, rate, schedule):
        passed.append((start, data, weights, rate, schedule))
        return start, np.zeros((2, 5)), None

    monkeypatch.setattr(trained_heads, "_train", train)
    descent = Descent(radius=3.0, steps=3002, records=4, left_out=4, deviation=0.3)
    found = train_heads(samples, descent, seed=5)
    draw = np.random.default_rng([5, 7])
    (start, data, weights, rate, schedule) = passed[0]
    np.testing.assert_allclose(start.U, 0.3 * draw.normal(size=(2, 1, 6)), rtol=1e-15)
    np.testing.assert_allclose(start.W, 0.3 * draw.normal(size=(2, 1, 6, 6)), rtol=1e-15)
    for one, other in zip(data, samples[:4], strict=True):
        np.testing.assert_array_equal(one, other)
    expected = np.ones((5, 6))
    for k in range(4):
        expected[k + 1, k] = 0
    np.testing.assert_array_equal(weights, expected)
    R, s = samples.R, 4 * samples.R**2 * 3 / math.sqrt(27)
    smoothness = R**3 * (s + math.sqrt(s**2 + 4)) / 2 + (R * max(1, 3 * R**2)) ** 2 / 4
    assert float(rate) == found.rate == pytest.approx(1 / smoothness, rel=1e-12)
    # 3.002, 94.93 and 3002, rounded up
    assert schedule.tolist() == found.steps.tolist() == [0, 4, 95, 3002]
    assert found.R == samples.R


@jax.jit
@jax.value_and_grad
def _risk(theta, X, y, weights):
    u, W = theta[:6], theta[6:].reshape(6, 6)
    rows = jax.nn.softmax(jnp.einsum("nd,de,nte->nt", X[:, -1], W, X), axis=1)
    return jnp.sum(weights * jnp.log1p(jnp.exp(-y * jnp.einsum("nt,ntd,d->n", rows, X, u)))) / 6


def test_recorded_heads_are_those_of_plain_descent_on_all_samples(heads, samples):
    for e in range(2):
        ends = []
        for weights in np.ones((3, 6)) - np.eye(7, 6)[[6, 0, 1]]:
            theta = np.r_[heads.path.U[e, 0, 0], heads.path.W[e, 0, 0].ravel()]
            for _ in range(DESCENT.steps):
                theta = theta - heads.rate * _risk(theta, samples.X[e], samples.y[e], weights)[1]
            ends.append(np.asarray(theta))
        path = np.r_[heads.path.U[e, 2, 0], heads.path.W[e, 2, 0].ravel()]
        np.testing.assert_allclose(path, ends[0], rtol=1e-10, atol=1e-12)
        apart = [np.linalg.norm(end - ends[0]) for end in ends[1:]]
        assert heads.stability[e, 2] == pytest.approx(np.mean(apart), rel=1e-8)


def test_relevant_tokens_are_one_of_T_and_sets_are_of_streams_of_their_own(samples):
    for e in range(2):
        key = jax.random.fold_in(jax.random.key(0), e)
        mixture = make_tokenized_mixture(key, d=6, M=2, zeta=0.25, Z_mu=0.4, Z_nu=0.4, Z=1.0)
        train, fresh = (
            sample_mixture(jax.random.fold_in(key, k), mixture, size, 4)
            for k, size in ((1, 6), (2, 9))
        )
        np.testing.assert_array_equal(samples.X[e], train.X)
        np.testing.assert_array_equal(samples.fresh_X[e], fresh.X)
        np.testing.assert_array_equal(samples.y[e], train.y)
        np.testing.assert_array_equal(samples.fresh_y[e], fresh.y)
        assert float(mixture.R) <= samples.R


def test_facts_are_means_over_samples_and_the_largest_decoder_of_a_path(heads, samples):
    relevant = np.zeros_like(samples.relevant)
    relevant[..., 1] = True
    tokens = np.array([[1, 1, 0, 1, 3, 2], [1, 1, 1, 1, 1, 0]])
    norms = np.array([[[0.5, 9.0], [2.0, 9.0], [1.0, 9.0]], [[0.5, 1.0], [2.1, 1.0], [1.0, 1.0]]])
    marked = heads._replace(seen=heads.seen._replace(tokens=tokens, norms=norms))
    found = training_facts(marked, samples._replace(relevant=relevant), 2.0)
    np.testing.assert_allclose(found["relevant_selected"], [3 / 6, 5 / 6])
    assert found["certified"].tolist() == [True, False]
