r"""Appendix A.1: gradient and Hessian of H heads, with 1024 different ones of tiny dimension.

Symbols: X (two tokens of dimension 1), U and W (one decoder and one key-query number per head);
the Hessian is block diagonal over heads, so that its norm is the largest of 1024 small ones.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.deora2023_model import (
    deora2023_multi_head_gradient,
    deora2023_multi_head_hessian,
)
from attlas.claims.deora2023optimization.instances import ROUNDINGS
from attlas.core.claim import Control, ProofStep, Status
from attlas.core.statement import inequality
from attlas.models.attention.multi_head import MultiHead

_HEADS = 1024


def many_heads(rng, count):
    """Different heads of one scale each; every second sample has two opposite tokens."""
    X = rng.choice([-1.0, 1.0], (count, 2, 1)) * rng.uniform(1, 2, (count, 2, 1))
    X[::2, 1] = -X[::2, 0]
    size_U, size_W = (10 ** rng.uniform(low, 1, (count, 1, 1, 1)) for low in (-3, -1))
    return {
        "X": X,
        "U": rng.normal(size=(count, _HEADS, 2, 1)) * size_U,
        "W": rng.normal(size=(count, _HEADS, 1, 1)) * size_W,
    }


on_many_heads = partial(inequality, sample=many_heads, count=32, roundings=ROUNDINGS)
_WRONG_POWER = Control(r"$H$ in place of $\sqrt H$, $H = 1024$", power=-0.5)


@on_many_heads(
    "Appendix A.1, gradient",
    controls=[Control(r"divided by $\sqrt H$, $H = 1024$", power=-0.5)],
)
def multi_head_gradient(X, U, W, *, power=0.0):
    r"""$$\|\nabla_{\theta} \widetilde\Phi(X;\theta)\| \le \max_{h}
    \big( 2 \|X\|_{2,\infty}^2 \sum_{t=1}^T \|X u_{h,t}\|_\infty
    + \sqrt{T} \|X\|_{2,\infty} \big)$$

    The gradient is a root mean square over heads and the bound a maximum, so that
    different heads stay below it; no power of $H$ can be gained.
    """
    slopes = jax.grad(lambda model: model(X))(MultiHead(U, W))
    size = jnp.sqrt(jnp.sum(slopes.U**2) + jnp.sum(slopes.W**2))
    return size, deora2023_multi_head_gradient(X, U, "printed") * _HEADS**power


def _hessian_norm(X, U, W):
    """The largest norm of a head's Hessian over sqrt(H)."""

    def one(theta):
        """Phi_h of the head's three numbers; the whole model has this over sqrt(H)."""
        return MultiHead(theta[:2].reshape(1, 2, 1), theta[2:].reshape(1, 1, 1))(X)

    flat = jnp.concatenate([U.reshape(_HEADS, 2), W.reshape(_HEADS, 1)], axis=1)
    values = jnp.linalg.eigvalsh(jax.vmap(jax.hessian(one))(flat))
    return jnp.max(jnp.abs(values)) / np.sqrt(_HEADS)


@on_many_heads(
    "Appendix A.1, Hessian",
    controls=[_WRONG_POWER],
    proof_step=ProofStep("Corollary 1 (3)", 2),
)
def multi_head_hessian(X, U, W, *, power=0.0):
    r"""$$\|\nabla^2_{\theta} \widetilde\Phi(X;\theta)\| \le \frac{1}{\sqrt H} \max_{h} \big(
    6 d \|X\|_{2,\infty}^2 \|X\|_{1,\infty}^2 \sum_{t=1}^T \|X u_{h,t}\|_\infty
    + 2\sqrt{Td} \|X\|_{2,\infty}^2 \|X\|_{1,\infty} \big)$$

    The exponent 1/2 of $H$ is what the curvature has: the Hessian is block diagonal. Half of
    the bound is reached, as for a single head.
    """
    bound = deora2023_multi_head_hessian(X, U, "printed")
    return _hessian_norm(X, U, W), bound * _HEADS**power


@on_many_heads("Appendix A.1, Hessian, sharpened", controls=[_WRONG_POWER], status=Status.SHARPENED)
def multi_head_hessian_sharp(X, U, W, *, power=0.0):
    r"""$$\|\nabla^2_{\theta} \widetilde\Phi(X;\theta)\| \le \frac{1}{\sqrt H} \max_{h}
    \frac12\big( c_h + \sqrt{c_h^2 + 4 T R^6} \big),
    \quad c_h = \frac{4}{3\sqrt3} R^4 \sum_{t=1}^T \|X u_{h,t}\|_\infty$$

    Among 1024 heads one comes near the bound by chance.
    """
    bound = deora2023_multi_head_hessian(X, U, "sharp")
    return _hessian_norm(X, U, W), bound * _HEADS**power
