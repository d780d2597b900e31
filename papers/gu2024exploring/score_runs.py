r"""Score estimates whose four errors of Claim G.1 are measured, in the units of Assumption 6.1.

A Gaussian mixture in d dimensions is noised at n times in [T_0, T]; inputs (t, x(t)) and labels
x(0) are divided by the largest norm of the training set. F is the network after some steps on the
noisy labels, `kernel` the regression with its kernel at the start, m H*, after as many steps,
`ball` f_H, a function of the RKHS fitted to f_* on a larger sample, `pseudo` the regression on the
paper's pseudo-labels f_H(t_j, x_j) + (x_j(0) - f_*(t_j, x_j)), after as many steps, and
`pseudo_of_zero` the same for f_H = 0. The test law of (t, x) is a Gauss quadrature of the true one
of 96 points, with weights `mass`. Runs of several n and d are padded by zeros to the largest.
"""

from functools import reduce
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.perturbed_draws import apart
from attlas.claims.sampling import in_turn, shared
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.diffusion_instances import (
    decay,
    mixture,
    mixtures,
    schedule,
    schedules,
)
from gu2024exploring.instances import symmetric_networks
from gu2024exploring.library.data.gaussian_mixtures import posterior_mean
from gu2024exploring.library.kernels.dense_softmax_ntk import unit_features
from gu2024exploring.library.kernels.regression_flow import regression_flow
from gu2024exploring.library.training.softmax_network_gradient import outputs_and_gradient
from gu2024exploring.library.training.softmax_regression import train_softmax_networks

COUNT = 32
"""Mixtures of a batch: claims that need the same number share them."""
SLOW = "trainings of three sizes of network, seconds for each move"
"""Why claims on these runs are not attacked."""


class Size(NamedTuple):
    """Samples n, width m and dimension d of the data of a run; each is a program of its own."""

    samples: int
    width: int
    dimension: int


SIZES = (Size(8, 512, 2), Size(16, 128, 2), Size(5, 256, 4))
_REFERENCE = 24
STEPS = 100
"""Of each descent."""
_TIMES, _TIME_MASS = (part / 2 for part in np.polynomial.legendre.leggauss(3))
_NODES = 0.5 + np.array([-1, 1]) / 12**0.5
_GRID = 16
"""Test points per time and component, a product of 16^{1/d} nodes in each of d dimensions."""


@jax.jit
def _labels(batch, t, x):
    """f_* of every instance at its points, and its largest slope in x in Frobenius norm."""

    def label(instance, t, x):
        law_and_schedule = mixture(instance), schedule(instance)

        def mean_and_score(t, x):
            value = posterior_mean(*law_and_schedule, t, x)
            return value, value

        slope, value = jax.vmap(jax.jacfwd(mean_and_score, 1, has_aux=True))(t, x)
        return value, jnp.sqrt(jnp.max(jnp.sum(slope**2, axis=(1, 2))))

    return jax.vmap(label)(batch, t, x)


@eqx.filter_jit
def _outputs(networks, Z):
    return jax.vmap(lambda network, Z: jax.vmap(network)(Z))(networks, Z)


def _drift(network, X, Y, Z, eta):
    """eps_H, eps_test of every output, ||K_te(0)|| and the largest residual of one descent.

    A step multiplies the residual by I - eta m H~, with H~ = (1/m) int J(W_s + theta Delta) J(W_s)'
    over theta in [0, 1]: two Gauss nodes leave a fourth power of the step.
    """
    n, m, inputs = len(X), network.width, jnp.concatenate((X, Z))
    inner = (inputs @ X.T)[None, :, None, :]

    def blocks(first, second):
        return jnp.einsum("aim,bjm->aibj", first, second[:, :n]) * inner / m

    def step(W, _):
        F, slope = outputs_and_gradient(SoftmaxNetwork(W, network.a), X, Y)
        features = unit_features(SoftmaxNetwork(W, network.a), X)
        points = (SoftmaxNetwork(W - node * eta * slope, network.a) for node in _NODES)
        on_the_way = sum(unit_features(point, inputs) for point in points) / len(_NODES)
        change = (blocks(on_the_way, features) - start) ** 2
        changes = jnp.sum(change[:, :n]), jnp.sum(change[:, n:], axis=(2, 3)), jnp.sum((F - Y) ** 2)
        return W - eta * slope, changes

    first = unit_features(network, inputs)
    start = blocks(first, first)
    squares = jax.lax.scan(step, network.W, None, length=STEPS)[1]
    kernel, test, residual = (jnp.sqrt(jnp.max(part, axis=0)) for part in squares)
    row = jnp.sqrt(jnp.sum(start[:, n:] ** 2, axis=(2, 3)))
    return {
        "kernel_change": kernel, "test_change": test.T, "row": row.T, "residual": residual,
        "own_test": jnp.sum(first[:, n:] ** 2, axis=2).T * jnp.sum(Z**2, axis=1)[:, None] / m,
    }  # fmt: skip


