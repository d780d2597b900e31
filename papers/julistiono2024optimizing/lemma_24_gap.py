r"""How small "eta small enough" of Lemma 24 is: for given data inside the cone, and from W(0) = 0.

Inside the cone one constant step serves all points
(papers/julistiono2024optimizing/proofs/cone.md). Elsewhere 0.001 is not small enough for one
sample with two tokens of length 6, a query of length 6, p = 3 and
W(0) = 0, where the lemma requires (2/3) ||W(1)||^3 + eta (L(W(1)) - L(0)) <= 0.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status, assume
from attlas.claims.statement import erratum, inequality
from attlas.data.token_selection import TokenSelection
from attlas.optim.mirror_descent import bregman, mirror_step, potential
from julistiono2024optimizing.cone_instances import (
    IN_CONE,
    at_radius,
    back_in_place,
    cone_points,
    far_enough,
    mixed_loss,
    plain_norm,
    scores,
)
from julistiono2024optimizing.instances import ROUNDINGS, condition
from julistiono2024optimizing.lemma_20 import exponent_rounding
from julistiono2024optimizing.library.token_selection.gradient import (
    scaled_gradient,
    selection_gradient,
    selection_loss,
)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


def two_tokens():
    """The data, as they stand in the statement."""
    return {
        "X": np.asarray([[[6.0, 0.0], [0.0, 6.0]]]),
        "y": np.asarray([1.0]),
        "z": np.asarray([[3.6, 4.8]]),
        "v": np.asarray([1.0, 0.0]),
        "W": np.zeros((2, 2)),
        "p": np.asarray(3.0),
        "eta": np.asarray(1e-3),
    }


@erratum(
    "Lemma 24 at a constant step",
    Source.DERIVED,
    status=Status.NEW,
    witness=two_tokens,
    reason="the step is above the threshold of these data; the loss still falls",
    corrected=Control("a step 10,000 times smaller", factor=1e-4),
    count=1,
    roundings=ROUNDINGS,
)
def lemma_24_gap(X, y, z, v, W, p, eta, *, factor=1.0):
    r"""$$X = \begin{pmatrix} 6 & 0 \\ 0 & 6 \end{pmatrix},\ z = (3.6, 4.8),\ v = (1, 0),\ y = 1,
    \ p = 3,\ W(0) = 0,\ \eta = 0.001: \quad
    \tfrac{2}{3} \|W(1)\|^3 + \eta (\mathcal{L}(W(1)) - \mathcal{L}(0)) \le 0$$

    A step of $10^{-7}$ is small enough here: the threshold depends on the data.
    """
    data, eta = TokenSelection(X, y, z, v), factor * eta
    slope = selection_gradient(W, data)
    after = mirror_step(W, slope, eta, p)
    now, then = selection_loss(W, data), selection_loss(after, data)
    growth = (p - 1) * (potential(after, p) - potential(W, p))
    size = eta * (then + now) * condition(X, z, after)
    drop = eta * (then - now)
    return Sides(growth + drop, -eta * jnp.sum(slope * W), magnitude=size + jnp.abs(growth))


def least_entry(W_mm, p, d):
    """The least entry of W_mm over its norm, among the coordinates in use."""
    used = jnp.arange(len(W_mm), dtype=W_mm.dtype) < d
    entries = jnp.where(used[:, None] & used[None], jnp.abs(W_mm), jnp.inf)
    return jnp.min(entries) / plain_norm(W_mm, p)


def entries_stay(W_mm, W, p, d):
    """Whether p is at most 2, or no entry of the direction is moved by more than m / 2."""
    turn = W / plain_norm(W, p) - W_mm / plain_norm(W_mm, p)
    return (p <= 2) | (jnp.max(jnp.abs(turn)) <= least_entry(W_mm, p, d) / 2)


def constant_step(X, z, v, y, p, W_mm, A, norm, spread, largest_slope, d, radius):
    """Logarithm of eta_0 of the theorem, for all points of the cone from this norm on."""
    T, gamma = X.shape[1], scores(X, v, y)
    pairs = jnp.sum(jnp.square(X[:, :, None] - X[:, None, :]), axis=-1)
    diameter, score_range = (
        jnp.max(pairs, axis=(1, 2)) * jnp.sum(z**2, axis=1),
        jnp.ptp(gamma, axis=1),
    )
    K = T * largest_slope * jnp.mean(diameter * (score_range + score_range**2))
    G = 2 * T * largest_slope * spread * A / norm
    m = least_entry(W_mm, p, d)
    size = jnp.where(p > 2, m / 4, 1.5 ** (1 / (p - 1))) * radius
    curvature = (p - 1) * size ** (p - 2)
    crowd = d ** jnp.maximum(0, 4 / p - 2)
    turned = (jnp.where(p > 2, m / 2, 1.0) * radius) ** (p - 1) / (2 * G)
    steps = curvature / (jnp.e * K), curvature * norm / (2 * A * crowd * G), turned
    return 7 * radius / (8 * norm) + jnp.log(jnp.min(jnp.stack(steps)))


@inequality(
    "Lemma 24 inside the cone",
    status=Status.NEW,
    sample=partial(cone_points, radius=at_radius),
    assumptions=[
        *IN_CONE,
        assume(r"the norm of $W$ is at least $R_\delta$", far_enough),
        assume(r"$p \le 2$, or no entry of $\bar W$ is $m/2$ from $\bar W_{mm}$", entries_stay),
    ],
    search_over=("X", "z", "v", "W"),
    project=back_in_place(at_radius),
    controls=[Control("a step $10^6$ times larger, growing with the norm", factor=1e6)],
    roundings=ROUNDINGS,
    evaluations=1856,
)
def lemma_24_in_the_cone(
    X, z, v, y, p, W_mm, W, A, norm, spread, largest_slope, d, radius, mixture, *, factor=1.0
):
    r"""$$W(k)\in C_{p,\mu_0,R_\delta},\ \eta\le\eta_0 \;\Rightarrow\;
    \eta D_{\mathcal L}(W(k+1),W(k))\le D_\psi(W(k+1),W(k)),\quad
    \eta_0=e^{\frac{7R_\delta}{8M}} \min\left\{\frac{\sigma}{eK},\frac{\sigma M}{2Ac_dG},
    \frac{g^{p-1}}{2G}\right\},\ M=\|W_{mm}\|_{p,p}$$

    Lemma 24 with a constant of the data; $\sigma, g, c_d, K, G$ as in the proof, where for $p > 2$
    no entry $m$ of $\bar W_{mm}$ may vanish. How large the constant may be is not tested.
    """
    log_eta = constant_step(X, z, v, y, p, W_mm, A, norm, spread, largest_slope, d, radius)
    gamma, loss = scores(X, v, y), mixed_loss(mixture)
    G, unit = scaled_gradient(W, X, z, gamma, loss)
    eta = factor * jnp.exp(log_eta + unit)
    change = mirror_step(W, G, eta, p) - W

    def slope(share):
        there, size = scaled_gradient(W + share * change, X, z, gamma, loss)
        return jnp.sum((there * jnp.exp(size - unit) - G) * change)

    shares = (1 + jnp.asarray(_NODES)) / 2
    rise = eta * jnp.asarray(_WEIGHTS) @ jax.vmap(slope)(shares) / 2
    error = eta * jnp.sum(jnp.abs(G * change)) * exponent_rounding(X, z, W)
    return Sides(rise, bregman(W + change, W, p), error=error)
