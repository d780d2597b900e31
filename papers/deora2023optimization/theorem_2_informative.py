r"""Where the sharpened Theorem 2 is non-vacuous: contradicting labels on one token of dimension 1.

The training sets of 16 samples are the numbers of positive labels among them: all 17 are trained,
so that the expectation is exact. The start is zero, all heads of the target are equal.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy.special import comb

from attlas.bounds.generalisation.deora2023_generalisation import (
    STABILITY_CURVATURE,
    deora2023_generalisation_gap,
    deora2023_stability_heads,
)
from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_1, deora2023_beta_2
from attlas.bounds.optimisation.deora2023_training import Setting, deora2023_head_norm_bound
from attlas.claims.claim import Control, Sides, Status, assume
from attlas.claims.statement import inequality
from deora2023optimization.instances import ROUNDINGS
from deora2023optimization.stability_instances import sample_losses, trajectory

_N, _LONGEST = 16, 24
_POSITIVE = np.arange(_N + 1.0)


def _needed(D, H):
    """Heads of the sharpened Theorem 2 at T = d = R = 1, for a target of H equal heads."""
    return deora2023_stability_heads(Setting(1, 1, 1.0, D, D / jnp.sqrt(H)))


def contradictions(rng, count):
    """Distance of the target, horizon, share of positive labels, and the smallest number of heads.

    The first is D = 0.6, K = 16 and 39 heads.
    """
    D, K = rng.uniform(0.4, 0.65, count), rng.integers(8, _LONGEST + 1, count) * 1.0
    D[0], K[0] = 0.6, 16
    H = np.arange(1.0, 100.0)
    pairs = jnp.asarray(D)[:, None] + 0 * H[None], 0 * jnp.asarray(D)[:, None] + H[None]
    enough = np.asarray(jnp.vectorize(_needed)(*pairs)) <= H
    return {"D": D, "K": K, "p": rng.uniform(0.6, 0.95, count), "H": H[np.argmax(enough, axis=1)]}


def _bound(D, K, p, H, power=0) -> tuple[Array, Array]:
    """The step size, and the bound on the gap."""
    size = deora2023_head_norm_bound(D, D / jnp.sqrt(H), "sharp", STABILITY_CURVATURE)
    worst, start = jax.nn.softplus(D), jnp.log(2.0)
    smooth = deora2023_beta_2(1, 1, 1.0, size, H)
    eta = jnp.minimum(1 / smooth, D**2 / jnp.maximum(K * worst, start))
    target = p * jax.nn.softplus(-D) + (1 - p) * worst
    slope = eta ** (1 + power) * deora2023_beta_1(1, 1.0, size) ** 2
    return eta, deora2023_generalisation_gap(_N, target, D, eta, K, slope)


@inequality(
    "Theorem 2, (5), sharpened, where it is non-vacuous",
    sample=contradictions,
    assumptions=[
        assume(r"$\sqrt H$ is at least $11.03 \beta_3 D^2$", lambda D, H: _needed(D, H) <= H),
        assume(r"the bound is below $\log 2$", lambda **run: _bound(**run)[1] < jnp.log(2.0)),
    ],
    controls=[Control(r"two further factors $\eta$", power=2)],
    status=Status.SHARPENED,
    count=48,
    roundings=ROUNDINGS * _LONGEST,
    evaluations=528,
)
def theorem_2_informative(D, K, p, H, *, power=0):
    r"""$$T = d = R = 1,\ n = 16: \quad E[L(\theta_K) - \widehat L(\theta_K)] \le
    \frac{3.658\,\eta \tilde\beta_1^2}{n} E\Big[1.171\,K \widehat L(\theta) +
    \frac{1.670\,D^2}{\eta}\Big] < \widehat L(\theta_0) = \log 2$$

    Equal tokens whose label is positive with probability $p$. At $D = .6$, $K = 16$ and 39 heads
    and $p = .754$ the bound is 0.270 and the gap 0.0039; the printed constants require 1e5 heads,
    and their bound is 30. At least 36 times the gap: the constants are those of
    formula-theorem-2-sharp, no instance tests them.
    """
    eta, bound = _bound(D, K, p, H, power)
    run = {"X": jnp.ones((2, 1, 1)), "y": jnp.array([1.0, -1.0]), "U": jnp.zeros((1, 1, 1))}
    run = {**run, "W": jnp.zeros((1, 1, 1)), "copies": H, "eta": eta, "K": K}

    def gap(positive):
        share = jnp.stack([positive, _N - positive]) / _N
        U, W = trajectory(run, 2 * share, _LONGEST)
        losses = sample_losses(run, U[-1], W[-1])
        return (jnp.stack([p, 1 - p]) - share) @ losses

    chance = comb(_N, _POSITIVE) * p**_POSITIVE * (1 - p) ** (_N - _POSITIVE)
    gaps = jax.vmap(gap)(jnp.asarray(_POSITIVE))
    return Sides(chance @ gaps, bound, magnitude=jnp.ones(()))
