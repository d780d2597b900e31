r"""Appendix A.1: gradient and Hessian of H heads, with 1024 different ones of tiny dimension.

Symbols: X (two tokens of dimension 1), U and W (one decoder and one key-query number a head);
the Hessian is block diagonal over heads, so that its norm is the largest of 1024 small ones.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.optimisation.deora2023_model import (
    Bound,
    deora2023_multi_head_gradient,
    deora2023_multi_head_hessian,
)
from attlas.claims.deora2023optimization.instances import ROUNDINGS
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Link, Provenance, Sides, Status
from attlas.models.attention.multi_head import MultiHead

_PAPER = "deora2023optimization"
_HEADS = 1024


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Different heads of one scale each; every second sample has two opposite tokens."""
    rng = generator(key)
    X = rng.choice([-1.0, 1.0], (count, 2, 1)) * rng.uniform(1, 2, (count, 2, 1))
    X[::2, 1] = -X[::2, 0]
    size_U, size_W = (10 ** rng.uniform(low, 1, (count, 1, 1, 1)) for low in (-3, -1))
    batch = {
        "X": X,
        "U": rng.normal(size=(count, _HEADS, 2, 1)) * size_U,
        "W": rng.normal(size=(count, _HEADS, 1, 1)) * size_W,
    }
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _gradient(instance: Instance, bound: Bound = "printed", power: float = 0.0) -> Sides:
    X, U, W = (instance[k] for k in ("X", "U", "W"))
    slopes = jax.grad(lambda model: model(X))(MultiHead(U, W))
    size = jnp.sqrt(jnp.sum(slopes.U**2) + jnp.sum(slopes.W**2))
    return Sides(size, deora2023_multi_head_gradient(X, U, bound) * _HEADS**power)


def _hessian(instance: Instance, bound: Bound = "printed", power: float = 0.0) -> Sides:
    X, U, W = (instance[k] for k in ("X", "U", "W"))

    def one(theta: Array) -> Array:
        """Phi_h of the head's three numbers; the whole model has this over sqrt(H)."""
        return MultiHead(theta[:2].reshape(1, 2, 1), theta[2:].reshape(1, 1, 1))(X)

    flat = jnp.concatenate([U.reshape(_HEADS, 2), W.reshape(_HEADS, 1)], axis=1)
    values = jnp.linalg.eigvalsh(jax.vmap(jax.hessian(one))(flat))
    size = jnp.max(jnp.abs(values)) / np.sqrt(_HEADS)
    return Sides(size, deora2023_multi_head_hessian(X, U, bound) * _HEADS**power)


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "provenance": Provenance.DERIVED,
    "instances": _instances,
    "count": 32,
    "terms": ROUNDINGS,
}

MULTI_HEAD_GRADIENT = Claim(
    name=f"{_PAPER}/multi-head-gradient",
    locator="Appendix A.1, gradient",
    statement=(
        r"\|\nabla_{\theta} \widetilde\Phi(X;\theta)\| \le \max_{h}"
        r"\big( 2 \|X\|_{2,\infty}^2 \sum_{t=1}^T \|X u_{h,t}\|_\infty"
        r"+ \sqrt{T} \|X\|_{2,\infty} \big)"
    ),
    status=Status.RECONSTRUCTED,
    sides=_gradient,
    control=(Control("divided by sqrt(H), H = 1024", sides=partial(_gradient, power=-0.5)),),
    note=(
        "The gradient is a root mean square over heads and the bound a maximum, so that "
        "different heads stay below it; no power of H can be gained."
    ),
    **_COMMON,
)

MULTI_HEAD_HESSIAN = Claim(
    name=f"{_PAPER}/multi-head-hessian",
    locator="Appendix A.1, Hessian",
    statement=(
        r"\|\nabla^2_{\theta} \widetilde\Phi(X;\theta)\| \le \frac{1}{\sqrt H} \max_{h} \big("
        r"6 d \|X\|_{2,\infty}^2 \|X\|_{1,\infty}^2 \sum_{t=1}^T \|X u_{h,t}\|_\infty"
        r"+ 2\sqrt{Td} \|X\|_{2,\infty}^2 \|X\|_{1,\infty} \big)"
    ),
    status=Status.RECONSTRUCTED,
    sides=_hessian,
    control=(Control("H in place of sqrt(H), H = 1024", sides=partial(_hessian, power=-0.5)),),
    ledger=Link("Corollary 1 (3)", 2),
    note=(
        "The exponent 1/2 of H is what the curvature has: the Hessian is block diagonal. Half of "
        "the bound is reached, as for a single head."
    ),
    **_COMMON,
)

MULTI_HEAD_HESSIAN_SHARP = Claim(
    name=f"{_PAPER}/multi-head-hessian-sharp",
    locator="Appendix A.1, Hessian, sharpened",
    statement=(
        r"\|\nabla^2_{\theta} \widetilde\Phi(X;\theta)\| \le \frac{1}{\sqrt H} \max_{h}"
        r"\frac12\big( c_h + \sqrt{c_h^2 + 4 T R^6} \big),"
        r"\quad c_h = \frac{4}{3\sqrt3} R^4 \sum_{t=1}^T \|X u_{h,t}\|_\infty"
    ),
    status=Status.SHARPENED,
    sides=partial(_hessian, bound="sharp"),
    control=(
        Control(
            "H in place of sqrt(H), H = 1024", sides=partial(_hessian, bound="sharp", power=-0.5)
        ),
    ),
    note="Among 1024 heads one comes near the bound by chance.",
    **_COMMON,
)
