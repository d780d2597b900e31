r"""Proposition 1: gradient and Hessian of one head, with exact norms.

A second family of claims sharpens both bounds, without d; its constants are attained. Proof:
papers/deora2023optimization/proofs/dimension_free_hessian.md.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from attlas.bounds.optimisation.deora2023_model import deora2023_gradient, deora2023_hessian
from attlas.claims.claim import Control, ProofStep, Source, Status
from attlas.claims.statement import erratum, inequality
from attlas.models.attention.multi_head import Decoder, MultiHead
from deora2023optimization.instances import ROUNDINGS, single_heads

on_heads = partial(inequality, sample=single_heads, count=32, roundings=ROUNDINGS)
_THREE = partial(single_heads, tokens=3)
_ALL = ("X", "U", "W")
_NO_SECOND = Control("without the second term", whole=False)
_MOST = Control("four fifths of the right side", share=0.8)


def gradient_norm(X, U, W):
    """The Euclidean norm of the gradient of Phi in (U, W)."""
    start, back = ravel_pytree((U[None], W[None]))
    slope = jax.grad(lambda theta: MultiHead(*back(theta))(X))(start)
    return jnp.sqrt(jnp.sum(slope**2))


def hessian_norm(X, U, W):
    """The spectral norm of the Hessian of Phi in (U, W), from all its eigenvalues."""
    start, back = ravel_pytree((U[None], W[None]))
    values = jnp.linalg.eigvalsh(jax.hessian(lambda theta: MultiHead(*back(theta))(X))(start))
    return jnp.maximum(-values[0], values[-1])


@on_heads(
    "Proposition 1, first item",
    Source.FOUND,
    sample=_THREE,
    controls=[_NO_SECOND, _MOST],
)
def proposition_1_gradient(X, U, W, *, whole=True, share=1.0):
    r"""$$\|\nabla_\theta \Phi(X;\theta)\| \le 2 \|X\|_{2,\infty}^2 \sum_{t=1}^T
    \|X u_t\|_\infty + \sqrt{T} \|X\|_{2,\infty}$$

    Loose by a factor between 1 and 3: for small decoders the second term is attained, for
    large ones half of the first; see proposition-1-gradient-sharp.
    """
    second = deora2023_gradient(X, jnp.zeros_like(U), "printed")
    bound = deora2023_gradient(X, U, "printed")
    return gradient_norm(X, U, W), share * (bound if whole else bound - second)


@on_heads(
    "Proposition 1, second item",
    Source.FOUND,
    sample=partial(single_heads, d=3),
    search_over=_ALL,
    controls=[_NO_SECOND, Control("a fifth of the right side", share=0.2)],
    proof_step=ProofStep("Corollary 1 (3)", 1),
)
def proposition_1_hessian(X, U, W, *, whole=True, share=1.0):
    r"""$$\|\nabla^2_\theta \Phi(X;\theta)\| \le 6 d \|X\|_{2,\infty}^2 \|X\|_{1,\infty}^2
    \sum_{t=1}^T \|X u_t\|_\infty + 2\sqrt{Td} \|X\|_{2,\infty}^2 \|X\|_{1,\infty},
    \quad \|X\|_{1,\infty} = \max_{tj} |X_{tj}|$$

    At most half of the bound is reached, at $U = 0$ with tokens along one axis; for large
    decoders less: the first term may shrink by $6 / 0.77$ times the ratio of $d \max |X|^2$ to
    $R^2$.
    """
    second = deora2023_hessian(X, jnp.zeros_like(U), "printed")
    bound = deora2023_hessian(X, U, "printed")
    return hessian_norm(X, U, W), share * (bound if whole else bound - second)


@on_heads(
    "Proposition 1, first item, sharpened",
    status=Status.SHARPENED,
    sample=partial(single_heads, tokens=4, d=3),
    search_over=_ALL,
    controls=[Control("without the 1 in the maximum", whole=False), _MOST],
)
def proposition_1_gradient_sharp(X, U, W, *, whole=True, share=1.0):
    r"""$$\|\nabla_\theta \Phi(X;\theta)\| \le \sqrt{T} R \max\big(1,
    R \big(\sum_{t=1}^T \|X u_t\|_\infty^2\big)^{1/2}\big),\quad R = \|X\|_{2,\infty}$$

    Attained: at $U = 0$ with equal tokens, and for large decoders at two opposite tokens with
    weight 1/2 each. The factor 2 of the printed bound is not needed, and the two parts of
    the gradient cannot be large together.
    """
    # The part that the decoder multiplies is the slope of the bound at a huge one.
    scale = 1 if whole else 1e12
    return gradient_norm(X, U, W), share * deora2023_gradient(X, scale * U, "sharp") / scale


_HUGE = 1e12
"""Scale of a decoder at which a bound over it is the part that the decoder multiplies."""


@on_heads(
    "Proposition 1, second item, without the dimension",
    sample=partial(single_heads, tokens=3, d=3),
    search_over=("X", "U", "W"),
    status=Status.SHARPENED,
    controls=[
        Control("without the second term", scale=_HUGE),
        Control("two fifths of the right side", share=0.4),
    ],
)
def hessian_dimension_free(X, U, W, *, scale=1.0, share=1.0):
    r"""$$\|\nabla^2_\theta \Phi(X;\theta)\| \le 2 R^4 \sum_{t=1}^T \|X u_t\|_\infty +
    \sqrt{T} R^3,\quad R = \|X\|_{2,\infty}$$

    No dimension $d$: the second derivative in $W$ is a third central moment of the softmax law.
    Carried through Corollary 1 the heads that Theorem 1 requires shrink by $d^2$. Attained
    at $U = 0$ by two opposite tokens; for large decoders 2 may be $4/(3 \sqrt 3)$.
    """
    bound = deora2023_hessian(X, scale * U, "dimension_free") / scale
    return hessian_norm(X, U, W), share * bound


@on_heads(
    "Proposition 1, second item, sharpest",
    search_over=("X", "U", "W"),
    status=Status.SHARPENED,
    controls=[
        Control("$c$ alone", scale=_HUGE),
        Control("$T R^6$ in place of $4 T R^6$", scale=2.0),
    ],
)
def hessian_sharp(X, U, W, *, scale=1.0):
    r"""$$\|\nabla^2_\theta \Phi(X;\theta)\| \le \frac12 \big(c + \sqrt{c^2 + 4 T R^6}\big),
    \quad c = \frac{4}{3\sqrt3} R^4 \sum_{t=1}^T \|X u_t\|_\infty$$

    $4/(3 \sqrt 3) = 0.770$ is the largest third central moment $|E (a - Ea)(b - Eb)^2|$ of
    numbers in $[-1, 1]$; it is reached at weights $(1 \pm 1/\sqrt 3)/2$ on two opposite tokens,
    so that the bound is attained for large decoders (the first instance), and at $U = 0$.
    """
    return hessian_norm(X, U, W), deora2023_hessian(X, scale * U, "sharp") / scale


def equal_tokens():
    """Four equal tokens, decoder zero: the gradient in u is their sum."""
    X = np.tile(np.asarray([[1.0, 0.0]]), (4, 1))
    return {"X": X, "u": np.zeros(2), "W": np.zeros((2, 2))}


def pooled_heads(rng, count):
    """Single heads of four tokens with one decoder u for all of them."""
    batch = single_heads(rng, count, tokens=4)
    batch["u"] = batch.pop("U")[:, 0]
    return batch


@erratum(
    "Footnote * of section 2, for Proposition 1",
    witness=equal_tokens,
    sample=pooled_heads,
    reason="four equal tokens of length 1 and $U = 0$: the gradient in $u$ has length 4, the "
    "bound is 2",
    corrected=Control("$T$ in place of its root in the second term", decoder=Decoder.POOLED),
    roundings=ROUNDINGS,
)
def proposition_1_pooled(X, u, W, *, decoder=Decoder.FULL):
    r"""$$U = 1_T u^\top,\ \theta = (u, W): \quad \|\nabla_\theta \Phi(X;\theta)\| \le
    2 \|X\|_{2,\infty}^2 \sum_{t=1}^T \|X u\|_\infty + \sqrt{T} \|X\|_{2,\infty}$$

    "Our results also apply to pooling" needs $T^2$ in place of $T$: the decoder is shared by
    all tokens, so that its gradient is a sum over them.
    """
    model = MultiHead(u[None], W[None], Decoder.POOLED)
    slope, _ = ravel_pytree(jax.grad(lambda model: model(X))(model))
    U = jnp.broadcast_to(u[None], X.shape)
    bound = deora2023_gradient(X, U, "printed", decoder=decoder)
    return jnp.sqrt(jnp.sum(slope**2)), bound
