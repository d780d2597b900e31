r"""Lemma 12: the entrywise l_p norm against the Euclidean norm.

The paper's W in R^{d x d} is ours; its vectorisation w has d^2 entries. Our `p` is its p.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from attlas.core.claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.core.norms import entrywise_norm

_EXPONENTS = (1.1, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)


def _draw(key: PRNGKeyArray, shape: str) -> dict[str, Array]:
    first, second = jax.random.split(key)
    p = jax.random.choice(first, jnp.asarray(_EXPONENTS))
    gauss = jax.random.normal(second, (4, 4))
    if shape == "one entry":
        gauss = jnp.zeros((4, 4)).at[0, 0].set(gauss[0, 0])
    if shape == "constant":
        gauss = jnp.full((4, 4), gauss[0, 0])
    return {"W": gauss, "p": p}


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """Gaussian matrices, and the two families at which the ends are attained."""
    batches = [
        jax.vmap(lambda k, s=shape: _draw(k, s))(jax.random.split(key, count))
        for shape in ("one entry", "constant", "gaussian")
    ]
    kinds = jnp.arange(count) % 3
    return {
        name: jnp.stack([jnp.asarray(b[name]) for b in batches])[kinds, jnp.arange(count)]
        for name in ("W", "p")
    }


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
    controls=(Control("ends of the interval switched", sides=_switched),),
    note="Both ends are attained: one-entry and constant matrices give a ratio of 1.",
)
