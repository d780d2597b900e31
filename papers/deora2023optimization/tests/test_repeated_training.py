"""Training of repeated heads, against descent on the heads written out one by one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.tokenized_mixture import MixtureSamples
from deora2023optimization.library.repeated_heads import RepeatedHeads
from deora2023optimization.library.training.repeated_training import train_repeated_heads

PROBLEMS, MODELS, GROUPS, N, T, D = 2, 2, 2, 3, 2, 2
COPIES = np.array([[[1, 3], [2, 2]], [[4, 0], [3, 1]]])
SCHEDULE = (0, 1, 4)
RATES = np.array([[0.3, 0.5], [0.2, 0.4]])


def samples(rng):
    X = rng.normal(size=(PROBLEMS, N, T, D))
    y = rng.choice([-1.0, 1.0], (PROBLEMS, N))
    relevant = np.zeros((PROBLEMS, N, T), bool)
    relevant[..., 0] = True
    pattern = np.zeros((PROBLEMS, N, T), int)
    return MixtureSamples(*map(jnp.asarray, (X, y, relevant, pattern)))


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    heads = rng.normal(size=(PROBLEMS, MODELS, GROUPS, T + D, D))
    return heads, samples(rng), samples(rng)


def weights(W, X):
    return jax.nn.softmax(X @ W @ X.T, axis=-1)


def outputs(heads, X):
    """H^(-1/2) sum_h <U_h, softmax(X W_h X') X> of H heads in full."""
    mixed = jax.vmap(lambda one: jnp.sum(one[:T] * (weights(one[T:], X) @ X)))(heads)
    return mixed.sum() / np.sqrt(len(heads))


def margins(heads, part):
    return part.y * jnp.stack([outputs(heads, X) for X in part.X])


def in_full(groups, rate, copies, train, test):
    """Plain gradient descent of all H = 4 heads, recorded at the schedule."""

    def risk(heads):
        return jnp.mean(jnp.log1p(jnp.exp(-margins(heads, train))))

    heads, records = jnp.repeat(groups, copies, axis=0, total_repeat_length=4), []
    for step in range(SCHEDULE[-1] + 1):
        if step in SCHEDULE:
            held = margins(heads, test)
            records.append(
                (risk(heads), jnp.mean(jnp.log1p(jnp.exp(-held))), jnp.mean(held <= 0, dtype=float))
            )
        if step < SCHEDULE[-1]:
            heads = heads - rate * jax.grad(risk)(heads)
    mass = [weights(one[T:], X)[:, 0].mean() for one in heads for X in test.X]
    return np.array(records).T, float(jnp.mean(jnp.stack(mass)))


@pytest.mark.thorough
def test_repeated_heads_train_as_all_their_copies(problem):
    heads, train, test = problem
    root = np.sqrt(np.maximum(COPIES, 1))[..., None, None]
    scaled = jnp.asarray(root * heads)
    models = RepeatedHeads(scaled[..., :T, :], scaled[..., T:, :], jnp.asarray(COPIES))
    found = train_repeated_heads(models, RATES, train, test, SCHEDULE)
    assert found.train.shape == found.error.shape == (PROBLEMS, MODELS, len(SCHEDULE))
    for e in range(PROBLEMS):
        parts = (jax.tree.map(lambda a, e=e: a[e], part) for part in (train, test))
        of_problem = tuple(parts)
        for k in range(MODELS):
            records, mass = in_full(
                jnp.asarray(heads[e, k]), RATES[e, k], jnp.asarray(COPIES[e, k]), *of_problem
            )
            # A few sums of few terms of size one per step: 1e3 roundings are ample.
            close = {"rtol": 0, "atol": 1e3 * np.finfo(float).eps}
            np.testing.assert_allclose(found.train[e, k], records[0], **close)
            np.testing.assert_allclose(found.test[e, k], records[1], **close)
            np.testing.assert_array_equal(found.error[e, k], records[2])
            np.testing.assert_allclose(found.relevant[e, k], mass, **close)


@pytest.mark.thorough
def test_training_lowers_the_loss(problem):
    heads, train, test = problem
    root = np.sqrt(np.maximum(COPIES, 1))[..., None, None]
    scaled = jnp.asarray(root * heads)
    models = RepeatedHeads(scaled[..., :T, :], scaled[..., T:, :], jnp.asarray(COPIES))
    found = train_repeated_heads(models, RATES, train, test, SCHEDULE)
    assert np.all(np.diff(found.train, axis=-1) < 0)


def test_attention_has_a_step_of_its_own(problem):
    heads, train, test = problem
    root = np.sqrt(np.maximum(COPIES, 1))[..., None, None]
    scaled = jnp.asarray(root * heads)
    models = RepeatedHeads(scaled[..., :T, :], scaled[..., T:, :], jnp.asarray(COPIES))
    same = train_repeated_heads(models, RATES, train, test, SCHEDULE, RATES)
    plain, moved = (
        train_repeated_heads(models, RATES, train, test, SCHEDULE, other)
        for other in (None, 2 * RATES)
    )
    np.testing.assert_array_equal(plain.train, same.train)
    np.testing.assert_array_equal(moved.train[..., 0], plain.train[..., 0])
    assert np.all(moved.train[..., 1] < plain.train[..., 1])


def test_losses_and_attention_of_heads_at_rest_are_means_over_all_heads(problem):
    """At a step size of 0, from the definition with every copy written out.

    The outputs of one model are all zero, which is an error.
    """
    heads, train, test = problem
    heads = np.array(heads)
    heads[1, 0, :, :T] = 0
    root = np.sqrt(np.maximum(COPIES, 1))[..., None, None]
    scaled = jnp.asarray(root * heads)
    models = RepeatedHeads(scaled[..., :T, :], scaled[..., T:, :], jnp.asarray(COPIES))
    found = train_repeated_heads(models, 0 * RATES, train, test, SCHEDULE)
    for e, k in np.ndindex(PROBLEMS, MODELS):
        every = np.repeat(heads[e, k], COPIES[e, k], axis=0)
        attention, margins_of = [], []
        for part in (train, test):
            margins_of.append([])
            for x, label in zip(np.asarray(part.X[e]), np.asarray(part.y[e]), strict=True):
                output = 0.0
                for one in every:
                    units = np.exp(x @ one[T:] @ x.T)
                    shares = units / units.sum(axis=1, keepdims=True)
                    output += np.sum(one[:T] * (shares @ x)) / np.sqrt(len(every))
                    if part is test:
                        attention.append(shares[:, 0].mean())
                margins_of[-1].append(label * output)
        losses = [np.mean(np.log1p(np.exp(-np.array(a)))) for a in margins_of]
        wrong = np.mean(np.array(margins_of[1]) <= 0)
        for values, expected in zip(found[:3], (*losses, wrong), strict=True):
            np.testing.assert_allclose(values[e, k], [expected] * len(SCHEDULE), rtol=1e-12)
        np.testing.assert_allclose(found.relevant[e, k], np.mean(attention), rtol=1e-12)
