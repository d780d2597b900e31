r"""Erratum 4: (0, 0) is a stationary point, and (A3) cannot hold there.

Softplus units, as in section 2, on a finite population; y is centred and E(y|x) is the teacher's
output.
"""

import jax
import jax.numpy as jnp

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import identity, inequality
from liu2021analyzing.lemma_1_1 import INPUTS, TEACHERS, UNITS, attended
from liu2021analyzing.library.measures.conditional_covariance import conditional_covariance
from liu2021analyzing.library.models.rectifier import rectify

_SHARPNESS = 10.0


def teachers(rng, count):
    """Inputs after attention, a teacher, and another student's first layer."""
    return {
        "z": attended(rng, count),
        "Ws": rng.standard_normal((count, INPUTS, TEACHERS))
        * 10 ** rng.uniform(-1, 1, (count, 1, 1)),
        "ws": rng.standard_normal((count, TEACHERS)) * 10 ** rng.uniform(-1, 1, (count, 1)),
        "W": rng.standard_normal((count, INPUTS, UNITS)) * 10 ** rng.uniform(-2, 1, (count, 1, 1)),
    }


def units(z, W):
    """Features of a first layer."""
    return rectify(z @ W, _SHARPNESS)


@identity(
    "Theorem 1, 'any stationary point'",
    sample=teachers,
    status=Status.NEW,
    count=48,
    roundings=128,
    controls=[Control("$y$ not centred", centred=False)],
)
def zero_point(z, Ws, ws, W, *, centred=True):
    r"""$$E y = 0: \quad \nabla \tfrac12 E (w^\top \phi(W^\top z) - E(y|x))^2 = 0 \quad
    \text{at } W = 0,\ w = 0, \quad E u^2 = E[E(y|x)^2]$$

    The error at this stationary point is that of predicting nothing, whatever $n$. The theorem
    excludes it through (A3) alone, which it assumes there implicitly: see assumption-a3-at-zero.
    On a sample with centred $y$ it is stationary as well.
    """
    target = units(z, Ws) @ ws
    y = target - jnp.mean(target) if centred else target

    def risk(W, w):
        return jnp.mean((units(z, W) @ w - y) ** 2) / 2

    value, slopes = jax.value_and_grad(risk, argnums=(0, 1))(
        jnp.zeros_like(W), jnp.zeros_like(W[0])
    )
    left = jnp.stack([jnp.sqrt(sum(jnp.sum(part**2) for part in slopes)), 2 * value])
    # The second side of the error is the variance, by another formula.
    variance = jnp.mean(target**2) - jnp.mean(target) ** 2
    # What cancels in the gradient and in the variance.
    size = units(z, Ws) @ jnp.abs(ws)
    magnitude = jnp.stack([jnp.mean(size), jnp.mean(size**2)])
    return Sides(left, jnp.stack([jnp.zeros_like(variance), variance]), magnitude)


@inequality(
    "(A3), assumed of all first layers",
    sample=teachers,
    status=Status.NEW,
    count=96,
    roundings=128,
    search_over=("z", "Ws", "ws", "W"),
    controls=[
        Control("at the teacher's own first layer", at_teacher=True),
        Control("0.8 of the bound", share=0.8),
    ],
)
def assumption_a3_at_zero(z, Ws, ws, W, *, at_teacher=False, share=1.0):
    r"""$$E[E(y|x)^2] \le \|w^*\|_2^2\, \lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi_0)), \quad
    \lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi_W)) \le
    \lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi_0)) = \lambda_{\max}(\mathrm{Cov}\, \Phi^*)$$

    Features at $W = 0$ are constant and explain nothing. If (A3) holds for all first layers,
    $C_2^2\, o(\gamma^2)$ bounds the whole of $E(y|x)$: the network that predicts 0 has the error
    that the theorem guarantees. No nontrivial teacher satisfies (A3) on a set that contains 0.
    """
    target = units(z, Ws)

    def residual(layer):
        return conditional_covariance(target, units(z, layer)).largest

    worst = residual(Ws if at_teacher else jnp.zeros_like(W))
    factors = jnp.stack([jnp.sum(ws**2), jnp.ones_like(worst)])
    magnitude = jnp.mean(jnp.sum(target**2, axis=1)) * factors
    return Sides(jnp.stack([jnp.var(target @ ws), residual(W)]), share * factors * worst, magnitude)
