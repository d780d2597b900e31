"""Plain steps and the flow, measured against the attention SVM of the same problems."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.optimisation.julistiono2024_cone import julistiono2024_mu_0
from attlas.data.token_selection import make_support_selection
from attlas.solvers.attention_svm import attention_svm
from julistiono2024optimizing.library.solvers.selection_geometry import selection_geometry
from julistiono2024optimizing.library.token_selection.flow import mirror_flow
from julistiono2024optimizing.library.token_selection.long_paths import LongPaths, long_paths

STEPS, RATE, NORM = 200, 0.5, 0.4
CLOCKS = ((100, 30.0), (400, 20.0))


def problems():
    return jax.vmap(make_support_selection)(jax.random.split(jax.random.key(0), 2))


@pytest.fixture(scope="module")
def found() -> LongPaths:
    return long_paths(problems(), jnp.full((2, 4, 4), NORM / 4), 2.0, RATE, STEPS, CLOCKS, 12)


@pytest.mark.thorough
def test_paths_end_where_their_clocks_say(found):
    assert np.nanmax(found.log_k[0], axis=1) == pytest.approx(np.log(STEPS))
    for norm, (_, reach) in zip(found.norm[1:], CLOCKS, strict=True):
        # Each step adds its length to the norm of the start, less what turns it.
        ends = np.nanmax(norm, axis=1)
        assert (ends <= NORM + reach).all()
        assert (ends > 0.9 * reach).all()


def test_the_flow_passes_the_end_of_the_plain_steps(found):
    """Euler's method on either clock: at one time the norms agree up to the steps' sizes."""
    last, end = np.nanmax(found.log_k[0], axis=1), found.norm[0][:, -1]
    for log_k, norm, (steps, reach) in zip(found.log_k[1:], found.norm[1:], CLOCKS, strict=True):
        for e in range(2):
            kept = ~np.isnan(log_k[e])
            at = np.interp(last[e], log_k[e, kept], norm[e, kept])
            assert abs(at - end[e]) < 2 * reach / steps + 0.5 * RATE


def test_the_direction_turns_to_the_svm(found):
    assert found.solved.all()
    assert (found.svm_norm > 0).all()
    assert (found.cone_width > 0).all()
    first, last = found.divergence[1][:, 1], np.nanmin(found.divergence[1], axis=1)
    assert (last < 0.1 * first).all()


def test_what_lies_past_the_end_of_a_path_is_not_a_number(found):
    for axis in (found.norm, found.divergence):
        np.testing.assert_array_equal(np.isnan(axis), np.isnan(found.log_k))


def test_points_of_a_clock_are_those_of_the_flow_measured_one_by_one(found):
    data, spaced = problems(), np.unique(np.geomspace(10, 100, 12).astype(int)).tolist()
    bare = type(data)(data.X, data.y, data.z, data.v)
    follow = partial(mirror_flow, p=2.0, steps=100, step=0.3, record_at=spaced)
    flow = jax.vmap(follow)(bare, jnp.full((2, 4, 4), NORM / 4))
    assert np.isfinite(found.norm[1]).sum(axis=1).tolist() == [len(spaced)] * 2
    for e in range(2):
        W, log_k = np.asarray(flow.W[e]), np.asarray(flow.log_time[e]) - np.log(RATE)
        np.testing.assert_allclose(found.log_k[1, e, : len(spaced)], log_k, rtol=1e-12)
        norm = np.linalg.norm(W, axis=(1, 2))
        np.testing.assert_allclose(found.norm[1, e, : len(spaced)], norm, rtol=1e-12)
        svm = attention_svm(data.X[e], data.z[e], data.tokens[e], 2.0)
        goal = np.asarray(svm.unwrap())
        along = np.sum(goal[None] * W, axis=(1, 2)) / np.linalg.norm(goal) / norm
        apart = found.divergence[1, e, : len(spaced)]
        np.testing.assert_allclose(apart, 1 - along, rtol=0, atol=1e-9)
        assert found.svm_norm[e] == pytest.approx(np.linalg.norm(goal), rel=1e-6)
        one = jax.tree.map(lambda a, e=e: a[e], bare)
        geometry = selection_geometry(one, data.tokens[e], goal, 2.0)
        width = julistiono2024_mu_0(geometry.delta, geometry.A, 2.0, 4, constants="printed")
        assert found.cone_width[e] == pytest.approx(float(width), rel=1e-6)
