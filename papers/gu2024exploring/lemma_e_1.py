r"""Lemma E.1: the change of the loss in four parts, exactly.

C_j = 2 <vec(F - Y), vec(v_j)> for j = 0, 1, 2 and C_3 = ||F(tau + 1) - F(tau)||_F^2.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import identity, inequality
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.instances import logit_rounding
from gu2024exploring.library.training.softmax_network_gradient import (
    network_gradient,
    outputs_and_gradient,
)
from gu2024exploring.one_step import ROUNDINGS, norm, points, take

at_points = partial(identity, sample=points, count=32, roundings=ROUNDINGS)


@at_points("Lemma E.1", controls=[Control(f"$C_{j}$ dropped", without=j) for j in range(4)])
def lemma_e_1(W, a, X, Y, part, *, without=None):
    r"""$$\|F(\tau+1)-Y\|_F^2 = \|F(\tau)-Y\|_F^2 + C_0 + C_1 + C_2 + C_3,\quad
    \Theta(1) = \frac{e^{\delta}-1-\delta}{\delta^2}$$

    With this factor the decomposition is exact, at any point and for any step. The loss after the
    step is computed by the network itself. Steps up to $\eta \|\Delta w_r\| = .01$.
    """
    step = take(W, a, X, Y, part=part)
    moved = W - step.eta * network_gradient(SoftmaxNetwork(W, a), X, Y)
    after, _ = outputs_and_gradient(SoftmaxNetwork(moved, a), X, Y)
    C = [2 * jnp.sum(step.u * v) for v in step.v] + [jnp.sum((after - step.F) ** 2)]
    right = sum((part for j, part in enumerate(C) if j != without), jnp.zeros(()))
    # An output is a sum of m terms of size m S_ir, each off by the rounding of its logit.
    size = step.m * logit_rounding(X, W) * jnp.sqrt(step.size)
    magnitude = size * (norm(step.u) + norm(after - Y))
    return Sides(jnp.sum((after - Y) ** 2) - jnp.sum(step.u**2), right, magnitude=magnitude)


def exponents(rng, count):
    """Numbers of size 0.001 to 0.01, the largest that the gradient property allows."""
    size = 10 ** rng.uniform(-3, -2, (count, 4))
    return {"delta": size * rng.choice(np.array([-1.0, 1.0]), (count, 4))}


@inequality(
    r"Lemma E.1, the factor $\Theta(1)$ in $v_2$",
    status=Status.SHARPENED,
    sample=exponents,
    search_over="delta",
    project=lambda delta: {"delta": jnp.sign(delta) * jnp.clip(jnp.abs(delta), 1e-3, 1e-2)},
    count=32,
    roundings=8,
    controls=[Control("7 in place of 6", divisor=7.0)],
)
def lemma_e_1_factor(delta, *, divisor=6.0):
    r"""$$\Big|\frac{e^{\delta}-1-\delta}{\delta^2} - \frac12\Big| \le
    \frac{|\delta| e^{|\delta|}}{6}$$

    Under the gradient property $|\delta| \le .01$ the factor is within 0.0017 of $1/2$.
    """
    size = jnp.abs(delta)
    left = jnp.abs((jnp.expm1(delta) - delta) / delta**2 - 0.5)
    # expm1(delta) - delta loses the digits of delta, then delta^2 divides.
    return Sides(left, size * jnp.exp(size) / divisor, magnitude=1 / size)


@at_points(
    "Lemma E.1, the term $v_0$",
    status=Status.NEW,
    controls=[Control(r"$F(\tau)$ in place of $F(\tau+1)$", before=True)],
)
def lemma_e_1_denominator(W, a, X, Y, part, *, before=False):
    r"""$$v_{0,\ell,i} = -F_{\ell,i}(\tau+1) \sum_r S_{i,r} (e^{\delta_{i,r}} - 1)$$

    The change of the denominator acts through the output itself, which is small beside $m$: this
    is why lemma-e-3-sharp needs no concentration.
    """
    step = take(W, a, X, Y, part=part)
    right = -(step.F if before else step.after) * step.q[:, None]
    return Sides(step.v[0], right, magnitude=step.m * logit_rounding(X, W))
