r"""Equation (17): the average risk along K steps of gradient descent, and a sharper regret.

theta_0 = (U, W), theta = (U_other, W_other), kappa_k = (beta_3(theta) v beta_3(theta_k)) / sqrt(H),
and c_k = kappa_k ||theta - theta_k||^2. In every second instance two
equal samples have different labels, so that the risk cannot fall to zero.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.claims.claim import Control, ProofStep, Source, Status, assume
from attlas.claims.statement import inequality
from deora2023optimization.descent import pair_curvature, pair_distance, smoothness
from deora2023optimization.instances import (
    ROUNDINGS,
    grouped_heads,
    risk,
    risk_curvature,
    risk_gradient,
)

_STEPS = 24
_POINTS = 9


class _Path(NamedTuple):
    """What (17) takes of the iterates 0, ..., K: one entry each.

    Attributes:
        risk: L(theta_k).
        largest: the largest risk on the segment to theta.
        curvature: kappa_k with the printed beta_3.
        sharp: kappa_k with the sharp one.
        square: ||theta - theta_k||^2.
        smoothness: beta_2(theta_k).
    """

    risk: Array
    largest: Array
    curvature: Array
    sharp: Array
    square: Array
    smoothness: Array


def _path(pair, eta) -> _Path:
    shares = jnp.linspace(0.0, 1.0, _POINTS, dtype=pair["U"].dtype)

    def step(point, _):
        U, W = point
        run = {**pair, "U": U, "W": W}
        by_U, by_W, square = pair_distance(run)
        met = jax.vmap(lambda a: risk(pair, U + a * by_U, W + a * by_W))(shares)
        kappa, sharp = pair_curvature(run, "printed"), pair_curvature(run, "sharp")
        row = _Path(met[0], jnp.max(met), kappa, sharp, square, smoothness(pair, U, W))
        slope = risk_gradient(pair, U, W)
        return (U - eta * slope[0], W - eta * slope[1]), row

    return jax.lax.scan(step, (pair["U"], pair["W"]), None, length=_STEPS + 1)[1]


def _eta(pair):
    return pair["share"] / smoothness(pair, pair["U"], pair["W"])


def _short_enough(**pair):
    eta = _eta(pair)
    return eta * jnp.max(_path(pair, eta).smoothness) <= 1


def starts(rng, count):
    """theta_0, theta and a share of the step size that is allowed."""
    batch = grouped_heads(rng, count, (2.0, 1e8), (1, 3, 2, 3))
    batch["W"][::2] *= 0.1
    # So many heads that the last term is small beside an oscillation.
    batch["copies"][::8] = 1e12
    spread = 10 ** rng.uniform(-1, 0, count) / np.sqrt(batch["copies"])
    batch["U"] = rng.normal(size=batch["U"].shape) * spread[:, None, None, None]
    batch["X"][::2, 1], batch["y"][::2, 1] = batch["X"][::2, 0], -batch["y"][::2, 0]
    distance = 10 ** rng.uniform(-1.5, 0.5, count) / np.sqrt(batch["copies"])
    for name in "UW":
        away = rng.normal(size=batch[name].shape) * distance[:, None, None, None] / 4
        batch[f"{name}_other"] = batch[name] + away
    return {**batch, "share": rng.uniform(0.1, 0.9, count)}


on_starts = partial(
    inequality,
    sample=starts,
    assumptions=[assume(r"the step is at most $1 / \rho_k$ at every $k$", _short_enough)],
    controls=[Control(r"a step of 6 / (largest curvature at $\theta_0$)", long=True)],
    count=48,
    roundings=ROUNDINGS * _STEPS,
)


def _run(pair, long):
    """The path at the step size of the instance, or at one that is too long."""
    eta = 6 / risk_curvature(pair, pair["U"], pair["W"]).largest if long else _eta(pair)
    path = _path(pair, eta)
    there = risk(pair, pair["U_other"], pair["W_other"])
    before = jax.tree.map(lambda part: part[:-1], path)
    return path, before, there, path.square[0] / (2 * eta * _STEPS)


@on_starts("Equation (17)", Source.FOUND, proof_step=ProofStep("Section 6.1", 5), evaluations=240)
def equation_17(*, long=False, **pair):
    r"""$$\frac1K \sum_{k=1}^K \widehat L(\theta_k) \le \widehat L(\theta) +
    \frac{\|\theta - \theta_0\|^2}{2 \eta K} + \frac{1}{2K} \sum_{k=0}^{K-1}
    \frac{\beta_3(\theta) \vee \beta_3(\theta_k)}{\sqrt H} \max_{\alpha \in [0,1]}
    \widehat L(\theta_{k_\alpha}) \|\theta - \theta_k\|^2$$

    Tight where $\theta$ is close: then both sides are the risk. A step past 2 / curvature
    oscillates where two samples contradict each other; $10 / \rho$ would still be far inside.
    These runs need the term of the distance, half of it would do, and not the last one,
    which equation-16 decides.
    """
    path, before, there, first = _run(pair, long)
    lost = jnp.mean(before.curvature * before.largest * before.square) / 2
    return jnp.mean(path.risk[1:]), there + first + lost


@on_starts("Equation (17), sharpened", status=Status.SHARPENED, evaluations=288)
def equation_17_exponential(*, long=False, **pair):
    r"""$$\frac1K \sum_{k=1}^K \widehat L(\theta_k) \le \frac1K \sum_{k=0}^{K-1} e^{c_k/2}
    \widehat L(\theta) + \frac{\|\theta - \theta_0\|^2}{2 \eta K},\quad
    c_k = \frac{\beta_3(\theta) \vee \beta_3(\theta_k)}{\sqrt H} \|\theta - \theta_k\|^2$$

    If $c_k \le c$ for all $k$ the risk of the last iterate is at most
    $\exp(c/2) \widehat L(\theta) + \|\theta - \theta_0\|^2 / (2 \eta K)$, in place of 2 and 5/4
    in (4), and no iterate is further from $\theta$ than
    $\sqrt{1 + 2 \exp(c/2)} \|\theta - \theta_0\|$ when
    $\eta K \widehat L(\theta) \le \|\theta - \theta_0\|^2$: with $\exp(c/2) = 2$ this requires
    $\sqrt H \ge 3.61 \beta_3 \|\theta - \theta_0\|^2$ in place of 18: theorem-1-exponential. The
    exponent is decided by equation-16-exponential.
    """
    path, before, there, first = _run(pair, long)
    # A step that is too long may overflow the exponent; 700 keeps it a number.
    grown = jnp.exp(jnp.minimum(before.sharp * before.square / 2, 700.0)) * there
    return jnp.mean(path.risk[1:]), jnp.mean(grown) + first
