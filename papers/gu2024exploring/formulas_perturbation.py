r"""Formulas of Lemma B.1, Lemma 5.1 and the certificate of flow against second transcriptions.

Symbols as in `instances`; B = max(1, max |<w_r, x_i>|). A bound that is loose is not tested by the
claim of its statement: a wrong factor is noticed here.
"""

from functools import partial

import jax.numpy as jnp

from attlas.bounds.optimisation.gu2024_perturbation import (
    gu2024_basic_bounds,
    gu2024_kernel_change,
    gu2024_relative_bounds,
)
from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.statement import identity
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.formulas_convergence import numbers
from gu2024exploring.instances import (
    ROUNDINGS,
    logit_rounding,
    networks,
    softmax_weights,
    symmetric_networks,
    weight_reach,
)
from gu2024exploring.library.bounds.gu2024_flow import gu2024_flow_certificate, gu2024_flow_movement
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.one_step import norm

_MORE = Control("each 1 % more", more=0.01)
"""Violates every component."""


@identity(
    "Lemma B.1, the thirteen right sides",
    Source.RECALLED,
    sample=numbers,
    count=32,
    roundings=256,
    controls=[_MORE, Control("$e^{2B}$ in place of $e^{4B}$", four=2.0)],
)
def lemma_b_1_formulas(B, lam, m, *, more=0.0, four=4.0):
    r"""$$B,\ B+R,\ R;\ e^B,\ e^{B+R},\ 2R,\ 2Re^{B+R};\ 2mRe^{B+R},\ \tfrac{2R}{m} e^{3B+2R},\
    \tfrac{1}{m} e^{2B},\ \tfrac{1}{m} e^{2B+2R};\ \tfrac{4R}{m} e^{4B+3R},\ 4Re^{4B+3R}$$

    The parts are the paper's, the constants those that its proof gives. $R = \lambda / 100$.
    """
    R = lam / 100
    ours = gu2024_basic_bounds(B, R, m)
    right = (
        B, B + R, R,
        jnp.exp(B), jnp.exp(B + R), 2 * R, 2 * R * jnp.exp(B + R),
        2 * m * R * jnp.exp(B + R), 2 * R * jnp.exp(3 * B + 2 * R) / m,
        jnp.exp(2 * B) / m, jnp.exp(2 * B + 2 * R) / m,
        4 * R * jnp.exp(four * B + 3 * R) / m, 4 * R * jnp.exp(four * B + 3 * R),
    )  # fmt: skip
    return jnp.stack([ours[part] for part in range(1, 14)]), (1 + more) * jnp.stack(right)


@identity(
    "Lemma B.1, the sharpened right sides",
    status=Status.NEW,
    sample=numbers,
    count=32,
    controls=[_MORE],
)
def lemma_b_1_relative_formulas(residual, *, more=0.0):
    r"""$$e^R - 1,\ e^R - 1,\ e^R - 1,\ e^{2R} - 1,\ 2 \tanh(R/2) = 2 \frac{e^R - 1}{e^R + 1}$$

    Parts 7, 8, 9, 12 and 13, $R$ from 0.01 to 10.
    """
    R, ours = residual, gu2024_relative_bounds(residual)
    once = jnp.exp(R) - 1
    right = (once, once, once, once * (once + 2), 2 * once / (once + 2))
    magnitude = jnp.exp(2 * R)  # of the ones that are taken off
    left = jnp.stack([ours[part] for part in (7, 8, 9, 12, 13)])
    return Sides(left, (1 + more) * jnp.stack(right), magnitude=magnitude)


def reached(rng, count):
    """Networks without symmetry, |a| <= 1, moderate logits, and a radius from .001 to 1."""
    batch = networks(rng, count)
    size = abs(batch["W"]).max(axis=(1, 2), keepdims=True)
    reach = abs(batch["a"]).max(axis=(1, 2), keepdims=True)
    scaled = {"W": batch["W"] * 3 / (3 + size), "a": batch["a"] / reach}
    return batch | scaled | {"R": 10 ** rng.uniform(-3, 0, count)}


on_networks = partial(identity, sample=reached, count=32, roundings=4 * ROUNDINGS)


@on_networks("Lemma 5.1 and section 5, the three right sides", Source.RECALLED, controls=[_MORE])
def lemma_5_1_formulas(W, a, X, R, *, more=0.0):
    r"""$$R e^{10B}\ (\text{softmax}),\quad 2R\ (\text{ReLU}),\quad 3 R e^{2B}\ (\exp),\quad
    \|H - \tilde H\|_F \le nd \cdot \text{entry}$$

    With the measured $B$, and at $B = 2$ for the softmax.
    """
    ours = [
        norm(gu2024_kernel_change(SoftmaxNetwork(W, a, phi), X, R, B=B, constants="printed"))
        for phi, B in (
            (Activation.SOFTMAX, None), (Activation.SOFTMAX, 2.0), (Activation.RELU, None),
            (Activation.EXPONENTIAL, None),
        )
    ]  # fmt: skip
    B, size = weight_reach(X, W), len(a) * len(X)
    right = (R * jnp.exp(10 * B), R * jnp.exp(20.0), 2 * R, 3 * R * jnp.exp(2 * B))
    magnitude = jnp.stack(right) * size * logit_rounding(X, W)
    return Sides(jnp.stack(ours), (1 + more) * size * jnp.stack(right), magnitude=magnitude)


