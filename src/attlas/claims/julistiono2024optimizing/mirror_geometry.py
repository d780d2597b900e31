r"""Identities of the mirror map psi(W) = (1/p) ||W||_p^p that the proofs rest on (Section 1.2).

They are not numbered in the paper; a bar over a matrix divides it by its own norm.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.julistiono2024optimizing.instances import (
    EXPONENTS,
    ROUNDINGS,
    dual_norm,
    gradient,
    mirror_step,
    random_data,
)
from attlas.core.generator import generator
from attlas.core.norms.entrywise import entrywise_norm
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.optim.mirror_descent import bregman, potential_gradient

_PAPER = "julistiono2024optimizing"
_RECORDS = (1, 8, 64)


def _pairs(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    size = 10 ** rng.uniform(-2, 2, size=(2, count, 1, 1))
    W, V = size * rng.normal(size=(2, count, 3, 3))
    p = rng.choice(EXPONENTS, size=count)
    return {"W": jnp.asarray(W), "V": jnp.asarray(V), "p": jnp.asarray(p)}


def _dual_size(instance: Instance, drop: float = 1.0) -> Sides:
    W, p = instance["W"], instance["p"]
    return Sides(dual_norm(potential_gradient(W, p), p), entrywise_norm(W, p) ** (p - drop))


MIRROR_NORM = Claim(
    name=f"{_PAPER}/mirror-norm",
    paper=_PAPER,
    locator="Section 3, norm of the mirror variable",
    statement=r"\|\nabla\psi(W)\|_{q,q} = \|W\|_{p,p}^{p-1}, \quad q = \frac{p}{p-1}",
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_pairs,
    sides=_dual_size,
    control=(Control("the p-th power", sides=partial(_dual_size, drop=0.0)),),
    note="With it Lemma 4 is the triangle inequality for the mirror variable.",
)


def _unit_divergence(instance: Instance, exchanged: bool = False) -> Sides:
    W, V, p = instance["W"], instance["V"], instance["p"]
    norm = entrywise_norm(W, p)
    unit_w, unit_v = W / norm, V / entrywise_norm(V, p)
    by_unit = 1 - jnp.sum(potential_gradient(unit_w, p) * unit_v)
    other = V if exchanged else unit_v
    by_size = 1 - jnp.sum(potential_gradient(W, p) * other) / norm ** (p - 1)
    divergence = bregman(unit_v, unit_w, p)
    # On the sphere psi = 1/p and the inner product is at most one.
    scale = 2 + 2 / p
    lhs = jnp.stack([divergence, divergence])
    return Sides(lhs, jnp.stack([by_unit, by_size]), scale=scale)


UNIT_DIVERGENCE = Claim(
    name=f"{_PAPER}/unit-divergence",
    paper=_PAPER,
    locator="Section 3, divergence of directions",
    statement=(
        r"D_\psi(\bar V, \bar W) = 1 - \langle \nabla\psi(\bar W), \bar V \rangle"
        r"= 1 - \frac{\langle \nabla\psi(W), \bar V \rangle}{\|W\|_{p,p}^{p-1}}"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_pairs,
    sides=_unit_divergence,
    control=(Control("V not normalised", sides=partial(_unit_divergence, exchanged=True)),),
    note="It makes the directional divergence linear in the mirror variable.",
)


@jax.jit
def _normalised_norms(batch: Instance) -> Array:
    """Norms of W after 0, 1, 8 and 64 dual-normalised steps."""

    def one(instance: Instance) -> Array:
        p = instance["p"]

        def step(W: Array, _: None) -> tuple[Array, Array]:
            slope = gradient(instance, W)
            size = dual_norm(slope, p)
            unit = slope / jnp.where(size > 0, size, 1)
            return mirror_step(W, unit, instance["eta"], p), entrywise_norm(W, p)

        last, norms = jax.lax.scan(step, instance["W"], None, length=max(_RECORDS))
        norms = jnp.append(norms, entrywise_norm(last, p))
        return norms[jnp.asarray((0, *_RECORDS))]

    return jax.vmap(one)(batch)


def _walks(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    batch = random_data(rng, count)
    d = batch["v"].shape[1]
    batch["W"] = rng.normal(size=(count, d, d)) * rng.choice([0.0, 1.0], size=(count, 1, 1))
    batch["eta"] = 10 ** rng.uniform(-2, 0, size=count)
    norms = np.asarray(_normalised_norms(batch))
    return {name: jnp.asarray(v) for name, v in {**batch, "norms": norms}.items()}


def _growth(instance: Instance, power: float = 1.0) -> Sides:
    p, norms = instance["p"], instance["norms"]
    steps = jnp.asarray(_RECORDS, dtype=norms.dtype)
    lhs = norms[1:] ** (p - 1)
    rhs = norms[0] ** (p - 1) + instance["eta"] * steps**power
    # Every step rounds the mirror variable once more.
    return Sides(lhs, rhs, scale=rhs * steps)


NORMALISED_GROWTH = Claim(
    name=f"{_PAPER}/normalised-growth",
    paper=_PAPER,
    locator="Section 5, normalised steps",
    statement=(
        r"\text{normalised steps}: \quad"
        r"\|W(k)\|_{p,p}^{p-1} \le \|W(0)\|_{p,p}^{p-1} + \eta k"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_walks,
    sides=_growth,
    control=(Control("square root of k", sides=partial(_growth, power=0.5)),),
    terms=ROUNDINGS,
    note=(
        "The released experiments use these steps, so that their norm grows like "
        "(eta k)^(1/(p-1)) and not like log k. An equality after one step from W(0) = 0."
    ),
)
