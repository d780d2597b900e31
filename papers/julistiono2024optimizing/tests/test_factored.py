"""The factored pair against autodiff through W = K Q'."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.token_selection import TokenSelection
from julistiono2024optimizing.library.token_selection.factored import (
    draw_sphere_selection,
    train_factored,
)
from julistiono2024optimizing.library.token_selection.gradient import selection_loss

DATA = TokenSelection(
    *(jnp.asarray(a) for a in draw_sphere_selection(np.random.default_rng(4), 3, 4, 5))
)
SLOPE = jax.jit(
    jax.grad(lambda K, Q, loss: selection_loss(K @ Q.T, DATA, loss), argnums=(0, 1)),
    static_argnums=2,
)


@pytest.mark.parametrize(("normalized", "loss"), [(True, "exponential"), (False, "logistic")])
def test_steps_are_those_of_gradient_descent_on_both_factors(normalized, loss):
    K, Q = jax.random.normal(jax.random.key(1), (2, 5, 2))
    schedule = (0, 2, 3)
    path = train_factored(
        DATA, K, Q, learning_rate=0.3, steps=3, record_at=schedule, normalized=normalized, loss=loss
    )
    # Few steps with the rounding of sums of about 100 terms.
    close = {"rtol": 0, "atol": 4 * 100 * np.finfo(float).eps}
    for k in range(4):
        to_K, to_Q = SLOPE(K, Q, loss)
        norm = float(np.sqrt(np.sum(np.square(to_K)) + np.sum(np.square(to_Q))))
        if k in schedule:
            at = schedule.index(k)
            np.testing.assert_allclose(path.K[at], K, **close)
            np.testing.assert_allclose(path.Q[at], Q, **close)
            np.testing.assert_allclose(path.W[at], K @ Q.T, **close)
            assert float(path.log_gradient_norm[at]) == pytest.approx(np.log(norm), rel=1e-12)
        rate = 0.3 / norm if normalized else 0.3
        K, Q = K - rate * to_K, Q - rate * to_Q
    np.testing.assert_array_equal(path.last["K"], path.K[-1])
    np.testing.assert_array_equal(path.last["Q"], path.Q[-1])


def test_factors_of_zero_stay_zero():
    path = train_factored(
        DATA, jnp.zeros((5, 2)), jnp.zeros((5, 2)), learning_rate=0.3, steps=2, record_at=(0, 2)
    )
    assert not jnp.any(path.K) and not jnp.any(path.Q)  # noqa: PT018
    assert path.log_gradient_norm.tolist() == [-np.inf, -np.inf]


def test_problems_are_normal_vectors_divided_by_their_lengths():
    drawn, rng = draw_sphere_selection(np.random.default_rng(8), 3, 4, 5), np.random.default_rng(8)
    X, z, v = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 5)), rng.normal(size=5)
    for found, plain in ((drawn.X, X), (drawn.z, z), (drawn.v, v)):
        np.testing.assert_allclose(
            found, plain / np.sqrt((plain**2).sum(-1))[..., None], rtol=1e-15
        )
    np.testing.assert_array_equal(drawn.y, np.where(rng.integers(0, 2, 3) == 1, 1.0, -1.0))
    labels = draw_sphere_selection(np.random.default_rng(0), 200, 2, 2).y
    assert set(labels.tolist()) == {-1.0, 1.0}
