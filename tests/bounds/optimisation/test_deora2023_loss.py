"""Corollary 1 against measured derivatives of the risk; the comparison on segments."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from attlas.bounds.optimisation.deora2023_loss import (
    deora2023_beta_1,
    deora2023_beta_2,
    deora2023_beta_3,
    deora2023_quasi_convexity,
)
from attlas.losses.empirical_risk import empirical_risk
from attlas.models.attention.multi_head import MultiHead, head_norms

VERSIONS = ("printed", "dimension_free", "sharp")
N, H, T, D = 3, 2, 2, 2
ROUNDING = 1 + 512 * np.finfo(float).eps


def test_derivatives_of_the_risk_stay_below():
    rng = np.random.default_rng(0)
    count = 48
    scale = 10 ** rng.uniform(-2, 1, size=(2, count, 1, 1, 1))
    U = jnp.asarray(rng.normal(size=(count, H, T, D)) * scale[0])
    W = jnp.asarray(rng.normal(size=(count, H, D, D)) * scale[1])
    X = jnp.asarray(rng.normal(size=(count, N, T, D)))
    y = jnp.asarray(rng.choice([-1.0, 1.0], size=(count, N)))

    @jax.jit
    @jax.vmap
    def measure(U, W, X, y):
        flat, unravel = ravel_pytree((U, W))
        risk = lambda flat: empirical_risk(MultiHead(*unravel(flat)), X, y)  # noqa: E731
        R = jnp.max(jnp.linalg.norm(X, axis=-1))
        largest = jnp.max(head_norms(MultiHead(U, W)))
        bounds = [
            (
                deora2023_beta_1(T, R, largest, version),
                deora2023_beta_2(T, D, R, largest, H, version),
                deora2023_beta_3(T, D, R, largest, version),
            )
            for version in VERSIONS
        ]
        slope = jnp.linalg.norm(jax.grad(risk)(flat))
        return risk(flat), slope, jnp.linalg.eigvalsh(jax.hessian(risk)(flat)), bounds

    risk, slope, spectrum, bounds = measure(U, W, X, y)
    for beta_1, beta_2, beta_3 in bounds:
        assert np.all(slope <= beta_1 * risk * ROUNDING)
        assert np.all(np.abs(spectrum).max(1) <= beta_2 * ROUNDING)
        assert np.all(spectrum[:, 0] >= -beta_3 / np.sqrt(H) * risk * ROUNDING)
    for weaker, sharper in itertools.pairwise(bounds):
        for above, below in zip(weaker, sharper, strict=True):
            assert np.all(below <= above * ROUNDING)


def test_sharp_beta_3_is_between_its_blocks():
    """sqrt(T) R^3 at zero parameters, and the third moment's constant far away."""
    np.testing.assert_allclose(deora2023_beta_3(9, 7, 2.0, 0.0, "sharp"), 3 * 8)
    far = deora2023_beta_3(9, 7, 2.0, 1e9, "sharp") / 1e9
    np.testing.assert_allclose(far, 3 * 32 * 4 / (3 * np.sqrt(3)), rtol=1e-15)


def test_bounds_grow_with_every_argument():
    for version in VERSIONS:
        base = deora2023_beta_2(2, 2, 1.1, 1.0, 4, version)
        for changed in ((3, 2, 1.1, 1.0, 4), (2, 2, 1.2, 1.0, 4), (2, 2, 1.1, 1.1, 4)):
            assert deora2023_beta_2(*changed, version) > base
        assert deora2023_beta_2(2, 2, 1.1, 1.0, 8, version) < base
    assert deora2023_beta_3(2, 9, 1.1, 1.0, "printed") > deora2023_beta_3(2, 2, 1.1, 1.0, "printed")
    assert float(jax.grad(lambda x: deora2023_beta_3(2, 2, 1.0, x, "sharp"))(1.0)) > 0


def sharp_curvature(s):
    """The norm of the two blocks of a Hessian, without sqrt(T) R^3: 1 off the diagonal."""
    p = np.linspace(0, 0.5, 10**6)
    third = np.max(p * (2 - 2 * p) ** 3 - (1 - p) * (2 * p) ** 3)
    return np.linalg.norm([[0, 1], [1, third * s]], 2)


@pytest.mark.parametrize(
    ("version", "x", "beta_1", "beta_3"),
    [
        # T = 4, d = 9, R = 2
        ("printed", 3.0, 4 * (2 * 12 + 1), 2 * 6 * 8 * (3 * 3 * 12 + 1)),
        ("corrected", 0.5, 4 * (2 * 2 + 1), 2 * 6 * 8 * (3 * 3 * 2 + 1)),
        ("printed", 0.0, 4, 2 * 6 * 8),
        ("dimension_free", 3.0, 4 * (2 * 12 + 1), 2 * 8 * (2 * 12 + 1)),
        ("dimension_free", 0.0, 4, 2 * 8),
        ("sharp", 3.0, 4 * 12, 2 * 8 * sharp_curvature(12)),
        ("sharp", 0.2, 4, 2 * 8 * sharp_curvature(0.8)),
    ],
)
def test_values_by_hand(version, x, beta_1, beta_3):
    np.testing.assert_allclose(deora2023_beta_1(4, 2.0, x, version), beta_1, rtol=1e-14)
    np.testing.assert_allclose(deora2023_beta_3(4, 9, 2.0, x, version), beta_3, rtol=1e-11)
    smoothness = [deora2023_beta_2(4, 9, 2.0, x, H, version) for H in (1, 16)]
    by_hand = [beta_3 + beta_1**2 / 4, beta_3 / 4 + beta_1**2 / 4]
    np.testing.assert_allclose(smoothness, by_hand, rtol=1e-11)


