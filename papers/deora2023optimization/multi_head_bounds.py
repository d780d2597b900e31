r"""Appendix A.1: gradient and Hessian of H heads, with 64 to 1024 different ones.

The Hessian is block-diagonal over heads, so its norm is the largest norm of a block.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.deora2023_model import (
    deora2023_multi_head_gradient,
    deora2023_multi_head_hessian,
)
from attlas.claims.claim import Control, ProofStep, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import inequality
from attlas.models.attention.multi_head import MultiHead
from deora2023optimization.instances import ROUNDINGS, spread_tokens


def many_heads(rng, count, heads=1024, tokens=2, d=1):
    """Different heads of one scale each; every second sample has two opposite tokens."""
    X = spread_tokens(rng, count, tokens, d) * rng.uniform(1, 2, (count, tokens, 1))
    X[::2, 1] = -X[::2, 0]
    size_U, size_W = (six_decades(rng, (count, 1, 1, 1), low, 1) for low in (-3, -1))
    return {
        "X": X,
        "U": rng.normal(size=(count, heads, tokens, d)) * size_U,
        "W": rng.normal(size=(count, heads, d, d)) * size_W,
    }


on_many_heads = partial(inequality, sample=many_heads, count=32, roundings=ROUNDINGS)
_WRONG_POWER = Control(r"$H$ in place of $\sqrt H$", power=-0.5)


@on_many_heads(
    "Appendix A.1, gradient",
    controls=[Control(r"divided by $H^{0.3}$, $H = 1024$", power=-0.3)],
    evaluations=384,
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
    return size, deora2023_multi_head_gradient(X, U, "printed") * len(U) ** power


def _hessian_norm(X, U, W):
    """The largest norm of a head's Hessian over sqrt(H)."""

    def norm_at(theta):
        """Phi_h of the head's numbers; the whole model has this over sqrt(H)."""
        return MultiHead(theta[: X.size].reshape(1, *X.shape), theta[X.size :].reshape(1, d, d))(X)

    H, d = len(U), X.shape[1]
    flat = jnp.concatenate([U.reshape(H, -1), W.reshape(H, -1)], axis=1)
    values = jnp.linalg.eigvalsh(jax.vmap(jax.hessian(norm_at))(flat))
    return jnp.max(jnp.abs(values)) / np.sqrt(len(U))


@on_many_heads(
    "Appendix A.1, Hessian",
    sample=partial(many_heads, heads=64, tokens=3, d=2),
    controls=[_WRONG_POWER],
    proof_step=ProofStep("Corollary 1 (3)", 2),
    evaluations=128,
)
def multi_head_hessian(X, U, W, *, power=0.0):
    r"""$$\|\nabla^2_{\theta} \widetilde\Phi(X;\theta)\| \le \frac{1}{\sqrt H} \max_{h} \big(
    6 d \|X\|_{2,\infty}^2 \|X\|_{1,\infty}^2 \sum_{t=1}^T \|X u_{h,t}\|_\infty
    + 2\sqrt{Td} \|X\|_{2,\infty}^2 \|X\|_{1,\infty} \big)$$

    The exponent 1/2 of $H$ is what the curvature has: the Hessian is block diagonal.
    """
    bound = deora2023_multi_head_hessian(X, U, "printed")
    return _hessian_norm(X, U, W), bound * len(U) ** power


@on_many_heads(
    "Appendix A.1, Hessian, sharpened",
    controls=[Control(r"$H^{0.6}$ in place of $\sqrt H$", power=-0.1)],
    status=Status.SHARPENED,
    evaluations=32,
)
def multi_head_hessian_sharp(X, U, W, *, power=0.0):
    r"""$$\|\nabla^2_{\theta} \widetilde\Phi(X;\theta)\| \le \frac{1}{\sqrt H} \max_{h}
    \frac12\big( c_h + \sqrt{c_h^2 + 4 T R^6} \big),
    \quad c_h = \frac{4}{3\sqrt3} R^4 \sum_{t=1}^T \|X u_{h,t}\|_\infty$$

    Among 1024 heads one comes near the bound by chance.
    """
    bound = deora2023_multi_head_hessian(X, U, "sharp")
    return _hessian_norm(X, U, W), bound * len(U) ** power
