r"""Lemma 5.3: weights, loss and gradient along trainings (Lemmas C.2 and C.3; C.4 is lemma-d-2).

The bound on the movement is D = 8 e^(3B) sqrt(nd) ||F(0) - Y|| / (m lambda).
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_convergence import gu2024_movement
from attlas.claims.claim import Control, ProofStep, Sides, Status, assume
from attlas.claims.statement import inequality, rate
from gu2024exploring.instances import weight_reach
from gu2024exploring.one_step import ROUNDINGS, norm, take, visited
from gu2024exploring.trajectories import (
    COUNT,
    EVALUATIONS,
    GENERAL,
    contraction,
    curves,
    draw,
    train,
)

_SCALES = np.array([1.0, 0.5, 0.25, 0.125])
"""Factors on the targets: a factor 1/2 moves the weights as twice the width does."""


def rounding_level(Y, m, share):
    """The largest ||F - Y||_F^2 that rounding alone may leave: outputs are m terms of size P."""
    entry = ROUNDINGS * jnp.finfo(m.dtype).eps * m * share
    return Y.size * entry**2


def _contracts(Y, square, m, eta, lam, steps, share):
    bound = contraction(square, m, eta, lam, steps) * (1 + 1e-12)
    return jnp.all(square <= bound + rounding_level(Y, m, share))


on_trainings = partial(
    inequality,
    sample=curves,
    evaluations=EVALUATIONS,
    alike=True,
    assumptions=[assume("the loss property holds at all records", _contracts)],
    count=COUNT,
    roundings=ROUNDINGS,
)
on_steps = partial(
    inequality,
    sample=visited,
    evaluations=EVALUATIONS,
    assumptions=[
        assume(r"$\lambda_{\min}(H(\tau)) \ge \lambda / 2$", lambda least, lam: least >= lam / 2)
    ],
    count=COUNT,
    roundings=ROUNDINGS,
)


@on_trainings(
    "Lemma 5.3, weights; Lemma C.2",
    proof_step=ProofStep("Lemma 5.3", 5),
    controls=[
        Control("$e^{-3B}$ in place of $e^{3B}$", sign=-1.0),
        Control("1/250 in place of 8", factor=0.0005),
    ],
)
def lemma_5_3_weights(movement, Y, m, lam, B, *, sign=1.0, factor=1.0):
    r"""$$\|w_r(\tau)-w_r(0)\| \le D = \frac{8 e^{3B} \sqrt{nd}}{m\lambda}\|F(0)-Y\|_F$$

    The form of $D$ is from memory. Steps of 0.3 to 0.9 of $1 / (m \lambda_{\max}(H^*))$, 240 of
    them; $D$ is not below the radius of claim-e-5, which would need far smaller targets.
    """
    n, k = Y.shape
    # Nothing has moved at the first record.
    return movement[1:], factor * gu2024_movement(n, k, m, lam, sign * B, norm(Y))


@on_trainings(
    "Lemma 5.3, weights, sharpened",
    status=Status.SHARPENED,
    controls=[Control("a hundredth", factor=0.01)],
)
def lemma_5_3_weights_sharp(movement, Y, m, lam, share, *, factor=1.0):
    r"""$$\|w_r(\tau)-w_r(0)\| \le \frac{4 c P \sqrt{nd}}{m\lambda}\|Y\|_F,\quad
    c = 1 + \frac{2\|Y\|_F}{m}$$

    lemma-d-1-sharp summed over the geometric series, whose factor is $2/x$ and not $4/x$ for $x = m
    \eta \lambda / 2$. $P$ and $c$ are those of the whole run. To attain it one unit would have to
    hold $P$ on all samples, with all residuals of its sign.
    """
    lipschitz = (1 + 2 * norm(Y) / m) * share * jnp.sqrt(float(Y.size))
    return movement[1:], 4 * factor * lipschitz * norm(Y) / (m * lam)


def _rate(step, lam):
    """Half of lambda against the decrease of the loss in one step, over m eta ||u||^2."""
    square = norm(step.u) ** 2
    decrease = -2 * jnp.sum(step.u * step.change) - jnp.sum(step.change**2)
    unit = step.m * step.eta * square
    moved = step.m * step.share * jnp.max(jnp.abs(step.delta))
    magnitude = 2 * norm(step.u) * jnp.sqrt(step.size) * moved / unit
    return Sides(lam / 2, decrease / unit, magnitude=magnitude)


@on_steps(
    "Lemma 5.3, loss; Lemma C.3",
    proof_step=ProofStep("Lemma 5.3", 4),
    controls=[Control("five times the rate", target=5.0)],
)
def lemma_5_3_loss(W, a, X, Y, lam, *, target=1.0):
    r"""$$\|F(\tau+1)-Y\|_F^2 \le \Big(1-\frac{m\eta\lambda}{2}\Big)\|F(\tau)-Y\|_F^2,\quad
    \eta = \frac{0.1\,\lambda}{m n^2 d^2 e^{16B}}$$

    One reconstructed step at points of real trainings of width 256; the change of the outputs is
    computed without cancellation, since the rate is small. The ratio is 1/4 where
    $u$ is the slowest direction: the true rate is $2 m \eta \lambda$.
    """
    n, k = Y.shape
    eta = 0.1 * lam / (W.shape[1] * n**2 * k**2 * jnp.exp(16 * weight_reach(X, W)))
    return _rate(take(W, a, X, Y, eta=eta), target * lam)


@on_steps(
    r"Lemma 5.3, loss, with a step of $3 / (4 m \lambda_{\max})$",
    status=Status.SHARPENED,
    controls=[
        Control(r"a step of $3 / (m \lambda_{\max})$, without $\rho$", long=True),
        Control(r"$1.5 \lambda_{\min}$ in place of $\lambda_{\min}$", factor=1.5),
    ],
)
def lemma_5_3_loss_sharp(W, a, X, Y, eta, lam, least, most, *, long=False, factor=1.0):
    r"""$$m\eta\lambda_{\max}(H(\tau)) \le \frac34,\quad \eta c^3 P^2 (nd)^{3/2}
    \|F(\tau)-Y\|_F \le \frac{\lambda}{13},\quad \eta\|\Delta w_r\| \le 0.01
    \;\Rightarrow\; \|F(\tau+1)-Y\|_F \le
    (1 - m\eta\lambda_{\min}(H(\tau)) + \rho)\, \|F(\tau)-Y\|_F,\quad
    \rho = 1.523\, m c^3 \eta^2 P^2 (nd)^{3/2} \|F(\tau)-Y\|_F$$

    The longest step that the three conditions allow, at points of real trainings.
    $F(\tau+1) - F(\tau) = -m \eta H u + r$ with $\|r\| \le \rho \|u\|$, and $I - m \eta H$ shrinks
    $u$ by $1 - m\eta\lambda_{\min}$ at least; by the second condition
    $\rho \le 0.118\, m\eta\lambda$. With $\lambda_{\min}(H(\tau)) \ge \lambda/2$ the square is at
    most $1 - m\eta\lambda/2$, the rate of the paper, so that the four parts of Lemma E.1 are not
    needed: the step is limited by the largest eigenvalue alone once $m$ is large, not by $e^{-16B}$
    as the reconstructed one.
    """
    step, m = take(W, a, X, Y, eta=eta), W.shape[1]
    bend = step.c**3 * step.share**2 * step.size**1.5 * norm(step.u)
    longest = jnp.minimum(jnp.minimum(0.75 / (m * most), lam / (13 * bend)), 0.01 / step.gradient)
    step = take(W, a, X, Y, eta=3 / (m * most) if long else longest)
    length = m * step.eta
    rest = 1.523 * length * step.eta * bend
    gain = factor * length * least - (0.0 if long else rest)
    return _rate(step, lam)._replace(left=gain * (2 - gain) / length)


def scaled_targets(rng, count):
    """The change of the kernel in trainings on the same data with targets 1 to 1/8 times."""
    raw = draw(rng, count, GENERAL)
    drifts = [train(raw | {"Y": s * raw["Y"]}, GENERAL)["drift"][:, -1] for s in _SCALES]
    return {"drift": np.stack(drifts, axis=1)}


@rate(
    "Definition 3.7 and Lemma 5.1, along trainings",
    scales=1 / _SCALES,
    status=Status.NEW,
    sample=scaled_targets,
    count=COUNT,
    roundings=ROUNDINGS,
    controls=[Control("2.1 in place of 1.9", power=2.1)],
)
def lemma_5_3_even_order(drift, *, power=1.9):
    r"""$$\|H(\tau)-H^*\|_F = O(\|Y\|^{1.9}),\quad \ne O(\|Y\|^{2.1})$$

    The kernel moves in second order: the two units of a pair of Definition 3.7 move in opposite
    directions, and the kernel is even in that motion. Since the weights move by $O(\|Y\| / (m
    \lambda))$, the kernel moves by $O(1 / (m \lambda)^2)$, where Lemma 5.1 has the first power:
    half of the targets stand here for twice the width.
    """
    return drift, jnp.asarray(_SCALES) ** power
