import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork, symmetric_network
from attlas.training.fit import fit
from gu2024exploring.library.training.softmax_regression import (
    Keep,
    train_on_nested,
    train_softmax_network,
    train_softmax_networks,
)

DRAW = np.random.default_rng(2)
D, M, K, N = 3, 8, 2, 4
X = jnp.asarray(DRAW.normal(size=(N, D)) / 2)
Y = jnp.asarray(DRAW.normal(size=(N, K)) / 2)
Z = jnp.asarray(DRAW.normal(size=(2, D)))
W = jnp.asarray(DRAW.normal(size=(3, D, M)))
A = jnp.asarray(DRAW.choice([-1.0, 1.0], size=(3, K, M)))


def plain_loss(network):
    """Loss of the first layer, for autodiff."""

    def loss(W, data):
        outputs = jax.vmap(SoftmaxNetwork(W, network.a, network.activation))(data[0])
        return jnp.sum((outputs - data[1]) ** 2) / 2

    return loss


@pytest.mark.thorough
@pytest.mark.parametrize("activation", list(Activation))
def test_the_kernel_is_fit_with_gradient_descent(activation):
    network, eta, record_at = SoftmaxNetwork(W[0], A[0], activation), 0.02, (0, 1, 3, 7)
    path = train_softmax_network(
        network, X, Y, step_size=eta, steps=9, record_at=record_at, X_test=Z,
        keep=Keep(weights=True, drift=True),
    )  # fmt: skip
    loss = plain_loss(network)
    plain = fit(loss, optax.sgd(eta), network.W, (X, Y), record_at=record_at)
    start = softmax_ntk(network, X)
    for slot, W_then in enumerate(plain.params):
        # Seven contracting steps of sums of at most n k m terms.
        close = {"rtol": 0, "atol": 1e3 * N * K * M * np.finfo(float).eps}
        np.testing.assert_allclose(path.W[slot], W_then, **close)
        np.testing.assert_allclose(path.loss[slot], plain.loss[slot], **close)
        moved = np.linalg.norm(W_then - network.W, axis=0).max()
        np.testing.assert_allclose(path.movement[slot], moved, **close)
        longest = eta * np.linalg.norm(jax.grad(loss)(W_then, (X, Y)), axis=0).max()
        np.testing.assert_allclose(path.largest_step[slot], longest, **close)
        then = SoftmaxNetwork(W_then, network.a, activation)
        np.testing.assert_allclose(path.outputs[slot], jax.vmap(then)(X), **close)
        np.testing.assert_allclose(path.test_outputs[slot], jax.vmap(then)(Z), **close)
        drift = np.linalg.norm(softmax_ntk(then, X) - start)
        np.testing.assert_allclose(path.drift[slot], drift, **close)
    assert np.array_equal(path.last.W, path.W[-1])
    assert int(path.result) == Result.MAX_STEPS.value


@pytest.mark.thorough
def test_an_ensemble_with_own_samples_is_its_members():
    members = [SoftmaxNetwork(W[e], A[e]) for e in range(3)]
    networks = jax.tree.map(lambda *parts: jnp.stack(parts), *members)
    sets = jnp.stack([X, X / 2, -X])
    eta = jnp.array([0.01, 0.02, 0.03])
    for samples in (X, sets):
        many = train_softmax_networks(
            networks, samples, Y, step_size=eta, steps=5, record_at=(5,), chunk=2
        )
        for e in range(3):
            own = samples if samples.ndim == 2 else samples[e]
            plain = fit(plain_loss(members[e]), optax.sgd(eta[e]), W[e], (own, Y), record_at=(5,))
            np.testing.assert_allclose(many.last.W[e], plain.last, rtol=0, atol=1e-12)
    assert many.params is None
    assert "drift" not in many.observed
    assert many.loss.shape == (3, 1)
    assert many.result.shape == (3,)


def test_divergence_is_said():
    path = train_softmax_network(
        SoftmaxNetwork(W[0], A[0], Activation.EXPONENTIAL), X, Y, step_size=1e6, steps=50
    )
    assert int(path.result) == Result.NOT_FINITE.value


@pytest.mark.parametrize(
    ("samples", "targets", "eta", "said"),
    [
        (X[:, :2], Y, 0.1, "input dimension 3"),
        (X, Y[:, :1], 0.1, "4 samples and 2 outputs"),
        (X, Y, 0.0, "not positive and finite"),
    ],
)
def test_bad_input_is_refused(samples, targets, eta, said):
    with pytest.raises(UserError, match=said):
        train_softmax_network(SoftmaxNetwork(W[0], A[0]), samples, targets, step_size=eta, steps=1)


START = symmetric_network(jax.random.key(0), 3, 16, 2)
INPUTS, TARGETS, MORE = (
    jnp.asarray(np.random.default_rng(k).normal(size=(rows, columns)))
    for k, (rows, columns) in enumerate(((6, 3), (6, 2), (4, 3)))
)


@pytest.mark.thorough
def test_rows_of_zeros_change_nothing():
    sizes, step_size = (2, 6), np.array([2e-3, 1e-3])
    found = train_on_nested(
        START,
        INPUTS,
        TARGETS,
        sizes,
        step_size=step_size,
        steps=20,
        record_at=(0, 5, 20),
        X_test=MORE,
    )
    for k, n in enumerate(sizes):
        alone = train_softmax_network(
            START, INPUTS[:n], TARGETS[:n], step_size=float(step_size[k]), steps=20,
            record_at=(0, 5, 20), X_test=MORE,
        )  # fmt: skip
        np.testing.assert_allclose(found.test_outputs[k], alone.test_outputs, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.loss[k], alone.loss, rtol=1e-12)
    assert float(jnp.abs(found.test_outputs[0, -1] - found.test_outputs[1, -1]).max()) > 1e-3


def test_what_zeros_would_change_is_refused():
    one_sided = SoftmaxNetwork(START.W, jnp.ones_like(START.a))
    with pytest.raises(UserError, match="does not sum to zero"):
        train_on_nested(one_sided, INPUTS, TARGETS, (2,), step_size=np.ones(1), steps=1)
    for sizes in ((), (0, 2), (7,)):
        with pytest.raises(UserError, match="1 to the 6 samples"):
            train_on_nested(START, INPUTS, TARGETS, sizes, step_size=np.ones(len(sizes)), steps=1)
