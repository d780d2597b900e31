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

EPS = float(np.finfo(float).eps)
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


def softmax_outputs(W, a, X):
    """Outputs m <a_l, S_i> and shares S, from the definition."""
    units = np.exp(X @ W)
    S = units / units.sum(axis=1, keepdims=True)
    return W.shape[1] * S @ a.T, S


def softmax_steps(W, a, X, Y, X_test, eta):
    """What is recorded after 0, 1, ..., 3 steps, by loops over outputs and samples."""
    start, m, records = W, W.shape[1], []

    def features(W):
        F, S = softmax_outputs(W, a, X)
        return F, m * S[None] * (a[:, None, :] - F.T[:, :, None] / m)

    first = features(start)[1]
    for _ in range(4):
        F, phi = features(W)
        gradient = np.einsum("il,lir,id->dr", F - Y, phi, X)
        change = [np.einsum("lir,kjr,ij->likj", f, f, X @ X.T) / m for f in (phi, first)]
        records.append({
            "loss": np.sum((F - Y) ** 2) / 2,
            "movement": max(np.linalg.norm(W - start, axis=0)),
            "largest_step": eta * max(np.linalg.norm(gradient, axis=0)),
            "outputs": F,
            "test_outputs": softmax_outputs(W, a, X_test)[0],
            "drift": np.sqrt(np.sum((change[0] - change[1]) ** 2)),
            "W": W,
        })  # fmt: skip
        W = W - eta * gradient
    return records


def recorded(path, name, *at):
    values = path.loss if name == "loss" else path.observed.get(name)
    return np.asarray(path.W if name == "W" else values)[at]


@pytest.mark.parametrize("own", ["X", "Y"])
def test_networks_make_the_steps_of_the_definition(own):
    """Samples of each network with shared targets, and the other way round; records 0, 1 and 3."""
    networks = jax.vmap(SoftmaxNetwork)(W[:2], A[:2])
    samples = jnp.stack([X, X / 2]) if own == "X" else X
    targets = jnp.stack([Y, -Y / 3]) if own == "Y" else Y
    path = train_softmax_networks(
        networks, samples, targets, step_size=jnp.array([0.03, 0.02]), steps=3,
        record_at=(0, 1, 3), X_test=Z, keep=Keep(weights=True, drift=True), chunk=1,
    )  # fmt: skip
    for e, eta in enumerate((0.03, 0.02)):
        x, y = (np.asarray(a[e] if a.ndim == 3 else a) for a in (samples, targets))
        steps = softmax_steps(*(np.asarray(a[e]) for a in (W, A)), x, y, np.asarray(Z), eta)
        for slot, step in enumerate((0, 1, 3)):
            for name, value in steps[step].items():
                np.testing.assert_allclose(
                    recorded(path, name, e, slot), value, rtol=1e-11, atol=1e-13
                )
    assert path.steps.tolist() == [0, 1, 3]
    assert path.result.tolist() == [Result.MAX_STEPS.value] * 2
    np.testing.assert_array_equal(path.last.W, path.W[:, -1])


def test_one_network_makes_the_steps_of_the_definition():
    path = train_softmax_network(
        SoftmaxNetwork(W[2], A[2]), X, Y, step_size=0.03, steps=3, record_at=(1, 2)
    )
    steps = softmax_steps(*map(np.asarray, (W[2], A[2], X, Y, Z)), 0.03)
    for slot, step in enumerate((1, 2)):
        for name in ("loss", "movement", "largest_step", "outputs"):
            np.testing.assert_allclose(recorded(path, name, slot), steps[step][name], rtol=1e-11)
    assert set(path.observed) == {"movement", "largest_step", "outputs"}


def test_nested_sets_make_the_steps_of_the_definition():
    sizes, eta, a = (2, 5), np.array([0.02, 0.01]), np.asarray(START.a)
    path = train_on_nested(
        START, INPUTS, TARGETS, sizes, step_size=eta, steps=3, record_at=(0, 1, 3), X_test=MORE
    )
    for k, n in enumerate(sizes):
        steps = softmax_steps(
            np.asarray(START.W), a, *(np.asarray(b[:n]) for b in (INPUTS, TARGETS)),
            np.asarray(MORE), eta[k],
        )  # fmt: skip
        for slot, step in enumerate((0, 1, 3)):
            for name in ("loss", "movement", "largest_step", "test_outputs"):
                np.testing.assert_allclose(
                    recorded(path, name, k, slot), steps[step][name], rtol=1e-11, atol=1e-13
                )


def test_a_second_layer_may_be_unbalanced_by_rounding():
    almost, far = (
        SoftmaxNetwork(START.W, START.a.at[1, 0].add(share * 16 * EPS)) for share in (0.8, 1.3)
    )
    call = {"step_size": np.ones(1), "steps": 1}
    assert train_on_nested(almost, INPUTS, TARGETS, (6,), **call).loss.shape[0] == 1
    with pytest.raises(UserError, match="does not sum to zero"):
        train_on_nested(far, INPUTS, TARGETS, (6,), **call)