@eqx.filter_jit
def _drifts(*members):
    """`_drift` of each, one after another: the features of one stay in the core's own cache."""
    return jax.lax.map(lambda member: _drift(*member), members)


def _sampled(rng, batch, n):
    """Times, noised points and labels of n samples."""
    count = len(batch["T"])
    t = rng.uniform(0.1, 1, (count, n)) * batch["T"][:, None]
    part = (rng.uniform(size=(count, n)) > batch["weights"][:, :1]).astype(int)
    index = np.arange(count)[:, None]
    roots = np.linalg.cholesky(batch["covariances"])[index, part]
    x0 = batch["means"][index, part]
    x0 = x0 + np.einsum("enij,enj->eni", roots, rng.normal(size=x0.shape))
    beta = decay(batch, t)[..., None]
    return t, beta * x0 + np.sqrt(1 - beta**2) * rng.normal(size=x0.shape), x0


def _quadrature(batch):
    """Times, points and masses of the test law."""
    count, d = len(batch["T"]), batch["means"].shape[2]
    t = batch["T"][:, None] * (0.1 + 0.9 * (0.5 + _TIMES))[None, :]
    nodes, masses = np.polynomial.hermite_e.hermegauss(round(_GRID ** (1 / d)))
    grid = np.stack(np.meshgrid(*[nodes] * d), axis=-1).reshape(-1, d)
    share = reduce(np.multiply.outer, [masses] * d).ravel() / masses.sum() ** d
    beta = decay(batch, t)[:, :, None, None, None]
    total = beta**2 * batch["covariances"][:, None] + (1 - beta**2) * np.eye(d)
    away = np.einsum("etkij,qj->etkqi", np.linalg.cholesky(total), grid)
    x = beta * batch["means"][:, None, :, None] + away
    mass = np.einsum("t,ek,q->etkq", _TIME_MASS, batch["weights"], share)
    times = np.broadcast_to(t[:, :, None, None], mass.shape)
    return times.reshape(count, -1), x.reshape(count, -1, d), mass.reshape(count, -1)


def _predict(gram, cross, Y, eta):
    """Kernel regression of all outputs after all steps."""
    flow = regression_flow(gram, Y.T.reshape(-1, 1))
    predicted = flow.test(cross, np.asarray([float(STEPS)]), step_size=eta)
    return predicted[0].reshape(Y.shape[1], -1).T


def _in_ball(gram, cross, Y):
    """Ridge regression, the ridge 1e-6 of the mean eigenvalue; values and squared norm."""
    ridge = 1e-6 * np.trace(gram) / len(gram)
    c = np.linalg.solve(gram + ridge * np.eye(len(gram)), Y.T.ravel())
    return (cross @ c).reshape(Y.shape[1], -1).T, float(c @ gram @ c)


def nearest(left, right):
    """Both sides at each test point, at the output that is nearest to its bound."""
    ratio = left / jnp.maximum(right, jnp.finfo(left.dtype).tiny)
    place = jnp.argmax(ratio, axis=1)[:, None]
    return [jnp.take_along_axis(side, place, axis=1)[:, 0] for side in (left, right)]


def large_ball(R_H, d):
    """R_H where it is at least d e^d, from where A falls; else this, whose ball holds f_H too."""
    return jnp.maximum(R_H, d * jnp.exp(d))


def _network(raw, i):
    return SoftmaxNetwork(on_device(raw["W"][i]), on_device(raw["a"][i]))


def _kernel_side(raw, i, gram, eta):
    """The two kernel regressions and the function of the RKHS of one instance."""
    network, X, Z, more = _network(raw, i), *(raw[name][i] for name in ("X", "Z", "X_more"))
    gram, cross = network.width * gram, network.width * softmax_ntk(network, Z, X)
    seen = softmax_ntk(network, np.concatenate((Z, X)), more)
    ball, square = _in_ball(softmax_ntk(network, more), seen, raw["Y_more"][i])
    ball, fitted = np.split(ball, [len(Z)])
    noise = raw["Y"][i] - raw["Y_true"][i]
    return {
        "kernel": _predict(gram, cross, raw["Y"][i], eta),
        "pseudo": _predict(gram, cross, fitted + noise, eta),
        "pseudo_of_zero": _predict(gram, cross, noise, eta),
        "ball": ball,
        "ball_at_X": fitted,
        "R_H": np.asarray(square),
    }


