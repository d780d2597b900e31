"""The quantities of the mixture against the model itself, with and without noise."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.library.bounds.deora2023_mixture import (
    deora2023_decoder_bound,
    deora2023_first_step_error,
    deora2023_first_step_slope,
    deora2023_gamma_attention,
    deora2023_gamma_linear,
    deora2023_gamma_star,
    deora2023_margin_crossover,
    deora2023_output_bound,
    deora2023_saturation,
    deora2023_separability_heads,
    deora2023_token_radius,
)

S, M, T, ZETA = 2.0, 2, 4, 0.5
D = M + 3


def patterns():
    return S * np.eye(D)[:2], S * np.eye(D)[2 : M + 2]


def sample(rng, count, Z_mu, Z_nu, Z_rest, corners=False):
    """Labels, tokens and the relevant ones; noise reaches its bounds at the corners."""
    signal, irrelevant = patterns()
    y = rng.choice([-1.0, 1.0], size=count)
    X = irrelevant[rng.integers(0, M, size=(count, T))]
    draw = (lambda s: rng.choice([-1.0, 1.0], s)) if corners else (lambda s: rng.uniform(-1, 1, s))
    unit = draw((count, T, D))
    limits = np.array([Z_mu / S] * 2 + [Z_nu / (M * S)] * M + [Z_rest])
    X = X + unit * limits
    relevant = np.zeros((count, T), bool)
    for i in range(count):
        relevant[i, rng.permutation(T)[: int(ZETA * T)]] = True
    X = np.where(relevant[..., None], signal[(y < 0).astype(int)][:, None, :], X)
    return y, X, relevant, float(np.linalg.norm(limits))


def oracle():
    signal, irrelevant = patterns()
    both = signal.sum(0)
    W = sum(np.outer(m, m) for m in signal) + np.outer(irrelevant.sum(0), both)
    return signal[0] - signal[1], W


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_ntk_margin_is_at_least_gamma_star(noise):
    rng = np.random.default_rng(0)
    y, X, _, Z = sample(rng, 64, noise * S**2, noise * S**2, 0.1 * noise)
    u, W = oracle()
    p = rng.normal(size=D)
    p *= 0.001 / np.linalg.norm(p)
    kappa = float(deora2023_first_step_slope(ZETA))
    decoder = np.ones((T, 1)) * u[None, :] / (S * math.sqrt(2 * T))
    slope = jax.jit(jax.vmap(jax.grad(lambda model, x: model(x)), (None, 0)))

    def margin(sign):
        """Of one head whose first step had this sign, in the direction of section 5.2."""
        U = np.ones((1, T, 1)) * sign * (kappa * u + p)[None, None, :]
        found = slope(MultiHead(jnp.asarray(U), jnp.zeros((1, D, D))), jnp.asarray(X))
        along = np.tensordot(found.U[:, 0], decoder, 2)
        return y * (along + np.tensordot(found.W[:, 0], sign * W / np.linalg.norm(W), 2))

    margins = margin(1.0)
    # P3 needs no concentration over heads: the sign of the first step drops out
    np.testing.assert_allclose(margin(-1.0), margins, rtol=1e-12)
    args = (T, S, ZETA, M, noise * S**2, noise * S**2, Z, 0.001)
    printed, sharp = (float(deora2023_gamma_star(*args, v)) for v in ("printed", "sharp"))
    assert printed < sharp <= margins.min()
    if noise == 0:
        exact = float(deora2023_gamma_star(*args[:4]))
        # only p moves the margin: by T R^3 P in W and sqrt(T) R P at most in U
        assert abs(margins.min() - exact) <= 0.001 * (T * S**3 + math.sqrt(T) * S)


def attention_left(X, relevant, scale):
    """The largest share of attention on irrelevant tokens over samples and queries."""
    _, W = oracle()
    side = scale * W / (S**2 * math.sqrt(2 * (M + 1)))
    logits = np.einsum("ntd,de,nse->nts", X, side, X)
    share = np.exp(logits - logits.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    return float((share * ~relevant[:, None, :]).sum(-1).max())


def test_saturation_is_exact_without_noise():
    rng = np.random.default_rng(1)
    y, X, relevant, _ = sample(rng, 16, 0.0, 0.0, 0.0)
    epsilon = 0.07
    sharp = float(deora2023_saturation(S, ZETA, M, epsilon))
    np.testing.assert_allclose(attention_left(X, relevant, sharp), epsilon, rtol=1e-13)
    printed = float(deora2023_saturation(S, ZETA, M, epsilon, constants="printed"))
    assert attention_left(X, relevant, printed) < epsilon / 4
    u, W = oracle()
    for i in range(16):
        logits = sharp / (S**2 * math.sqrt(2 * (M + 1))) * X[i] @ W @ X[i].T
        model_output = np.sum(np.asarray(jax.nn.softmax(jnp.asarray(logits))) @ X[i] @ u)
        margin = y[i] * model_output / (S * math.sqrt(2 * T))
        np.testing.assert_allclose(margin, deora2023_gamma_attention(T, S, epsilon), rtol=1e-13)


def test_saturation_holds_at_the_corners_of_the_noise():
    rng = np.random.default_rng(2)
    Z_mu = Z_nu = S**2 / 8
    _, X, relevant, _ = sample(rng, 2000, Z_mu, Z_nu, 0.0, corners=True)
    for epsilon in (0.3, 0.01):
        sharp = float(deora2023_saturation(S, ZETA, M, epsilon, Z_mu, Z_nu))
        printed = float(deora2023_saturation(S, ZETA, M, epsilon, constants="printed"))
        assert sharp < printed
        assert attention_left(X, relevant, printed) <= epsilon
        left = attention_left(X, relevant, sharp)
        assert left <= epsilon
        # corners come near it: two thirds of the sharp scale are not enough
        assert attention_left(X, relevant, 2 * sharp / 3) > epsilon


def test_linear_margin_is_attained_at_the_corner():
    rng = np.random.default_rng(3)
    Z_mu = S**2 / 8
    y, X, _, _ = sample(rng, 4000, Z_mu, 0.0, 0.0, corners=True)
    u, _ = oracle()
    margins = y * np.einsum("ntd,d->n", X, u) / (S * math.sqrt(2 * T))
    bound = float(deora2023_gamma_linear(T, S, ZETA, Z_mu))
    np.testing.assert_allclose(margins.min(), bound, rtol=1e-13)


def test_head_and_output_bounds():
    rng = np.random.default_rng(4)
    P, n, delta, heads = 0.1, 8, 0.1, 64
    _, X, _, Z = sample(rng, n, 0.1, 0.1, 0.1)
    R = float(deora2023_token_radius(S, Z, 0.1, M))
    assert np.linalg.norm(X, axis=-1).max() <= R
    u, _ = oracle()
    p = np.zeros(D)
    p[0] = P
    row = ZETA / 4 * u + p
    size = math.sqrt(T) * np.linalg.norm(row)
    sharp, printed = (
        float(deora2023_decoder_bound(T, S, P, ZETA, version)) for version in ("sharp", "printed")
    )
    assert size <= sharp < printed
    signs = rng.choice([-1.0, 1.0], size=(4000, heads)).sum(1) / math.sqrt(heads)
    outputs = np.abs(X.mean(1) @ row) * T
    worst = np.abs(signs)[:, None] * outputs[None, :]
    kinds = ("sharp", "printed", "corrected")
    bounds = [float(deora2023_output_bound(T, R, S, P, ZETA, n, delta, kind)) for kind in kinds]
    assert bounds == sorted(bounds)
    assert np.mean(worst.max(1) > bounds[0]) <= delta


def test_crossover_refutes_the_order_of_the_margins():
    """Erratum: at T = 10, zeta = 1/2, M = 1 the order turns at the root and not elsewhere."""
    at = float(deora2023_margin_crossover(10, 0.5, 1))
    np.testing.assert_allclose(
        deora2023_gamma_star(10, at, 0.5, 1), deora2023_gamma_attention(10, at), rtol=1e-14
    )
    assert deora2023_gamma_star(10, 4.0, 0.5, 1) > 4 * deora2023_gamma_attention(10, 4.0)
    assert deora2023_gamma_star(10, 1.0, 0.5, 1) < deora2023_gamma_attention(10, 1.0)


def test_first_step_slope_is_a_quarter_of_zeta():
    """The gradient at zero over both labels, without noise and sampling error."""
    signal, _ = patterns()
    u, _ = oracle()
    # relevant tokens first, the others orthogonal to the signal
    X = np.stack([np.stack([m, m, 0 * m, 0 * m]) for m in signal])
    row = sum(sign * x.mean(0) for sign, x in zip((1, -1), X, strict=True)) / 2 / 2
    np.testing.assert_allclose(row, float(deora2023_first_step_slope(ZETA)) * u)
    assert float(deora2023_first_step_slope(ZETA, "printed")) == 2 * ZETA / 4


def test_what_the_paper_leaves_open_scales():
    once = deora2023_first_step_error(1.0, 0.5, 4, 100, 0.1)
    np.testing.assert_allclose(deora2023_first_step_error(1.0, 0.5, 4, 100, 0.1, 3.0), 3 * once)
    np.testing.assert_allclose(deora2023_first_step_error(1.0, 0.5, 4, 400, 0.1), once / 2)
    few, many = (deora2023_separability_heads(4, R, 1.0, 0.1, 2.0, 10, 0.1, 1.0) for R in (1, 2))
    assert float(many) > 200 * float(few)
    # section 7 prints Z_mu / S
    right, printed = (
        float(deora2023_gamma_attention(2, 2.0, 0.1, 0.4, constants))
        for constants in ("corrected", "printed")
    )
    np.testing.assert_allclose([right, printed], [2 * (0.9 - 0.02), 2 * (0.9 - 0.04)])


@pytest.mark.parametrize(
    ("formula", "args", "value"),
    [
        (deora2023_token_radius, (3.0, 2.0, 3.0, 2), 4),
        (deora2023_token_radius, (0.0, 2.0, 5.0, 1), 14**0.5),
        (deora2023_first_step_slope, (0.3, "printed"), 0.15),
        (deora2023_first_step_slope, (0.3,), 0.075),
        # C = 3 times 5, times 1/2 + 3/4
        (deora2023_first_step_error, (2.0, 1.0, 4, 16, math.exp(-9), 3.0), 18.75),
        (deora2023_decoder_bound, (9, 2.0, 0.5, 0.3, "corrected"), 3 * 2.5),
        (deora2023_decoder_bound, (9, 32**0.5, 0.5, 0.25), 3 * 1.0),
        # tails sqrt(2 * 8) = 4, of one side and of two
        (deora2023_output_bound, (9, 2.0, 2.0, 0.5, 0.3, 10, 10 * math.exp(-8), "printed"), 180),
        (deora2023_output_bound, (9, 2.0, 2.0, 0.5, 0.3, 10, 20 * math.exp(-8), "corrected"), 180),
        (deora2023_output_bound, (9, 2.0, 32**0.5, 0.5, 0.25, 10, 20 * math.exp(-8)), 72),
        (deora2023_gamma_attention, (8, 2.0, 0.1, 0.5), 3.6 - 0.1),
        (deora2023_gamma_attention, (8, 2.0, 0.1, 0.5, "printed"), 4 * (0.9 - 0.05)),
        (deora2023_gamma_linear, (8, 2.0, 0.25, 0.5), 4 * (0.25 - 1.5 / 8)),
        # 8 * 2 / (3 * 4) log(4 / epsilon) at epsilon = 4 e^-3
        (deora2023_saturation, (2.0, 0.2, 1, 4 * math.exp(-3), 0.0, 0.0, "printed"), 4),
        # (4 - 0.5) (4 - 0.5) - 4 * 0.25, the gap of the logits, and 4 (1 - 0.2) / 0.2
        (deora2023_saturation, (2.0, 0.2, 1, 0.2, 0.25, 0.5), 8 / 11.25 * math.log(16)),
        # 0.5 * 16 * 3 * 1.25 * 4 / 4.1 = 29.27, squared
        (deora2023_separability_heads, (3, 2.0, 1.0, 0.25, 4.1, 10, 10 * math.exp(-8), 0.5), 857),
        (deora2023_separability_heads, (3, 2.0, 1.0, 0.25, 4.1, 10, 0.1, 0.0), 1),
        (deora2023_margin_crossover, (16, 0.25, 8), 48 ** (1 / 3)),
    ],
)
def test_values_by_hand(formula, args, value):
    np.testing.assert_allclose(formula(*args), value, rtol=1e-13)


@pytest.mark.parametrize(
    ("Z_mu", "Z_nu", "noise"),
    [
        (0.0, 0.0, 0.0),
        # 7 Z S^2 + 12 Z^2 + 16 Z^3 / S^2 at the larger Z
        (0.25, 0.125, 7 + 0.75 + 0.0625),
        (0.125, 0.5, 14 + 3 + 0.5),
    ],
)
def test_gamma_star_by_hand(Z_mu, Z_nu, noise):
    T, S, zeta, M, Z, P = 16, 2.0, 0.25, 7, 1.5, 0.01
    # T (1 - zeta) zeta / (4 * 4) = 3 / 16 and zeta S^4 = 4; S sqrt(T) / sqrt(2) = 4 sqrt(2)
    clean = 3 / 16 * (4 - noise) + 32**0.5 * (0.25 - 1.5 * Z_mu / 4)
    radius = (4 + 2.25 + 2 * Z_nu / 7) ** 0.5
    errors = {
        "printed": 0.01 * 4**5 * 3.5**3,
        "corrected": 0.01 * 4**5 * 3.5**3,
        "sharp": 0.01 * 16 * radius**3,
    }
    for constants, error in errors.items():
        found = deora2023_gamma_star(T, S, zeta, M, Z_mu, Z_nu, Z, P, constants)
        np.testing.assert_allclose(found, clean - error, rtol=1e-12)


def test_gamma_star_without_noise_by_hand():
    found = deora2023_gamma_star(16, 2.0, 0.25, 7, P=0.01, constants="printed")
    np.testing.assert_allclose(found, 0.75 + 32**0.5 / 4 - 0.01 * 4**5 * 2**3, rtol=1e-12)


def test_formulas_follow_the_dtype():
    zeta, size = jnp.asarray(0.5, "float32"), jnp.asarray(2.0, "float32")
    values = (
        deora2023_gamma_star(4, size, zeta, 2, 0.1, 0.1, 0.1, 0.1),
        deora2023_saturation(size, zeta, 2, 0.1),
        deora2023_output_bound(4, 1.0, size, 0.1, zeta, 8, 0.1),
        deora2023_margin_crossover(4, zeta, 2),
    )
    assert [value.dtype for value in values] == [jnp.float32] * 4
