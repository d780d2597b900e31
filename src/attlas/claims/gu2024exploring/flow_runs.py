r"""Gradient flow of softmax networks beside their kernel regression: instances of Theorem F.2.

The flow W' = -Delta W is integrated by the classical Runge-Kutta method of fourth order; a second
run with half as many steps gives the error. Times are records of m lambda t from 0 to 6.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from attlas.claims.gu2024exploring.instances import as_arrays
from attlas.claims.gu2024exploring.trajectories import (
    DIMENSION,
    Setting,
    draw,
    kernels,
)
from attlas.core.generator import seed_of
from attlas.core.old_claim import Instance
from attlas.kernels.regression_flow import regression_flow
from attlas.models.networks.softmax_network import SoftmaxNetwork
from attlas.models.networks.softmax_network_gradient import network_gradient

RECORDS = 8
"""Times after the start."""
_STEPS = 32
"""Runge-Kutta steps between records; half as many in the second run."""
_TESTED = 3
NARROW = Setting(width=64, targets=(0.3, 1.0))
WIDE = NARROW._replace(width=1024)


def _flow(
    W: Array, a: Array, X: Array, Y: Array, time: Array, steps: Array
) -> Float[Array, "s d m"]:
    """The weights at equal intervals up to a time."""
    h = time / (RECORDS * steps)

    def slope(weights: Array) -> Array:
        return -network_gradient(SoftmaxNetwork(weights, a), X, Y)

    def step(_: Array, weights: Array) -> Array:
        k_1 = slope(weights)
        k_2 = slope(weights + h / 2 * k_1)
        k_3 = slope(weights + h / 2 * k_2)
        k_4 = slope(weights + h * k_3)
        return weights + h / 6 * (k_1 + 2 * k_2 + 2 * k_3 + k_4)

    def record(weights: Array, _: None) -> tuple[Array, Array]:
        after = jax.lax.fori_loop(0, steps, step, weights)
        return after, after

    return jax.lax.scan(record, W, None, length=RECORDS)[1]


_flows = jax.jit(jax.vmap(_flow, in_axes=(0, 0, 0, 0, 0, None)))


def _outputs(W: np.ndarray, a: np.ndarray, X: np.ndarray) -> np.ndarray:
    """F of all instances at all records, shape (e, s, n, k)."""
    units = np.exp(np.einsum("end,esdm->esnm", X, W))
    return np.einsum("esnm,ekm->esnk", units / units.mean(axis=3, keepdims=True), a)


def _regression(raw: dict[str, np.ndarray], cross: np.ndarray, times: np.ndarray) -> np.ndarray:
    """The predictor (22) under gradient flow, one row of test outputs a time."""
    found = []
    for e, kernel in enumerate(raw["kernel"]):
        flow = regression_flow(kernel, raw["Y"][e].T.reshape(-1, 1))
        found.append(flow.test(cross[e], times[e])[..., 0])
    return np.stack(found)


@cache
def _moved(seed: tuple[int, ...], count: int, setting: Setting) -> dict[str, np.ndarray]:
    """Flows with the changes of their kernels."""
    raw = draw(seed, count, setting)
    rng = np.random.default_rng((*seed, 1))
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


def _path(raw: dict[str, np.ndarray], end: np.ndarray, steps: int) -> np.ndarray:
    parts = [jnp.asarray(raw[name]) for name in ("W", "a", "X", "Y")]
    return np.asarray(_flows(*parts, jnp.asarray(end), steps))


@cache
def _pairs(seed: tuple[int, ...], count: int, setting: Setting) -> dict[str, np.ndarray]:
    found = _moved(seed, count, setting)
    end, m = found["end"], found["m"]
    runs = (found["path"], _path(found, end, _STEPS // 2))
    gamma, rough = (_outputs(W, found["a"], found["tested"]).swapaxes(2, 3) for W in runs)
    shape = (count, RECORDS, -1)
    time = (m * end)[:, None] * np.arange(1, RECORDS + 1) / RECORDS
    lazy = _regression(found, found["cross"], time)
    kept = ("test_change", "kernel_change", "least", "lam", "m", "Y")
    return {name: found[name] for name in kept} | {
        "gap": np.abs(gamma.reshape(shape) - lazy),
        "error": np.abs(gamma - rough).reshape(shape),
        "start": np.linalg.norm(found["Y"], axis=(1, 2)),
        "row": np.linalg.norm(found["cross"], axis=2),
        "time": time,
    }


def flows(key: PRNGKeyArray, count: int) -> Instance:
    """Networks of width 64 beside their kernel regression, on three test inputs.

    Args:
        key: random key.
        count: instances.

    Returns:
        Batch with gap (|gamma_nn - gamma_ntk|, times by outputs of test inputs), error (of the
        integration), row (||K_te(0)||), test_change, kernel_change, least
        (lambda_min(H(tau)) along time), start (||Y||), lam, m, Y and time (m t).
    """
    return as_arrays(_pairs(seed_of(key), count, NARROW))


def flows_of_wide_drift(key: PRNGKeyArray, count: int) -> Instance:
    """`flows` with the changes of the kernels of networks sixteen times as wide, same data.

    Args:
        key: random key.
        count: instances.

    Returns:
        Batch as of `flows`.
    """
    seed = seed_of(key)
    found, wide = _pairs(seed, count, NARROW), _moved(seed, count, WIDE)
    return as_arrays(found | {name: wide[name] for name in ("test_change", "kernel_change")})