def _encoded(rng, law, size):
    """Networks, and all inputs and labels in the units of Assumption 6.1."""
    n, m, d = size
    train, more = _sampled(rng, law, n), _sampled(rng, law, _REFERENCE)
    t, x, mass = _quadrature(law)
    points_in_time = [train[:2], more[:2], (t, x)]
    times, points = (np.concatenate([part[k] for part in points_in_time], axis=1) for k in (0, 1))
    jax_law = {name: on_device(value) for name, value in law.items()}
    law_at_points = jax_law, on_device(times), on_device(points)
    label, steepest = (np.asarray(part) for part in _labels(*law_at_points))
    inputs = np.concatenate((times[..., None], points), axis=2)
    cut = (n, n + _REFERENCE)
    inputs = inputs / np.linalg.norm(inputs[:, : cut[0]], axis=2).max(axis=1)[:, None, None]
    unit = np.linalg.norm(train[2], axis=2).max(axis=1)[:, None, None]
    X, X_more, Z = np.split(inputs, cut, axis=1)
    Y_true, Y_more, truth = np.split(label / unit, cut, axis=1)
    networks = symmetric_networks(rng, len(X), (d + 1, m, d, 1), trained=True)
    return {
        **{name: networks[name] for name in ("W", "a", "sigma")},
        "X": X, "X_more": X_more, "Z": Z, "Y": train[2] / unit,
        "Y_true": Y_true, "Y_more": Y_more, "truth": truth, "mass": mass,
        "lipschitz": steepest,
    }  # fmt: skip


def _runs(rng, count, size):
    """Runs of one size."""
    law = mixtures(rng, count, size.dimension) | schedules(rng, count, (0.8, 3.0))
    raw = _encoded(rng, law, size)
    models = [_network(raw, i) for i in range(count)]
    networks = SoftmaxNetwork(on_device(raw["W"]), on_device(raw["a"]))
    grams = [softmax_ntk(models[i], raw["X"][i]) for i in range(count)]
    spectra = np.linalg.eigvalsh(np.stack(grams))
    eta = 0.5 / (size.width * spectra[:, -1])
    path = train_softmax_networks(
        networks,
        on_device(raw["X"]),
        on_device(raw["Y"]),
        step_size=on_device(eta),
        steps=STEPS,
        record_at=(STEPS,),
        chunk=count,
    )
    data = (on_device(raw[name]) for name in ("X", "Y", "Z"))
    drift = _drifts(networks, *data, on_device(eta))
    sides = [_kernel_side(raw, i, grams[i], eta[i]) for i in range(count)]
    numbers = dict(zip(("n", "m", "d"), size, strict=True))
    return {
        **{name: np.full(count, float(number)) for name, number in numbers.items()},
        **{name: np.stack([side[name] for side in sides]) for name in sides[0]},
        **{name: law[name] for name in ("start", "end", "T")},
        **{name: np.asarray(value) for name, value in drift.items()},
        **{name: raw[name] for name in ("X", "Y", "Z", "truth", "mass", "sigma", "lipschitz")},
        "Y_true": raw["Y_true"],
        "tau": STEPS * size.width * eta,
        "F": np.asarray(_outputs(path.last, on_device(raw["Z"]))),
        "lam": spectra[:, 0],
    }


@shared
def score_runs(rng, count):
    """Trained score estimates after 100 steps, in turn of each of `SIZES`: n, m and d.

    F, kernel, pseudo, ball and truth stand for functions at the test points; R_H is the squared
    RKHS norm of `ball`, lam the smallest eigenvalue of H*, lipschitz the largest slope of f_* in x
    at the points, in the units of the data. tau is m eta times the steps, the changes of the
    kernels are those of `_drift`; own_test is K(x, x) of each test output. Outputs that a run does
    not have are zero, with their kernels.
    """
    rng = apart(rng)
    counts = [len(range(i, count, len(SIZES))) for i in range(len(SIZES))]
    return in_turn([_runs(rng, c, size) for c, size in zip(counts, SIZES, strict=True) if c])
