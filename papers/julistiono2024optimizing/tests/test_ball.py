"""Descent in a ball: against the solver of the path, and the joint path's certificate."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.data.token_selection import TokenSelection, make_separable_selection
from attlas.norms.entrywise import entrywise_norm
from attlas.solvers.attention_svm import attention_svm
from julistiono2024optimizing.library.solvers.regularisation_path import regularisation_path
from julistiono2024optimizing.library.token_selection.ball import descend_in_ball
from julistiono2024optimizing.library.token_selection.gradient import selection_loss

P = 3.0


@pytest.fixture(scope="module")
def problem():
    """Two samples of three tokens with their attention SVM."""
    data = make_separable_selection(jax.random.key(3), n=2, T=3, d=3)
    return data, jnp.asarray(attention_svm(data.X, data.z, data.tokens, P).unwrap())


@pytest.mark.thorough
def test_reaches_the_point_that_another_solver_finds(problem):
    data, W_mm = problem
    radius = 8 * float(entrywise_norm(W_mm, P))
    found = descend_in_ball(data, W_mm, p=P, radius=radius, steps=600)
    path = regularisation_path(data, [radius], P, key=jax.random.key(0), starts=2)
    # Both are stationary to a relative gap g; the direction is then right to about sqrt(g).
    gap = max(float(found.relative_gap), float(path.certificate["relative_gap"][0]), 1e-15)
    assert gap < 1e-8
    assert float(entrywise_norm(found.W - path.value[0], P)) < 10 * gap**0.5 * radius
    assert float(entrywise_norm(found.W, P)) == pytest.approx(radius, rel=1e-13)


def test_gap_is_positive_away_from_a_stationary_point(problem):
    data, W_mm = problem
    found = descend_in_ball(data, -W_mm, p=P, radius=5.0, steps=1)
    assert float(found.relative_gap) > 0.01


def test_implicit_steps_reach_rounding_where_explicit_ones_stop(problem):
    data, W_mm = problem
    radius = 4000 * float(entrywise_norm(W_mm, P))
    explicit = descend_in_ball(data, W_mm, p=P, radius=radius, steps=300)
    implicit = descend_in_ball(data, W_mm, p=P, radius=radius, steps=300, implicit_steps=100)
    assert float(explicit.relative_gap) > 1e-6
    assert float(implicit.relative_gap) < 1e-14
    assert float(entrywise_norm(implicit.W, P)) == pytest.approx(radius, rel=1e-13)


@pytest.mark.thorough
def test_joint_point_lies_on_both_spheres_and_is_stationary():
    data = make_separable_selection(jax.random.key(5), n=2, T=2, d=3)
    found = descend_in_ball(
        data, data.separator, p=P, radius=20.0, steps=1500, head_radius=jnp.asarray(4.0)
    )
    assert float(entrywise_norm(found.v, P)) == pytest.approx(4.0, rel=1e-13)
    assert float(found.relative_gap) < 1e-6


RNG = np.random.default_rng(12)
ARRAYS = (RNG.normal(size=(3, 4, 5)), np.array([1.0, -1, 1]), RNG.normal(size=(3, 5)))
START, HEAD = RNG.normal(size=(5, 5)), RNG.normal(size=5)


def risk(W, v, loss):
    X, y, z = (jnp.asarray(a) for a in ARRAYS)
    return selection_loss(W, TokenSelection(X, y, z, v), loss)


SLOPES = jax.jit(jax.grad(risk, argnums=(0, 1)), static_argnums=2)


def size(a, exponent):
    return np.sum(np.abs(a) ** exponent) ** (1 / exponent)


def loop(p, radius, steps, head_radius, loss):
    """The descent in NumPy: the best point, its gap, and the lengths of all steps."""
    q, sizes = p / (p - 1), (radius, head_radius)

    def powered(a, exponent):
        return np.sign(a) * np.abs(a) ** exponent

    def unit(a, exponent):
        return a / size(a, exponent)

    dual = [unit(powered(a, p - 1), q) for a in (START, HEAD)]
    tau, last, best, lengths = 0.02, np.inf, (np.inf, None, None), []
    for _ in range(steps):
        W = radius * unit(powered(dual[0], 1 / (p - 1)), p)
        v = HEAD if head_radius is None else head_radius * unit(powered(dual[1], 1 / (p - 1)), p)
        aims = [-unit(np.asarray(g), q) for g in SLOPES(W, v, loss)]
        blocks = list(zip(aims, (W, v), sizes, strict=True))[: 1 if head_radius is None else 2]
        gap = max(1 - np.sum(aim * w) / r for aim, w, r in blocks)
        best = min(best, (gap, W, v), key=lambda point: point[0])
        tau = min(1.05 * tau, 1.0) if gap <= last else max(tau / 2, 0.1 / steps)
        last = gap
        lengths.append(tau)
        dual = [unit(u + tau * (aim - u), q) for u, aim in zip(dual, aims, strict=True)]
    return best, lengths


@pytest.mark.parametrize(
    ("p", "radius", "steps", "head_radius", "loss", "length"),
    [
        (3.0, 0.4, 40, None, "logistic", None),
        (1.5, 20.0, 4, 2.5, "exponential", 0.025),
        (1.5, 20.0, 24, 2.5, "exponential", 1.05 * 0.02 / 2),
        (3.0, 2.0, 30, 0.5, "exponential", None),
    ],
)
def test_the_best_point_of_a_descent_is_that_of_a_loop(p, radius, steps, head_radius, loss, length):
    data = TokenSelection(*(jnp.asarray(a) for a in (*ARRAYS, HEAD)))
    found = descend_in_ball(
        data, START, p=p, radius=radius, steps=steps, head_radius=head_radius, loss=loss
    )
    (gap, W, v), lengths = loop(p, radius, steps, head_radius, loss)
    assert float(found.relative_gap) == pytest.approx(gap, rel=1e-7, abs=1e-13)
    # Where the gap is down to rounding, the point is known to its root.
    close = {"rtol": 0, "atol": 1e-10 if gap > 1e-3 else 1e-7}
    np.testing.assert_allclose(found.W / radius, W / radius, **close)
    np.testing.assert_allclose(found.v, v, **close)
    assert length is None or length in lengths
