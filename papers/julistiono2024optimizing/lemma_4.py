r"""Lemma 4: the norm grows slowly.

The proof's chain: ||W|| (||W+||^{p-1} - ||W||^{p-1}) <= (p-1)/p (||W+||^p - ||W||^p)
<= eta ||W+|| ||grad L||_q <= eta ||W+|| Lambda. Ours needs no chain: the norm of the mirror
variable is ||W||^{p-1}, and it moves by eta grad L. Mixtures of four losses.
"""

from functools import partial

import jax.numpy as jnp

from attlas.claims.claim import Control, ProofStep, Sides, Status
from attlas.claims.statement import inequality
from attlas.data.token_selection import TokenSelection
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import mirror_step
from julistiono2024optimizing.cone_instances import mixed_loss
from julistiono2024optimizing.instances import (
    ROUNDINGS,
    dual_norm,
    on_trajectory,
)
from julistiono2024optimizing.lemma_18 import gradient_bound, steep_points
from julistiono2024optimizing.library.token_selection.gradient import selection_gradient


def _norms(data, W, p, eta, mixture):
    """The norms of W and W+, and the dual norm of the gradient."""
    slope = selection_gradient(W, data, mixed_loss(mixture))
    after = mirror_step(W, slope, eta, p)
    return entrywise_norm(W, p), entrywise_norm(after, p), dual_norm(slope, p)


on_steps = partial(
    inequality, sample=on_trajectory, search_over=("W", "X", "v"), roundings=ROUNDINGS
)


@on_steps(
    "Lemma 4",
    controls=[
        Control(r"$\eta^3$ in place of $\eta$", order=3.0),
        Control(r"a thirtieth of $\Lambda$", share=1 / 30),
    ],
)
def lemma_4(X, y, z, v, W, p, eta, mixture, *, order=1.0, share=1.0):
    r"""$$\|W(k+1)\|_{p,p}^{p-1} - \|W(k)\|_{p,p}^{p-1} \le \eta \Lambda,
    \quad \Lambda \text{ as in Lemma 18}$$

    The reconstructed bound is $O(\eta)$; the constant $\Lambda$ is ours. Most of the slack comes
    from $\Lambda$: see the links of the proof, and the claim with the gradient's own norm. Against
    this loose $\Lambda$ even the p-th powers, the control first thought of, stay below.
    """
    data = TokenSelection(X, y, z, v)
    before, after, _ = _norms(data, W, p, eta, mixture)
    low, high = before ** (p - 1), after ** (p - 1)
    bound = share * gradient_bound(data, p, mixture)
    return Sides(high - low, eta**order * bound, magnitude=high + low)


@on_steps(
    "Lemma 4, with the gradient's norm",
    status=Status.SHARPENED,
    controls=[
        Control("p-th powers of the norms", drop=0.0),
        Control("four fifths of the right side", share=0.8),
    ],
)
def lemma_4_gradient(X, y, z, v, W, p, eta, mixture, *, drop=1.0, share=1.0):
    r"""$$\big| \|W(k+1)\|_{p,p}^{p-1} - \|W(k)\|_{p,p}^{p-1} \big|
    \le \eta \|\nabla \mathcal{L}(W(k))\|_{q,q}$$

    Both directions, by the triangle inequality for the mirror variable, whose dual norm is the
    power $p - 1$ of the norm. An equality where $W$ is along the gradient.
    """
    before, after, slope = _norms(TokenSelection(X, y, z, v), W, p, eta, mixture)
    low, high, moved = before ** (p - drop), after ** (p - drop), eta * slope
    return Sides(jnp.abs(high - low), share * moved, magnitude=high + low + moved)


@on_steps(
    "Lemma 4, proof, step 1",
    controls=[
        Control("$p$ and $p - 1$ exchanged", exchanged=True),
        Control("five fourths of the left side", share=1.25),
    ],
    proof_step=ProofStep("Lemma 4", 1),
)
def lemma_4_link_1(X, y, z, v, W, p, eta, mixture, *, exchanged=False, share=1.0):
    r"""$$\|W(k)\| (\|W(k+1)\|^{p-1} - \|W(k)\|^{p-1})
    \le \frac{p-1}{p} (\|W(k+1)\|^p - \|W(k)\|^p)$$

    Lemma 14 at the two norms.
    """
    before, after, _ = _norms(TokenSelection(X, y, z, v), W, p, eta, mixture)
    ratio = p / (p - 1) if exchanged else (p - 1) / p
    small, large = (after ** (p - 1), before ** (p - 1)), (after**p, before**p)
    return Sides(
        share * before * (small[0] - small[1]),
        ratio * (large[0] - large[1]),
        magnitude=before * sum(small) + ratio * sum(large),
    )


@on_steps(
    "Lemma 4, proof, step 2",
    controls=[
        Control("$p$ and $p - 1$ exchanged", exchanged=True),
        Control("five fourths of the left side", share=1.25),
    ],
    proof_step=ProofStep("Lemma 4", 2),
)
def lemma_4_link_2(X, y, z, v, W, p, eta, mixture, *, exchanged=False, share=1.0):
    r"""$$\frac{p-1}{p} (\|W(k+1)\|^p - \|W(k)\|^p)
    \le \eta \|W(k+1)\| \|\nabla\mathcal{L}(W(k))\|_{q,q}$$

    Convexity of the conjugate of $\psi$, then Hölder's inequality.
    """
    before, after, slope = _norms(TokenSelection(X, y, z, v), W, p, eta, mixture)
    ratio = p / (p - 1) if exchanged else (p - 1) / p
    growth, magnitude = after**p - before**p, after**p + before**p
    return Sides(share * ratio * growth, eta * after * slope, magnitude=magnitude)


@on_steps(
    "Lemma 4, proof, step 3",
    sample=steep_points,
    controls=[Control(r"four ninths of $\Lambda$", factor=8 / 9)],
    proof_step=ProofStep("Lemma 4", 3),
)
def lemma_4_link_3(X, y, z, v, W, p, eta, mixture, *, factor=2.0):
    r"""$$\|W(k+1)\| \|\nabla\mathcal{L}(W(k))\|_{q,q} \le \|W(k+1)\| \Lambda$$

    Lemma 18: most of the slack of Lemma 4 arises here.
    """
    data = TokenSelection(X, y, z, v)
    _, after, slope = _norms(data, W, p, eta, mixture)
    return after * slope, after * gradient_bound(data, p, mixture, factor)
