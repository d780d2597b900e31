r"""Section 4.2: the complexity of one layer is linear in its number of heads, by enumeration.

Each head is s relu(v' X' softmax(X M x_1)), s = 1 or -1, v one of the vectors e_j and -e_j, M one
of two matrices: sixteen functions, every triple of them, every sign vector.
"""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.trauger2023sequence.single_layer_instances import small_sequences
from attlas.core.claim import Control, Source
from attlas.core.statement import identity

_M, _HEADS = 6, 3
# The last sign is fixed: a class that holds f and -f has the same supremum at -sigma.
_SIGNS = np.array(list(itertools.product((1.0, -1.0), repeat=_M - 1)))
_ALL = np.concatenate([_SIGNS, np.ones((len(_SIGNS), 1))], axis=1)


def _correlations(X, M):
    """<sigma, f> of the sixteen functions of one head (rows) at every sign vector (columns)."""
    logits = jnp.einsum("mtd,kde,me->kmt", X, M, X[:, 0])
    pooled = jnp.einsum("kmt,mtd->kdm", jax.nn.softmax(logits, axis=-1), X).reshape(-1, _M)
    half = jax.nn.relu(jnp.concatenate([pooled, -pooled]))
    return jnp.concatenate([half, -half]) @ jnp.asarray(_ALL.T, X.dtype)


@identity(
    "Section 4.2",
    Source.FOUND,
    sample=partial(small_sequences, m=_M, matrices=2),
    count=32,
    controls=[
        Control("the root of $H$", factor=_HEADS**0.5),
        Control("one head", factor=1.0),
    ],
)
def section_4_2_heads(X, M, *, factor=float(_HEADS)):
    r"""$$\mathbb{E} \sup_{Y_1,\dots,Y_H} \sum_{i=1}^m \epsilon_i w^\top \sum_{j=1}^H Y_j(X_i) =
    H\, \mathbb{E} \sup_{Y} \sum_{i=1}^m \epsilon_i w^\top Y(X_i)$$

    $H = 3$, all triples of heads. An equality, no bound: averaged instead of summed, heads would
    cost nothing. That $w$ is shared costs nothing either, as every column of each $W_c$ is free:
    the supremum of a head is the same at every entry of $w$.
    """
    one = _correlations(X, M)
    triples = one[:, None, None] + one[None, :, None] + one[None, None, :]
    left = jnp.mean(jnp.max(triples, axis=(0, 1, 2)))
    return left / _M, factor * jnp.mean(jnp.max(one, axis=0)) / _M
