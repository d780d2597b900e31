r"""Lemma 12: the entrywise l_p norm against the Euclidean norm.

The paper's W in R^{d x d} is ours; its vectorisation w has d^2 entries. Our `p` is its p.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.julistiono2024optimizing.instances import EXPONENTS
from attlas.core.claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.core.generator import generator
from attlas.core.norms.entrywise import entrywise_norm


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Gaussian matrices, and the two families at which the ends are attained."""
    rng = generator(key)
    W = rng.normal(size=(count, 4, 4))
    one_entry = np.zeros((4, 4))
    one_entry[0, 0] = 1
    W[0::3] = W[0::3] * one_entry
    W[1::3] = W[1::3, :1, :1]
    return {"W": jnp.asarray(W), "p": jnp.asarray(rng.choice(EXPONENTS, size=count))}


def _ends(instance: Instance) -> tuple[Array, Array, Array]:
    """The two ends of the interval, smaller first for p >= 2, and the norm between them."""
    W, p = instance["W"], instance["p"]
    d = W.shape[0]
    euclidean = jnp.linalg.norm(W)
    return d ** (2 / p - 1) * euclidean, euclidean, entrywise_norm(W, p)


def _sides(instance: Instance) -> Sides:
    scaled, plain, norm = _ends(instance)
    low = jnp.where(instance["p"] >= 2, scaled, plain)
    high = jnp.where(instance["p"] >= 2, plain, scaled)
    return Sides(jnp.stack([low, norm]), jnp.stack([norm, high]))


def _switched(instance: Instance) -> Sides:
    scaled, plain, norm = _ends(instance)
    low = jnp.where(instance["p"] >= 2, plain, scaled)
    high = jnp.where(instance["p"] >= 2, scaled, plain)
    return Sides(jnp.stack([low, norm]), jnp.stack([norm, high]))


LEMMA_12 = Claim(
    name="julistiono2024optimizing/lemma-12",
    paper="julistiono2024optimizing",
    locator="Lemma 12",
    statement=(
        r"d^{2/p-1}\|w\|_2 \le \|W\|_{p,p} \le \|w\|_2 \ (p \ge 2), \quad"
        r"\|w\|_2 \le \|W\|_{p,p} \le d^{2/p-1}\|w\|_2 \ (1 < p \le 2)"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_sides,
    free=("W",),
    control=(Control("ends of the interval switched", sides=_switched),),
    note="Both ends are attained: one-entry and constant matrices give a ratio of 1.",
)
