"""Instances in the cone: what a projection leaves, samplers of score gaps, and trajectories."""

from contextlib import contextmanager

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from julistiono2024optimizing.cone_instances import (
    at_radius,
    back_in_place,
    cone_divergence,
    cone_points,
    constants,
    gaps,
    scores,
    solves_the_svm,
)
from julistiono2024optimizing.lemma_28 import trajectory
from julistiono2024optimizing.lemma_28_radius import invariance_radius, two_axes

_SVM = ("X", "z", "p", "W_mm", "weight", "beyond")
_CONSTANTS = ("X", "z", "v", "y", "p", "W_mm", "beyond", "mixture", "d")


@contextmanager
def _as_claims_run():
    """Double precision and NumPy's promotions, as in a check of claims."""
    standard, allow = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with jax.enable_x64(True), standard, allow:
        yield


@pytest.mark.thorough
@pytest.mark.parametrize("radius", [at_radius, invariance_radius])
@pytest.mark.parametrize("decades", [0.0, 6.0])
def test_moved_arrays_come_back_with_the_constants_of_where_they_are(radius, decades):
    rng = np.random.default_rng(3)
    with _as_claims_run():
        batch = cone_points(rng, 32, radius, decades=decades)
        moved = {name: batch[name] * (1 + 0.05 * rng.normal(size=batch[name].shape))
                 for name in ("X", "z", "v", "W")}  # fmt: skip
        project = jax.vmap(lambda instance: back_in_place(radius)(**instance))
        there = project({**batch, **moved})
        solved = jax.vmap(solves_the_svm)(*(there[name] for name in _SVM))
        again = jax.vmap(constants)(*(there[name] for name in _CONSTANTS))
        numbers = {**there, **again}
        radii = jax.vmap(radius)(numbers)
        stays = project(there)
    # Moved by that much, gaps of 1e-6 may be beyond rounding; such points are not applicable.
    solved = np.asarray(solved)
    assert np.mean(solved) > 0.9
    there, again, stays = (
        {name: np.asarray(value)[solved] for name, value in batch.items()}
        for batch in (there, again, stays)
    )
    radii = np.asarray(radii)[solved]
    for name, value in again.items():
        np.testing.assert_allclose(there[name], value, rtol=1e-9)
    np.testing.assert_allclose(there["radius"], radii, rtol=1e-9)
    for name, value in stays.items():
        value = np.asarray(value, float)
        size = np.max(np.abs(value), axis=tuple(range(1, value.ndim)), keepdims=True)
        assert np.all(np.abs(value - np.asarray(there[name], float)) <= 1e-7 * size), name


def test_score_gaps_span_six_decades_and_the_attention_svm_stays_solved():
    with _as_claims_run():
        batch = cone_points(np.random.default_rng(0), 64, at_radius)
        gamma = jax.vmap(scores)(batch["X"], batch["v"], batch["y"])
        margins = np.asarray(jax.vmap(gaps)(batch["X"], batch["z"], batch["W_mm"]))
    advantage = np.asarray(gamma[:, :, :1] - gamma[:, :, 1:])[~batch["beyond"]]
    assert np.all(advantage > 0)
    assert np.ptp(np.log10(advantage)) > 6
    np.testing.assert_allclose(margins[~batch["beyond"]], 1, rtol=1e-9)


@pytest.mark.thorough
def test_the_witness_of_the_short_radius_by_a_loop_over_steps():
    """Attention of two tokens is a sigmoid: descent in NumPy leaves twice the half cone."""
    with _as_claims_run():
        data = {name: jnp.asarray(value) for name, value in two_axes().items()}
        path = trajectory({**data, "tau": data["norm"] / 10})
        inside = cone_divergence(data["W_mm"], data["W"], 2.0)
    W, z, gap = np.asarray(data["W"]), np.asarray(data["z"][0]), np.array([1.0, 1e-3])
    np.testing.assert_allclose(inside, data["mu"] / 2, rtol=1e-9)

    def gradient(W):
        h = W @ z
        s = 1 / (1 + np.exp(-h))
        slope = 1 / (1 + np.exp((s - 0.5) * gap))
        return -np.outer(slope * gap * s / (1 + np.exp(h)), z) / 2

    eta, divergences = data["norm"] / 10 / np.linalg.norm(gradient(W)), []
    for _ in range(160):
        W = W - eta * gradient(W)
        divergences.append(
            1 - np.sum(W * data["W_mm"]) / np.linalg.norm(W) / np.linalg.norm(data["W_mm"])
        )
    np.testing.assert_allclose(path["divergences"], divergences, rtol=1e-6)
    assert max(divergences) > 1.12 * data["mu"]
