r"""Theorem 4.2 for gradient flow, by a certificate that is computed at the start.

R is the largest radius within which the sharpened Lemma 5.1 keeps the kernel within lambda / 2; the
certificate holds where the weights cannot move that far. Proof:
papers/gu2024exploring/proofs/kernel_perturbation.md.
"""

from functools import partial

import jax.numpy as jnp

from attlas.claims.claim import Control, Sides, Status, assume
from attlas.claims.statement import inequality
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.flow_runs import certified_flows
from gu2024exploring.library.bounds.gu2024_flow import gu2024_flow_certificate
from gu2024exploring.one_step import ROUNDINGS, norm
from gu2024exploring.trajectories import SLOW


def _certificate(W, a, X, Y, lam):
    return gu2024_flow_certificate(SoftmaxNetwork(W, a), X, Y, lam)


certified = partial(
    inequality,
    status=Status.SHARPENED,
    sample=certified_flows,
    not_attacked=SLOW,
    assumptions=[
        assume(
            "the certificate of the start: $D < R$",
            lambda W, a, X, Y, lam: _certificate(W, a, X, Y, lam).ratio < 1,
        )
    ],
    count=48,
    roundings=ROUNDINGS,
)


@certified(
    "Theorem 4.2 for gradient flow",
    controls=[Control("three times the rate", faster=3.0)],
)
def theorem_4_2_flow(left, Y, lam, m, time, *, faster=1.0):
    r"""$$D(R) < R \;\Rightarrow\; \|F(t) - Y\|_F \le e^{-m \lambda t / 2} \|F(0) - Y\|_F
    \;\forall t$$

    Nothing is assumed of the flow. Width 256, targets of length 0.001 to 0.03, two outputs, times
    up to $m \lambda t = 6$; the width that is certified grows with the targets. The true rate is
    $m \lambda$.
    """
    right = jnp.exp(-faster * lam * time / 2) * norm(Y)
    return Sides(left, right, magnitude=m)


@certified(
    "Theorem 4.2 for gradient flow, weights and kernel",
    controls=[Control("$10^{-9}$ of both", share=1e-9)],
)
def theorem_4_2_flow_weights(W, a, X, Y, lam, movement, kernel_change, *, share=1.0):
    r"""$$D(R) < R \;\Rightarrow\; \|w_r(t) - w_r(0)\| \le D(R),\quad
    \|H(t) - H^*\|_F \le \frac{\lambda}{2} \;\forall t$$

    A fifth of $D$ is reached. The kernel moves by $10^{-6} \lambda$, in second order
    (lemma-5-3-even-order): no run tests the constant 1/2.
    """
    D = _certificate(W, a, X, Y, lam).movement
    return jnp.stack((movement, kernel_change)), share * jnp.stack((D, lam / 2))