@on_networks(
    "Lemma 5.1, the sharpened right sides",
    status=Status.NEW,
    controls=[
        _MORE,
        Control(r"$e^{1.5 R (\|x_i\| + \|x_j\|)}$", exponent=1.5),
        Control("the sign of every slope changes within $1.1 R$", within=1.1),
    ],
)
def lemma_5_1_sharp_formulas(W, a, X, R, *, more=0.0, exponent=2.0, within=1.0):
    r"""$$|x_i^\top x_j| \kappa_{ij} (1 + \alpha_{\ell i})(1 + \alpha_{\ell'j})
    (e^{2R(\|x_i\| + \|x_j\|)} - 1),\quad |x_i^\top x_j| \tfrac{1}{m} \sum_r
    e^{\langle w_r, x_i + x_j \rangle} (e^{R \|x_i + x_j\|} - 1),\quad |x_i^\top x_j| \tfrac{1}{m}
    \#\{r : \text{the product can change}\}$$

    For ReLU: units whose product of slopes is not the same at all corners of
    $\langle w_r, x_i \rangle \pm R \|x_i\|$, $\langle w_r, x_j \rangle \pm R \|x_j\|$.
    """
    inner, lengths, logits = jnp.abs(X @ X.T), jnp.sqrt(jnp.sum(X**2, axis=1)), X @ W
    S, m = softmax_weights(X, W), W.shape[1]
    alpha = jnp.minimum(jnp.abs(a @ S.T) + R * lengths[None], 1)
    softmax = inner * (m * S @ S.T) * jnp.expm1(exponent * R * (lengths[:, None] + lengths[None]))
    softmax = jnp.einsum("ai,bj,ij->aibj", 1 + alpha, 1 + alpha, softmax)
    sums = X[:, None] + X[None]
    far = jnp.expm1(R * jnp.sqrt(jnp.sum(sums**2, axis=2)))
    exponential = inner * jnp.mean(jnp.exp(sums @ W), axis=2) * far
    reach = within * R * lengths[:, None]
    low, high = ((logits + way * reach > 0).astype(X.dtype) for way in (-1, 1))
    relu = inner * (high @ high.T - low @ low.T) / m
    blocks = [jnp.broadcast_to(part[None, :, None], softmax.shape) for part in (exponential, relu)]
    ours = [
        gu2024_kernel_change(SoftmaxNetwork(W, a, phi), X, R)
        for phi in (Activation.SOFTMAX, Activation.EXPONENTIAL, Activation.RELU)
    ]
    right = jnp.stack([part.reshape(ours[0].shape) for part in (softmax, *blocks)])
    magnitude = logit_rounding(X, W) * (right + 1)
    return Sides(jnp.stack(ours), (1 + more) * right, magnitude=magnitude)


@identity(
    "Theorem 4.2 for gradient flow, the certificate",
    status=Status.NEW,
    sample=symmetric_networks,
    count=32,
    roundings=16 * ROUNDINGS,
    controls=[_MORE],
)
def flow_certificate_formulas(W, a, X, Y, *, more=0.0):
    r"""$$\max \left\{ R : k (1 + \alpha)^2 \|M\|_F \le \frac{\lambda}{2} \right\},\quad
    D(R) = \frac{2 (1 + \alpha) \sqrt k\, e^{2R\xi} P \|F(0) - Y\|}{m \lambda},\quad
    \frac{D}{R},\quad \frac{m D}{R}$$

    $P = \max_r (\sum_i \|x_i\|^2 (m S_{ir})^2)^{1/2}$, $\xi = \max \|x_i\|$; at the largest $R$ the
    first condition is an equality. $\lambda$ is cut at a thousandth.
    """
    model, (k, m) = SoftmaxNetwork(W, a), a.shape
    lam = jnp.maximum(jnp.linalg.eigvalsh(dense_softmax_ntk(model, X))[0], 1e-3)
    found = gu2024_flow_certificate(model, X, Y, lam)
    kept, R = norm(gu2024_kernel_change(model, X, found.radius)), found.radius
    S, lengths = softmax_weights(X, W), jnp.sqrt(jnp.sum(X**2, axis=1))
    F = m * S @ a.T
    alpha = jnp.max(jnp.minimum(jnp.abs(F) / m + R * lengths[:, None], 1))
    P = jnp.max(jnp.sqrt(lengths**2 @ (m * S) ** 2))
    D = 2 * (1 + alpha) * k**0.5 * jnp.exp(2 * R * jnp.max(lengths)) * P * norm(F - Y) / (m * lam)
    ours = kept, found.movement, gu2024_flow_movement(model, X, Y, lam, R), found.ratio, found.width
    right = jnp.stack((lam / 2, D, D, D / R, m * D / R))
    magnitude = logit_rounding(X, W) * right
    # 50 halvings of 1 / xi leave this much of R; the change of the kernel grows by 7 / R at most.
    left_over = 7 / (R * jnp.max(lengths)) * 2.0**-49 * lam / 2
    error = jnp.zeros_like(right).at[0].set(left_over)
    return Sides(jnp.stack(ours), (1 + more) * right, magnitude=magnitude, error=error)
