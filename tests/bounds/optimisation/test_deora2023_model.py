"""The bounds hold for measured norms, keep their order, and the sharp ones are attained."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from attlas.bounds.optimisation.deora2023_model import (
    THIRD_MOMENT,
    deora2023_effective_tokens,
    deora2023_gradient,
    deora2023_hessian,
    deora2023_multi_head_gradient,
    deora2023_multi_head_hessian,
)
from attlas.models.attention.multi_head import Decoder, MultiHead

VERSIONS = ("printed", "dimension_free", "sharp")
H, T, D = 2, 3, 2
# two rounding errors for each of some hundred operations
ROUNDING = 1 + 512 * np.finfo(float).eps


def instances(count, decoder, rng):
    """Parameters from tiny to large, so that attention is flat and saturated in turn."""
    size = 10 ** rng.uniform(-1.5, 1.2, size=(count, 1, 1, 1))
    shape = (count, H, T, D) if decoder is Decoder.FULL else (count, H, D)
    U = rng.normal(size=shape) * 10 ** rng.uniform(-2, 2, size=(count,) + (1,) * (len(shape) - 1))
    X = rng.normal(size=(count, T, D))
    return jnp.asarray(X), jnp.asarray(U), jnp.asarray(rng.normal(size=(count, H, D, D)) * size)


@pytest.mark.parametrize("decoder", list(Decoder))
def test_measured_norms_stay_below(decoder):
    X, U, W = instances(64, decoder, np.random.default_rng(0))

    @jax.jit
    @jax.vmap
    def measure(X, U, W):
        flat, unravel = ravel_pytree((U, W))
        model = lambda flat: MultiHead(*unravel(flat), decoder)(X)  # noqa: E731
        heads = MultiHead(U, W, decoder).token_decoders(T)
        bounds = [
            (
                deora2023_multi_head_gradient(X, heads, version, decoder),
                deora2023_multi_head_hessian(X, heads, version, decoder),
            )
            for version in VERSIONS
        ]
        slope = jnp.linalg.norm(jax.grad(model)(flat))
        return slope, jnp.linalg.norm(jax.hessian(model)(flat), 2), bounds

    slope, curvature, bounds = measure(X, U, W)
    ratios = []
    for gradient, hessian in bounds:
        assert np.all(slope <= gradient * ROUNDING)
        assert np.all(curvature <= hessian * ROUNDING)
        ratios.append((np.max(slope / gradient), np.max(curvature / hessian)))
    for (_, hessian), (_, sharper) in itertools.pairwise(bounds):
        assert np.all(sharper <= hessian * ROUNDING)
    assert np.all(bounds[2][0] <= bounds[0][0] * ROUNDING)
    # tightness: each version comes nearer than the one before
    assert ratios[0][1] < ratios[1][1] < ratios[2][1]


@jax.jit
def derivatives(X, flat):
    """Gradient and Hessian of one head with d = 1 and two tokens; flat = (u_1, u_2, w)."""

    def model(flat):
        return MultiHead(flat[:2].reshape(1, 2, 1), flat[2:].reshape(1, 1, 1))(X)

    return jax.grad(model)(flat), jax.hessian(model)(flat)


def test_sharp_hessian_is_attained_by_each_block():
    """d = 1, T = 2, tokens +-R: U = 0 is the mixed block; large U is the third moment."""
    R = 1.3
    X = jnp.array([[R], [-R]])
    mixed = np.linalg.norm(derivatives(X, jnp.zeros(3))[1], 2)
    np.testing.assert_allclose(mixed, deora2023_hessian(X, jnp.zeros((2, 1)), "sharp"), rtol=1e-14)
    # the law (p, 1 - p) with p = (3 - sqrt 3) / 6 has the largest third moment
    p = (3 - np.sqrt(3)) / 6
    w = np.log(p / (1 - p)) / (2 * R**2)
    flat = jnp.array([1e6, -1e6, w])
    corner = np.linalg.norm(derivatives(X, flat)[1], 2)
    ratio = corner / deora2023_hessian(X, flat[:2, None], "sharp")
    # the mixed block adds relative (sqrt(T) R^3 / corner)^2 ~ 1e-12
    np.testing.assert_allclose(ratio, 1, atol=1e-10)


def test_sharp_gradient_is_attained_at_both_ends():
    X = jnp.array([[1.5], [-1.5]])
    for size in (0.1, 3.0):
        # flat attention feels W alone; saturated attention feels U alone
        flat = jnp.array([size, -size, 0.0 if size > 1 else 100.0])
        slope = np.linalg.norm(derivatives(X, flat)[0])
        np.testing.assert_allclose(
            slope, deora2023_gradient(X, flat[:2, None], "sharp"), rtol=1e-14
        )


def test_printed_bound_fails_for_the_pooled_decoder():
    """All tokens alike: the gradient in u is T x, longer than the sqrt(T) R of the footnote."""
    X, u = jnp.ones((T, D)), jnp.zeros((1, D))
    model = lambda u: MultiHead(u, jnp.zeros((1, D, D)), Decoder.POOLED)(X)  # noqa: E731
    slope = float(jnp.linalg.norm(jax.grad(model)(u)))
    assert slope > 1.7 * float(deora2023_gradient(X, jnp.zeros((T, D)), "printed"))
    np.testing.assert_allclose(
        slope,
        deora2023_gradient(X, jnp.zeros((T, D)), "printed", decoder=Decoder.POOLED),
        rtol=1e-15,
    )
    assert [deora2023_effective_tokens(T, kind) for kind in Decoder] == [T, T * T, 1]


@pytest.mark.thorough
def test_third_moment_constant_is_the_supremum():
    """Independent of the proof: ascent over laws and both vectors ends at 4 / (3 sqrt 3)."""
    rng = np.random.default_rng(1)

    def moment(z):
        law, a, b = jax.nn.softmax(z[0]), jnp.tanh(z[1]), jnp.tanh(z[2])
        return law @ ((a - law @ a) * (b - law @ b) ** 2)

    climb = jax.vmap(jax.value_and_grad(moment))

    @jax.jit
    def ascend(z):
        return jax.lax.fori_loop(0, 3000, lambda _, z: z + climb(z)[1], z)

    found = climb(ascend(jnp.asarray(3 * rng.normal(size=(64, 3, 4)))))[0]
    assert np.all(found <= THIRD_MOMENT)
    # ascent through tanh approaches the corners like 1 / steps
    assert np.max(found) > THIRD_MOMENT * (1 - 2 / 3000)


def test_hand_computed_values():
    X, U = jnp.array([[3.0, 4.0], [0.0, 1.0]]), jnp.array([[1.0, 0.0], [0.0, 2.0]])
    # R = 5, m = 4, ||X u_1|| = 3, ||X u_2|| = 8
    total, root = 11, np.sqrt(2)
    np.testing.assert_allclose(deora2023_gradient(X, U, "printed"), 2 * 25 * total + root * 5)
    np.testing.assert_allclose(
        deora2023_hessian(X, U, "printed"), 6 * 2 * 25 * 16 * total + 2 * np.sqrt(4) * 25 * 4
    )
    np.testing.assert_allclose(
        deora2023_hessian(X, U, "dimension_free"), 2 * 625 * total + root * 125
    )
    np.testing.assert_allclose(
        deora2023_gradient(X, U, "sharp"), root * 5 * 5 * np.sqrt(9 + 64), rtol=1e-14
    )


# R = 5, m = 4, T = 4, d = 2; ||X u_t|| = 4, 8, 0, 1 with the sum 13 and the squares' sum 9^2.
FOUR = jnp.array([[3.0, 4.0], [0.0, 1.0], [0.0, 0.0], [-4.0, -3.0]])
READ = jnp.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [-1.0, 1.0]])


def third_moment():
    """The largest third central moment of a law on +-1, by search."""
    p = np.linspace(0, 0.5, 10**6)
    return np.max(p * (2 - 2 * p) ** 3 - (1 - p) * (2 * p) ** 3)


def block_norm(mixed, corner):
    return np.linalg.norm([[0.0, mixed], [mixed, corner]], 2)


@pytest.mark.parametrize(
    ("version", "decoder", "scale", "value"),
    [
        ("printed", Decoder.FULL, 1.0, 2 * 25 * 13 + 2 * 5),
        ("printed", Decoder.FULL, 0.0, 2 * 5),
        ("printed", Decoder.POOLED, 1.0, 2 * 25 * 13 + 4 * 5),
        ("dimension_free", Decoder.LAST, 1.0, 2 * 25 * 13 + 5),
        ("sharp", Decoder.FULL, 1.0, 2 * 5 * (5 * 9)),
        ("sharp", Decoder.FULL, 0.01, 2 * 5),
        ("sharp", Decoder.POOLED, 1.0, 4 * 5 * (5 * 9 / 2)),
        ("sharp", Decoder.LAST, 1.0, 5 * (5 * 9)),
    ],
)
def test_gradient_by_hand(version, decoder, scale, value):
    found = deora2023_gradient(FOUR, scale * READ, version, decoder)
    np.testing.assert_allclose(found, value, rtol=1e-14)


@pytest.mark.parametrize(
    ("version", "decoder", "value"),
    [
        ("printed", Decoder.FULL, 12 * 25 * 16 * 13 + 2 * 8**0.5 * 25 * 4),
        ("corrected", Decoder.LAST, 12 * 25 * 16 * 13 + 2 * 2**0.5 * 25 * 4),
        ("dimension_free", Decoder.FULL, 2 * 625 * 13 + 2 * 125),
        ("dimension_free", Decoder.POOLED, 2 * 625 * 13 + 4 * 125),
        ("sharp", Decoder.FULL, block_norm(2 * 125, 625 * 13 * third_moment())),
        ("sharp", Decoder.LAST, block_norm(125, 625 * 13 * third_moment())),
    ],
)
def test_hessian_by_hand(version, decoder, value):
    found = deora2023_hessian(FOUR, READ, version, decoder)
    np.testing.assert_allclose(found, value, rtol=1e-11)


def test_heads_by_hand():
    """The largest of four heads, in the Hessian over the root of four; not the last one."""
    U = jnp.stack([0 * READ, READ / 100, 2 * READ, READ])
    gradient = deora2023_multi_head_gradient(FOUR, U, "printed", Decoder.LAST)
    np.testing.assert_allclose(gradient, 2 * 25 * 26 + 5, rtol=1e-14)
    hessian = deora2023_multi_head_hessian(FOUR, U, "dimension_free", Decoder.POOLED)
    np.testing.assert_allclose(hessian, (2 * 625 * 26 + 4 * 125) / 2, rtol=1e-14)


def test_sharp_values_of_every_decoder_by_hand():
    """R = 5, ||X u||_inf = 3 and 8 and 2 for the rows of U; one u is read at all tokens."""
    X = jnp.array([[3.0, 4.0], [1.0, 0.0], [0.0, -2.0]])
    u = jnp.array([1.0, 0.0])
    U = jnp.stack([u, 2 * jnp.array([0.0, 1.0]), -u / 1.5])
    full = 3**0.5 * 5 * 5 * (3**2 + 8**2 + 2**2) ** 0.5
    np.testing.assert_allclose(deora2023_gradient(X, U), full, rtol=1e-14)
    pooled = jnp.stack([u] * 3)
    np.testing.assert_allclose(
        deora2023_gradient(X, pooled, decoder=Decoder.POOLED), 3 * 5 * 5 * 3, rtol=1e-14
    )
    only = jnp.stack([0 * u, 0 * u, u])
    last = deora2023_gradient(X, only, decoder=Decoder.LAST)
    np.testing.assert_allclose(last, 5 * 5 * 3, rtol=1e-14)
    small = deora2023_gradient(X, 1e-3 * U)
    np.testing.assert_allclose(small, 3**0.5 * 5, rtol=1e-14)
    for decoder, heads, tokens, total in (
        (Decoder.FULL, U, 3, 13),
        (Decoder.POOLED, pooled, 9, 9),
        (Decoder.LAST, only, 1, 3),
    ):
        c = 4 / (3 * 3**0.5) * 5**4 * total
        expected = (c + (c**2 + 4 * tokens * 5**6) ** 0.5) / 2
        found = deora2023_hessian(X, heads, decoder=decoder)
        np.testing.assert_allclose(found, expected, rtol=1e-13)
    several = jnp.stack([0.1 * U, U, 0.5 * U])
    found = deora2023_multi_head_gradient(X, several), deora2023_multi_head_hessian(X, several)
    one = deora2023_gradient(X, U), deora2023_hessian(X, U) / 3**0.5
    np.testing.assert_allclose(found, one, rtol=1e-14)


@pytest.mark.thorough
def test_bounds_follow_the_dtype_and_have_derivatives_at_zero():
    X, zero = jnp.ones((2, 1), "float32").at[1].set(0), jnp.zeros((2, 1), "float32")
    for bound in (deora2023_gradient, deora2023_hessian):
        for version in VERSIONS:
            value, slope = jax.value_and_grad(lambda X, U, b=bound, v=version: b(X, U, v))(X, zero)
            assert value.dtype == slope.dtype == jnp.float32
            assert jnp.all(jnp.isfinite(slope))
