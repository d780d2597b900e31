"""The flow at late times against explicit steps, and flows that are not solved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.token_selection import TokenSelection, make_support_selection
from attlas.losses.margin_loss import margin_loss
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import potential_gradient
from julistiono2024optimizing.flow_instances import LatePaths, solved
from julistiono2024optimizing.library.token_selection.flow import mirror_flow
from julistiono2024optimizing.library.token_selection.late_flow import late_flow

LOGISTIC = margin_loss("logistic")


def begin(p):
    """A problem, grad psi(W) and log t after 200 explicit steps of 0.05, and after 2000."""
    data = make_support_selection(jax.random.key(0))
    path = mirror_flow(
        data, 0.1 * jnp.ones((4, 4)), p=p, steps=2000, step=0.05, record_at=(200, 2000)
    )
    return data, potential_gradient(path.W[0], p), path


@pytest.mark.thorough
@pytest.mark.parametrize("p", [1.5, 2.0, 3.0])
def test_implicit_steps_follow_the_explicit_ones(p):
    data, dual, path = begin(p)
    late = late_flow(
        data,
        dual,
        path.log_time[0],
        p=jnp.asarray(p),
        steps=600,
        growth=1.005,
        loss=LOGISTIC,
    )
    norm = np.array([float(entrywise_norm(W, p)) for W in late.W])
    assert norm[-1] > path.norm[1]
    at = np.log(path.norm[1])
    clock = np.interp(at, np.log(norm), np.asarray(late.log_time))
    assert clock == pytest.approx(float(path.log_time[1]), rel=2e-3)
    k = int(np.searchsorted(norm, path.norm[1]))
    direction, explicit = late.W[k] / norm[k], path.W[1] / path.norm[1]
    np.testing.assert_allclose(direction, explicit, rtol=0, atol=5e-3)


def test_points_are_not_a_number_from_a_step_that_is_not_solved():
    data, dual, path = begin(2.0)
    start = dual.at[0, 0].set(jnp.nan)
    late = late_flow(
        data,
        start,
        path.log_time[0],
        p=jnp.asarray(2.0),
        steps=2,
        growth=1.05,
        loss=LOGISTIC,
    )
    assert np.isnan(late.W).all()
    norm = np.array([[1.0, 2.0], [1.0, np.nan]])
    assert solved(LatePaths(late.W, norm, norm, norm)).tolist() == [True, False]


@pytest.mark.parametrize("p", [1.5, 4.0])
def test_a_step_at_which_newton_s_method_fails_is_reported(p):
    # The second sample attends to its worse token, 65 behind, where the equations of a step are far
    # from linear, or to its better one, 35 ahead.
    X = jnp.array([[[1.0, 0.0], [0.0, 0.0]], [[-0.5, 1.0], [0.0, 0.0]]])
    z, v = jnp.array([[1.0, 0.0], [1.0, 0.0]]), jnp.array([1.0, 2.0])
    data = TokenSelection(X, jnp.ones(2), z, v)

    def ends(W0):
        dual = potential_gradient(jnp.asarray(W0), p)
        return late_flow(
            data, dual, jnp.asarray(5.0), p=jnp.asarray(p), steps=3, growth=1.05, loss=LOGISTIC
        )

    behind, ahead = ends([[30.0, 0.0], [-50.0, 0.0]]), ends([[50.0, 0.0], [60.0, 0.0]])
    assert np.isnan(behind.W).all()
    assert not (behind.unsolved <= 1e-6).any()
    assert np.isfinite(ahead.W).all()
    assert (ahead.unsolved <= 1e-6).all()


@pytest.mark.thorough
@pytest.mark.parametrize("p", [1.25, 2.0, 4.0])
def test_samples_and_dimensions_that_pad_a_problem_do_not_change_the_flow(p):
    rng = np.random.default_rng(5)
    X, z, v = rng.uniform(size=(2, 2, 2)), rng.uniform(size=(2, 2)), np.ones(2)
    X[:, 0] += 1
    W0 = sum(np.outer(x[0] - x[1], query) for x, query in zip(X, z, strict=True))
    plain = TokenSelection(*map(jnp.asarray, (X, np.ones(2), z, v)))
    wider = TokenSelection(
        jnp.pad(plain.X, ((0, 2), (0, 0), (0, 1))).at[2:, :, :2].set(5e5),
        jnp.pad(plain.y, (0, 2), constant_values=1),
        jnp.pad(plain.z, ((0, 2), (0, 1))),
        jnp.pad(plain.v, (0, 1)),
    )

    def flow(data, W0):
        exponent = jnp.asarray(p)
        early = mirror_flow(data, jnp.asarray(W0), p=exponent, steps=1600, step=0.1)
        dual = potential_gradient(early.W[-1], exponent)
        late = late_flow(
            data, dual, jnp.asarray(5.0), p=exponent, steps=40, growth=1.05, loss=LOGISTIC
        )
        return np.asarray(jnp.concatenate([early.W, late.W]))

    expected, padded = flow(plain, 8 * W0), flow(wider, np.pad(8 * W0, ((0, 1), (0, 1))))
    assert np.isfinite(expected).all()
    assert not padded[:, 2].any()
    assert not padded[:, :, 2].any()
    scale = np.abs(expected).max(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(padded[:, :2, :2] / scale, expected / scale, rtol=0, atol=1e-10)
