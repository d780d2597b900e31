r"""Gradient flow of softmax networks beside their kernel regression: instances of Theorem F.2.

The flow W' = -Delta W is integrated by the classical Runge-Kutta method of fourth order; a second
run with half as many steps gives the error. Times are records of m lambda t from 0 to 6.
"""

from copy import deepcopy

import jax
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.perturbed_draws import apart
from attlas.claims.sampling import shared
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.instances import seed_of
from gu2024exploring.library.kernels.regression_flow import regression_flow
from gu2024exploring.library.training.softmax_network_gradient import network_gradient
from gu2024exploring.trajectories import DIMENSION, Setting, draw, kernels

RECORDS = 8
"""Times after the start."""
_STEPS = 32
"""Runge-Kutta steps between records; half as many in the second run."""
_TESTED = 3
NARROW = Setting(width=64, targets=(0.3, 1.0))
CERTIFIED = NARROW._replace(width=256, samples=3, targets=(1e-3, 0.03))


def _flow(W, a, X, Y, time, steps):
    """The weights at equal intervals up to a time."""
    h = time / (RECORDS * steps)

    def slope(weights):
        return -network_gradient(SoftmaxNetwork(weights, a), X, Y)

    def step(_, weights):
        k_1 = slope(weights)
        k_2 = slope(weights + h / 2 * k_1)
        k_3 = slope(weights + h / 2 * k_2)
        k_4 = slope(weights + h * k_3)
        return weights + h / 6 * (k_1 + 2 * k_2 + 2 * k_3 + k_4)

    def record(weights, _):
        after = jax.lax.fori_loop(0, steps, step, weights)
        return after, after

    return jax.lax.scan(record, W, None, length=RECORDS)[1]


_flows = jax.jit(jax.vmap(_flow, in_axes=(0, 0, 0, 0, 0, None)))


def _outputs(W, a, X):
    """F of all instances at all records, shape (e, s, n, k)."""
    units = np.exp(np.einsum("end,esdm->esnm", X, W))
    return np.einsum("esnm,ekm->esnk", units / units.mean(axis=3, keepdims=True), a)


def _regression(raw, cross, times):
    """The predictor (22) under gradient flow, one row of test outputs per time."""
    predictions = []
    for e, kernel in enumerate(raw["kernel"]):
        flow = regression_flow(kernel, raw["Y"][e].T.reshape(-1, 1))
        predictions.append(flow.test(cross[e], times[e])[..., 0])
    return np.stack(predictions)


def _moved(rng, count, setting):
    """Flows with the changes of their kernels."""
    seed = seed_of(deepcopy(rng))
    raw = draw(rng, count, setting)
    rng = apart(rng, (*seed, 1))
    tested = rng.normal(size=(count, _TESTED, DIMENSION))
    tested /= np.linalg.norm(tested, axis=2, keepdims=True)
    # Fast directions limit the step: h m lambda_max stays below a quarter.
    end = np.minimum(6 / raw["lam"], RECORDS * _STEPS / (4 * raw["most"])) / raw["m"]
    path = _path(raw, end, _STEPS)
    X, a = raw["X"], raw["a"]
    cross = kernels(setting, raw["W"], a, tested, X)
    moved = np.stack([kernels(setting, path[:, s], a, X) for s in range(RECORDS)], 1)
    seen = np.stack([kernels(setting, path[:, s], a, tested, X) for s in range(RECORDS)], 1)
    return raw | {
        "end": end,
        "path": path,
        "tested": tested,
        "cross": cross,
        "test_change": np.linalg.norm(seen - cross[:, None], axis=3).max(axis=1),
        "kernel_change": np.linalg.norm(moved - raw["kernel"][:, None], axis=(2, 3)).max(axis=1),
        "least": np.linalg.eigvalsh(moved)[..., 0].min(axis=1),
    }


def _path(raw, end, steps):
    arrays = [on_device(raw[name]) for name in ("W", "a", "X", "Y")]
    return np.asarray(_flows(*arrays, on_device(end), steps))


@shared
def flows(rng, count):
    """Networks of width 64 beside their kernel regression, on three test inputs.

    gap is |gamma_nn - gamma_ntk| (times by outputs of test inputs), error that of the integration,
    row ||K_te(0)||, start ||Y||, time m t, least lambda_min(H(tau)) along time.
    """
    batch = _moved(rng, count, NARROW)
    end, m = batch["end"], batch["m"]
    runs = (batch["path"], _path(batch, end, _STEPS // 2))
    gamma, rough = (_outputs(W, batch["a"], batch["tested"]).swapaxes(2, 3) for W in runs)
    shape = (count, RECORDS, -1)
    time = (m * end)[:, None] * np.arange(1, RECORDS + 1) / RECORDS
    lazy = _regression(batch, batch["cross"], time)
    names = ("test_change", "kernel_change", "least", "lam", "m", "Y")
    return {name: batch[name] for name in names} | {
        "gap": np.abs(gamma.reshape(shape) - lazy),
        "error": np.abs(gamma - rough).reshape(shape),
        "start": np.linalg.norm(batch["Y"], axis=(1, 2)),
        "row": np.linalg.norm(batch["cross"], axis=2),
        "time": time,
    }


@shared
def certified_flows(rng, count):
    """Networks of width 256 with small targets under gradient flow, and how far they got.

    left is ||F - Y||, movement the largest ||w_r(t) - w_r(0)||, time m t.
    """
    batch = _moved(rng, count, CERTIFIED)
    W, path = batch["W"], batch["path"]
    residual = _outputs(path, batch["a"], batch["X"]) - batch["Y"][:, None]
    named = {name: batch[name] for name in ("W", "a", "X", "Y", "lam", "m", "kernel_change")}
    time = (batch["m"] * batch["end"])[:, None] * np.arange(1, RECORDS + 1) / RECORDS
    return named | {
        "left": np.linalg.norm(residual, axis=(2, 3)),
        "movement": np.linalg.norm(path - W[:, None], axis=2).max(axis=(1, 2)),
        "time": time,
    }
