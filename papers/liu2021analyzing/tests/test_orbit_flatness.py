"""Flatness on the scaling orbit: exact scalings, known volumes, and what balls and softplus do."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from attlas.measures.curvature.exact_spectrum import hessian_matrix
from liu2021analyzing.library.measures.orbit_flatness import (
    _RADII,
    _first_exit,
    flat_volume,
    orbit_curvature,
    orbit_extent,
    orbit_in_balls,
    rescaled_layers,
)

KEY = jax.random.key(0)


def relu_risk(W, w, x, y):
    """Squared error of a ReLU network."""
    return jnp.mean((jnp.maximum(x @ W, 0.0) @ w - y) ** 2) / 2


def softplus_risk(W, w, x, y):
    """The same with softplus of sharpness 2."""
    return jnp.mean((jax.nn.softplus(2.0 * (x @ W)) / 2.0 @ w - y) ** 2) / 2


def at_teacher():
    """A network at a global minimum: the labels are its own."""
    draw = np.random.default_rng(0)
    x, W, w = (jnp.asarray(draw.standard_normal(shape)) for shape in ((12, 2), (2, 2), (2,)))
    return W, w, x, jnp.maximum(x @ W, 0.0) @ w


def test_the_hessian_scales_as_the_proof_says():
    W, w, x, y = at_teacher()
    alphas = np.array([1.0, 0.3, 0.01])
    tops = orbit_curvature(relu_risk, W, w, alphas, x, y).unwrap()
    H = np.asarray(hessian_matrix(lambda pair, *a: relu_risk(*pair, *a), (W, w), x, y))
    for alpha, top in zip(alphas, tops, strict=True):
        scale = np.r_[np.full(4, 1 / alpha), np.full(2, alpha)]
        expected = np.linalg.eigvalsh(scale[:, None] * H * scale[None, :])[-1]
        assert top == pytest.approx(expected, rel=1e-10)
    assert tops[2] > 0.99 * 1e4 * np.linalg.eigvalsh(H[:4, :4])[-1]


def test_the_orbit_is_flat_for_relu_and_not_for_softplus():
    W, w, x, y = at_teacher()
    assert orbit_extent(relu_risk, W, w, x, y, epsilon=0.01) == (0.0, math.inf)
    labels = jax.nn.softplus(2.0 * (x @ W)) / 2.0 @ w
    low, high = orbit_extent(softplus_risk, W, w, x, labels, epsilon=1e-4)
    assert 0 < low < 1 < high < math.inf
    for alpha in (low, high):
        risk = float(softplus_risk(*rescaled_layers(W, w, alpha), x, labels))
        assert risk == pytest.approx(1e-4, rel=1e-6)
    # For large alpha the network tends to a ReLU one: a larger rise is never reached.
    assert orbit_extent(softplus_risk, W, w, x, labels, epsilon=0.5)[1] == math.inf


def test_volumes_along_the_orbit_grow_by_the_jacobian():
    W, w, x, y = at_teacher()
    same = {"epsilon": 0.05, "key": KEY, "directions": 512}
    here = flat_volume(relu_risk, W, w, x, y, **same)
    there = flat_volume(relu_risk, *rescaled_layers(W, w, 8.0), x, y, **same, alpha=8.0)
    # P1 - P2 = 2: the same rays, transported.
    assert there.log_volume - here.log_volume == pytest.approx(2 * math.log(8), rel=1e-9)
    assert there.capped == here.capped == 0.0


def test_balls_bound_orbit_curvature_and_volume():
    W, w, x, y = at_teacher()
    balls = (2 * float(jnp.linalg.norm(W)), 2 * float(jnp.linalg.norm(w)))
    low, high = orbit_in_balls(W, w, balls)
    assert (low, high) == pytest.approx((0.5, 2.0))
    tops = orbit_curvature(relu_risk, W, w, np.array([low, 1.0, high]), x, y).unwrap()
    # Entries of the Hessian grow by at most 1 / low^2 and high^2.
    assert tops.max() <= 4 * tops[1] * (1 + 1e-12)
    inside = flat_volume(relu_risk, W, w, x, y, epsilon=1e6, key=KEY, directions=512, balls=balls)
    volumes = [math.pi**2 / 2 * balls[0] ** 4, math.pi * balls[1] ** 2]
    # Everything in the product of the balls is allowed, and it is seen from inside.
    error = 5 / math.sqrt(inside.effective_directions)
    assert inside.log_volume == pytest.approx(math.log(volumes[0] * volumes[1]), abs=error)
    assert inside.capped == 0.0


def test_an_ellipsoid_has_its_volume():
    def bowl(a, b):
        return 4.0 * jnp.sum(a**2) + jnp.sum(b**2) / 4.0

    found = flat_volume(bowl, jnp.zeros(2), jnp.zeros(1), epsilon=1.0, key=KEY, alpha=0.5)
    # Half axes 1/2, 1/2 and 2: stretched directions make every ray as long.
    assert found.log_volume == pytest.approx(math.log(4 / 3 * math.pi / 2), rel=1e-12)
    assert found.effective_directions == pytest.approx(2000)


def test_unbounded_sets_are_said_to_be_capped():
    found = flat_volume(
        lambda a, b: a[0] * 0.0 + b[0] ** 2, jnp.zeros(1), jnp.zeros(1), epsilon=1.0, key=KEY
    )
    assert 0 < found.capped < 0.1


def test_a_fall_of_the_risk_is_refused():
    with pytest.raises(UserError, match="epsilon = 0"):
        orbit_extent(lambda a, b: a[0] * b[0], jnp.ones(1), jnp.ones(1), epsilon=0.0)


def test_volume_with_balls_against_the_rays_own_quadratics():
    """Every ray leaves where the first of three quadratics is met; draws are the stated stream."""
    a, b = np.array([0.3, -0.2]), np.array([0.5, 0.1, -0.4])
    balls, alpha, epsilon, longest, count = (1.1, 1.3), 1.4, 0.6, 0.9, 37
    found = flat_volume(
        lambda a, b: 2.0 * jnp.sum(a**2) + jnp.sum(b**2) / 3.0 + 5.0,
        jnp.asarray(a), jnp.asarray(b), epsilon=epsilon, key=KEY, balls=balls, alpha=alpha,
        directions=count, longest=longest,
    )  # fmt: skip
    draws = generator(KEY).standard_normal((count, 5))
    radii = []
    for ray in draws:
        ray = ray / np.sqrt(np.sum(ray**2))
        u, v = ray[:2] * alpha, ray[2:] / alpha
        forms = (
            (2 * u @ u + v @ v / 3, 4 * a @ u + 2 * b @ v / 3, -epsilon),
            (u @ u, 2 * a @ u, a @ a - balls[0] ** 2),
            (v @ v, 2 * b @ v, b @ b - balls[1] ** 2),
        )
        radii.append(min(longest, *(max(np.roots(form)) for form in forms)))
    powers = np.array(radii) ** 5
    assert found.capped == np.mean(np.array(radii) == longest)
    assert 0 < found.capped < 0.9
    volume = alpha ** (2 - 3) * math.pi**2.5 / math.gamma(3.5) * powers.mean()
    assert found.log_volume == pytest.approx(math.log(volume), rel=1e-9)
    effective = powers.sum() ** 2 / np.sum(powers**2)
    assert found.effective_directions == pytest.approx(effective, rel=1e-9)


def test_the_extent_is_above_the_risk_at_the_centre():
    """Risk (ab)^2 + (a - b)^2 = 1 + 1/4 at (1, 1/2), and a at scale alpha is a alpha, b / alpha."""
    low, high = orbit_extent(
        lambda a, b: (a[0] * b[0] - 1.5) ** 2 + (a[0] - b[0]) ** 2,
        jnp.array([1.0]), jnp.array([0.5]), epsilon=0.75,
    )  # fmt: skip
    # (alpha - 1 / (2 alpha))^2 = 1: alpha^2 -+ alpha - 1/2 = 0
    expected = [(math.sqrt(3) - 1) / 2, (math.sqrt(3) + 1) / 2]
    assert (low, high) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("place", [0, 1, 2, 3, 7])
def test_an_exit_is_sought_on_half_octaves_and_then_between_two(place):
    """A narrow gap at one radius of the grid is seen, decoys between the radii are not."""
    longest = 6.0
    grid = [longest * 2 ** (-k / 2) for k in range(_RADII)][::-1]
    gap = grid[place]
    # Half of the gap is itself on the grid, but below the least radius.
    decoys = jnp.array([0.5] if place == 1 else [0.75, 0.677])

    def outside(r):
        hidden = jnp.abs(r / gap - decoys) < 1e-3
        return (jnp.abs(r / gap - 1) < 1e-4) | jnp.any(hidden)

    if place == 0:
        expected = _first_exit(lambda r: r > gap / 3, jnp.array(longest))
        assert float(expected) == pytest.approx(gap / 3, rel=1e-6, abs=0)
        return
    found = float(_first_exit(outside, jnp.array(longest)))
    assert found == pytest.approx(gap * (1 - 1e-4), rel=1e-6, abs=0)


def test_the_last_radius_of_the_grid_is_the_longest():
    found = float(_first_exit(lambda r: r > 0.9999 * 6.0, jnp.array(6.0)))
    assert found == pytest.approx(0.9999 * 6.0, rel=1e-6)
    assert float(_first_exit(lambda r: r > 6.0, jnp.array(6.0))) == 6.0
