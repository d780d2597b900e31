r"""Identities of the mirror map psi(W) = (1/p) ||W||_p^p that the proofs rest on (Section 1.2).

They are not numbered in the paper; a bar over a matrix divides it by its own norm.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import identity, inequality
from attlas.data.token_selection import TokenSelection
from attlas.measures.attention.direction import direction_divergence
from attlas.norms.entrywise import entrywise_norm
from attlas.optim.mirror_descent import mirror_step, potential_gradient
from julistiono2024optimizing.instances import (
    EXPONENTS,
    ROUNDINGS,
    dual_norm,
    random_data,
)
from julistiono2024optimizing.library.token_selection.gradient import selection_gradient

_RECORDS = (1, 8, 64)


def pairs(rng, count):
    """Gaussian matrices of sizes 0.01 to 100."""
    size = 10 ** rng.uniform(-2, 2, size=(2, count, 1, 1))
    W, V = size * rng.normal(size=(2, count, 3, 3))
    return {"W": W, "V": V, "p": rng.choice(EXPONENTS, size=count)}


@identity(
    "Section 3, norm of the mirror variable",
    status=Status.NEW,
    sample=pairs,
    controls=[Control("the p-th power", drop=0.0)],
)
def mirror_norm(W, p, *, drop=1.0):
    r"""$$\|\nabla\psi(W)\|_{q,q} = \|W\|_{p,p}^{p-1}, \quad q = \frac{p}{p-1}$$

    With it Lemma 4 is the triangle inequality for the mirror variable.
    """
    return dual_norm(potential_gradient(W, p), p), entrywise_norm(W, p) ** (p - drop)


@identity(
    "Section 3, divergence of directions",
    status=Status.NEW,
    sample=pairs,
    controls=[Control("$V$ not normalised", normalised=False)],
)
def unit_divergence(W, V, p, *, normalised=True):
    r"""$$D_\psi(\bar V, \bar W) = 1 - \langle \nabla\psi(\bar W), \bar V \rangle
    = 1 - \frac{\langle \nabla\psi(W), \bar V \rangle}{\|W\|_{p,p}^{p-1}}$$

    It makes the directional divergence linear in the mirror variable.
    """
    norm = entrywise_norm(W, p)
    unit_w, unit_v = W / norm, V / entrywise_norm(V, p)
    target = unit_v if normalised else V
    by_unit = 1 - jnp.sum(potential_gradient(unit_w, p) * target)
    by_size = 1 - jnp.sum(potential_gradient(W, p) * target) / norm ** (p - 1)
    # On the sphere psi = 1/p and the inner product is at most one.
    return Sides(direction_divergence(W, V, p), jnp.stack([by_unit, by_size]), magnitude=2 + 2 / p)


@jax.jit
@jax.vmap
def _normalised_norms(begun):
    """Norms of W after 0, 1, 8 and 64 dual-normalised steps."""
    data, p = TokenSelection(begun["X"], begun["y"], begun["z"], begun["v"]), begun["p"]

    def step(W, _):
        slope = selection_gradient(W, data)
        size = dual_norm(slope, p)
        unit = slope / jnp.where(size > 0, size, 1)
        return mirror_step(W, unit, begun["eta"], p), entrywise_norm(W, p)

    last, norms = jax.lax.scan(step, begun["W"], None, length=max(_RECORDS))
    return jnp.append(norms, entrywise_norm(last, p))[jnp.asarray((0, *_RECORDS))]


def normalised_walks(rng, count):
    """Norms along normalised steps of size 0.01 to 1, from zero and from Gaussian starts."""
    batch = random_data(rng, count)
    d = batch["v"].shape[1]
    batch["W"] = rng.normal(size=(count, d, d)) * rng.choice([0.0, 1.0], size=(count, 1, 1))
    batch["eta"] = 10 ** rng.uniform(-2, 0, size=count)
    return {**batch, "norms": np.asarray(_normalised_norms(batch))}


@inequality(
    "Section 5, normalised steps",
    status=Status.NEW,
    sample=normalised_walks,
    controls=[Control("square root of $k$", power=0.5), Control("half of the step", share=0.5)],
    roundings=ROUNDINGS,
    evaluations=1280,
)
def normalised_growth(norms, p, eta, *, power=1.0, share=1.0):
    r"""$$\text{normalised steps}: \quad
    \|W(k)\|_{p,p}^{p-1} \le \|W(0)\|_{p,p}^{p-1} + \eta k$$

    The released experiments use these steps, so that their norm grows like $(\eta k)^{1/(p-1)}$
    and not like $\log k$. An equality after one step from $W(0) = 0$.
    """
    steps = jnp.asarray(_RECORDS, dtype=norms.dtype)
    right = norms[0] ** (p - 1) + share * eta * steps**power
    # Every step rounds the mirror variable once more.
    return Sides(norms[1:] ** (p - 1), right, magnitude=right * steps)
