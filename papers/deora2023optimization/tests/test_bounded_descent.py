"""A short descent beside its bounds against NumPy: gradients, eigenvalues, constants."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import nnls
from written_out_heads import descent, length, loss, loss_slope, ntk, output

from attlas.bounds.optimisation.deora2023_training import Setting
from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.library.bounds.deora2023_corollary_2 import VERSIONS
from deora2023optimization.library.bounds.deora2023_initialisation import Start
from deora2023optimization.library.bounds.deora2023_versions import (
    deora2023_certified,
    deora2023_loss_bounds,
)
from deora2023optimization.library.training import bounded_descent as module
from deora2023optimization.library.training.bounded_descent import descend_beside_bounds

SCHEDULE, RATE = (0, 2, 5), 0.3


@pytest.fixture(scope="module")
def problem():
    """Four heads, samples of three tokens in two dimensions, labels that a model separates."""
    rng = np.random.default_rng(0)
    U, W, X = (
        0.5 * rng.normal(size=(4, 3, 2)),
        rng.normal(size=(4, 2, 2)),
        2 * rng.normal(size=(6, 3, 2)),
    )
    return U, 0.3 * W, X, np.sign(X[:, 0, 0])


@pytest.fixture(scope="module")
def run(problem):
    """The measurements, and the eigenpairs they come from."""
    U, W, X, y = problem
    eigenpairs, extremes = [], module.hessian_extremes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            module, "hessian_extremes", lambda *a: eigenpairs.append(extremes(*a)) or eigenpairs[-1]
        )
        start = MultiHead(jnp.asarray(U), jnp.asarray(W))
        R = np.linalg.norm(X, axis=-1).max()
        found = descend_beside_bounds(start, jnp.asarray(X), jnp.asarray(y), R, RATE, SCHEDULE)
    return found, eigenpairs


@pytest.fixture(scope="module")
def path(problem):
    return [descent(*problem, RATE, 5)[k] for k in SCHEDULE]


def hessian(U, W, X, y):
    """By differences of the gradient, which are off by the square of the step."""
    flat, rows = np.concatenate([U.ravel(), W.ravel()]), []
    for move in 1e-5 * np.eye(flat.size):
        ends = []
        for z in (flat + move, flat - move):
            U_W = z[: U.size].reshape(U.shape), z[U.size :].reshape(W.shape)
            ends.append(np.concatenate([a.ravel() for a in loss_slope(*U_W, X, y)]))
        rows.append((ends[0] - ends[1]) / 2e-5)
    return np.array(rows)


def largest_heads(path):
    return np.array([max(length(u, w) for u, w in zip(U, W, strict=True)) for U, W in path])


@pytest.mark.thorough
def test_loss_slope_and_eigenvalues_of_every_record_over_their_bounds(run, problem, path):
    (found, eigenpairs), (_, _, X, y) = run, problem
    R = max(np.linalg.norm(x) for x in X.reshape(-1, 2))
    bounds = deora2023_loss_bounds(3.0, 2.0, R, 4.0, jnp.asarray(largest_heads(path)))
    np.testing.assert_allclose(found.bound, np.stack(bounds[:3]), rtol=1e-12)
    assert found.converged.all()
    for k, parameters in enumerate(path):
        risk, slope = loss(*parameters, X, y), length(*loss_slope(*parameters, X, y))
        low, *_, high = np.linalg.eigvalsh(hessian(*parameters, X, y))
        assert low < 0 < -low != high
        np.testing.assert_allclose(found.loss[k], risk, rtol=1e-12)
        ends = found.smallest[k], found.largest[k]
        np.testing.assert_allclose(ends, (low, high), rtol=1e-5)
        measured = slope / risk, max(-low, high), -low / risk
        for values, bound, value in zip(found.ratio, bounds, measured, strict=False):
            np.testing.assert_allclose(values[:, k], value / bound[:, k], rtol=1e-5)
        sharp = VERSIONS.index("sharp")
        falling = bounds.self_bounded[sharp, k] * risk
        np.testing.assert_allclose(found.self_bounded[k], max(-low, high) / falling, rtol=1e-5)
        assert found.residual[k] == max(np.ravel(eigenpairs[k].certificate["residual"]))


def test_theory_is_evaluated_at_the_start_and_at_the_end(run, problem, path):
    found, (U, W, X, y) = run[0], problem
    R = np.linalg.norm(X, axis=-1).max()
    B_Phi = max(abs(output(U, W, x)) for x in X)
    B_2, *_, last = largest_heads(path)
    assert B_Phi > 1
    assert 1 < B_2 < 2
    assert last != B_2
    # the margin is one over the length of the shortest direction with all margins one
    features = np.linalg.cholesky(ntk(U, W, X) * np.outer(y, y))
    alpha, _ = nnls(features.T, np.linalg.solve(features, np.ones(6)))
    away = length(*(a - b for a, b in zip(path[-1], path[0], strict=True)))
    begin = Start(3.0, 2.0, R, B_2, B_Phi, 2**0.5 / alpha.sum() ** 0.5)
    certified = deora2023_certified(Setting(3.0, 2.0, R, away, last), begin, 5.0, 4.0)
    np.testing.assert_allclose(found.heads_demanded, certified.heads, rtol=1e-5)
    np.testing.assert_allclose(found.step_certified, certified.step_size, rtol=1e-5)
    printed, sharp = (VERSIONS.index(version) for version in ("printed", "sharp"))
    assert (found.heads_demanded[:, printed] >= found.heads_demanded[:, sharp]).all()
    assert (found.ratio <= 1).all()
    assert (found.self_bounded <= 1).all()