@pytest.mark.parametrize(
    ("version", "c", "factor"),
    [
        *(("printed", c, q) for c, q in ((0.0, 1.0), (0.5, 4 / 3), (1.0, 2.0), (1.5, 4.0))),
        ("sharp", 0.0, 1.0),
        ("sharp", (np.pi / 2) ** 2, 2**0.5),
        ("sharp", (2 * np.pi / 3) ** 2, 2.0),
    ],
)
def test_quasi_convexity_by_hand(version, c, factor):
    np.testing.assert_allclose(deora2023_quasi_convexity(c, version), factor, rtol=1e-14)


def test_comparison_on_segments():
    """Random positive functions with f'' >= -c f, c measured on a fine grid."""
    rng = np.random.default_rng(1)
    t = np.linspace(0, 1, 2001)
    tried = 0
    for _ in range(400):
        rate, phase, size = rng.uniform(0, 5, 3), rng.uniform(0, 7, 3), rng.normal(size=3)
        waves = size[:, None] * np.cos(rate[:, None] * t + phase[:, None])
        f = waves.sum(0)
        lift = rng.exponential() - f.min()
        f = f + lift
        second = -(rate[:, None] ** 2 * waves).sum(0)
        # the grid misses the largest ratio by less than its square step
        c = np.max(-second / f) * (1 + 1e-4)
        if not 0.01 < c < 9:
            continue
        tried += 1
        w = np.sqrt(c)
        slope = -(size * rate * np.sin(phase)).sum()
        assert f[-1] >= f[0] * np.cos(w) + slope * np.sin(w) / w
        assert f.max() <= float(deora2023_quasi_convexity(c, "sharp")) * max(f[0], f[-1])
    assert tried > 100


def test_sharp_quasi_convexity_is_attained():
    c = 0.5
    f = np.cos(np.sqrt(c) * (np.linspace(0, 1, 3) - 0.5))
    np.testing.assert_allclose(f[1] / f[0], deora2023_quasi_convexity(c, "sharp"), rtol=1e-15)
    assert deora2023_quasi_convexity(c) < deora2023_quasi_convexity(c, "printed")
    np.testing.assert_allclose(deora2023_quasi_convexity(constants="printed"), 4 / 3)


def test_formulas_follow_the_dtype_and_trace():
    """float32 in, float32 out; one program over a batch of numbers."""
    largest = jnp.asarray(2.0, "float32")
    for version in VERSIONS:
        assert deora2023_beta_2(2, 3, 1.5, largest, 4, version).dtype == jnp.float32
        batch = jax.vmap(lambda x, v=version: deora2023_beta_2(2, 3, 1.5, x, 4, v))(
            jnp.array([1.0, 2.0])
        )
        np.testing.assert_allclose(batch[1], deora2023_beta_2(2, 3, 1.5, 2.0, 4, version))
    assert deora2023_quasi_convexity(largest / 4, "sharp").dtype == jnp.float32


def test_all_constants_by_hand():
    T, d, R, x, heads = 3, 5, 1.7, 0.9, 7
    s = 4 / (3 * 3**0.5) * R**2 * x
    first = {
        "printed": 3**0.5 * R * (2 * R**2 * x + 1),
        "dimension_free": 3**0.5 * R * (2 * R**2 * x + 1),
        "sharp": 3**0.5 * R * R**2 * x,
    }
    third = {
        "printed": 2 * 15**0.5 * R**3 * (3 * 5**0.5 * R**2 * x + 1),
        "dimension_free": 3**0.5 * R**3 * (2 * R**2 * x + 1),
        "sharp": 3**0.5 * R**3 * (s + (s**2 + 4) ** 0.5) / 2,
    }
    for version in VERSIONS:
        second = third[version] / heads**0.5 + first[version] ** 2 / 4
        found = (
            deora2023_beta_1(T, R, x, version),
            deora2023_beta_2(T, d, R, x, heads, version),
            deora2023_beta_3(T, d, R, x, version),
        )
        np.testing.assert_allclose(found, [first[version], second, third[version]], rtol=1e-14)
    np.testing.assert_allclose(deora2023_beta_1(T, R, 0.1), 3**0.5 * R, rtol=1e-14)
    printed = deora2023_quasi_convexity(0.8, "printed"), deora2023_quasi_convexity(0.8)
    np.testing.assert_allclose(printed, [1 / 0.6, 1 / np.cos(0.8**0.5 / 2)], rtol=1e-14)
