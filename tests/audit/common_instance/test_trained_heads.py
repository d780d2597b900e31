import jax
import numpy as np
import pytest

from attlas.audit.common_instance.trained_heads import (
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
