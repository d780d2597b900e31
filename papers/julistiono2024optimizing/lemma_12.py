r"""Lemma 12: the entrywise l_p norm against the Euclidean norm of w = vec(W)."""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Source
from attlas.claims.statement import inequality
from attlas.norms.entrywise import entrywise_norm
from julistiono2024optimizing.instances import EXPONENTS


def matrices(rng, count):
    """Gaussian matrices, and the two families at which the ends are attained."""
    W = rng.normal(size=(count, 4, 4))
    W[0::3] *= np.eye(1, 16).reshape(4, 4)
    W[1::3] = W[1::3, :1, :1]
    return {"W": W, "p": rng.choice(EXPONENTS, size=count)}


@inequality(
    "Lemma 12",
    Source.DERIVED,
    sample=matrices,
    search_over="W",
    controls=[Control("ends of the interval switched", switched=True)],
)
def lemma_12(W, p, *, switched=False):
    r"""$$d^{2/p-1}\|w\|_2 \le \|W\|_{p,p} \le \|w\|_2 \ (p \ge 2), \quad
    \|w\|_2 \le \|W\|_{p,p} \le d^{2/p-1}\|w\|_2 \ (1 < p \le 2)$$

    Both ends are attained: one-entry and constant matrices give a ratio of 1.
    """
    norm, euclidean = entrywise_norm(W, p), jnp.linalg.norm(W)
    ends = jnp.stack([W.shape[0] ** (2 / p - 1) * euclidean, euclidean])
    low, high = jnp.where((p >= 2) ^ switched, ends, ends[::-1])
    return jnp.stack([low, norm]), jnp.stack([norm, high])
