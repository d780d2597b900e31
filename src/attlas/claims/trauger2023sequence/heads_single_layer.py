r"""Section 4.2: the complexity of one layer is linear in its number of heads, by enumeration.

Each head is s relu(v' X' softmax(X M x_1)), s = 1 or -1, v one of the vectors e_j and -e_j, M one
of two matrices: sixteen functions, every triple of them, every sign vector.
"""

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.trauger2023sequence.single_layer_instances import small_sequences
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "trauger2023sequence"
_M, _HEADS = 6, 3
# The last sign is fixed: a class that holds f and -f has the same supremum at -sigma.
_SIGNS = np.array(list(itertools.product((1.0, -1.0), repeat=_M - 1)))
_ALL = np.concatenate([_SIGNS, np.ones((len(_SIGNS), 1))], axis=1)


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    return small_sequences(key, count, _M, 2)


def _correlations(instance: Instance) -> Array:
    """<sigma, f> of the sixteen functions of one head (rows) at every sign vector (columns)."""
    X, M = instance["X"], instance["M"]
    logits = jnp.einsum("mtd,kde,me->kmt", X, M, X[:, 0])
    pooled = jnp.einsum("kmt,mtd->kdm", jax.nn.softmax(logits, axis=-1), X).reshape(-1, _M)
    half = jax.nn.relu(jnp.concatenate([pooled, -pooled]))
    return jnp.concatenate([half, -half]) @ jnp.asarray(_ALL.T, X.dtype)


def _heads(instance: Instance, factor: float = float(_HEADS)) -> Sides:
    one = _correlations(instance)
    triples = one[:, None, None] + one[None, :, None] + one[None, None, :]
    left = jnp.mean(jnp.max(triples, axis=(0, 1, 2)))
    return Sides(left / _M, factor * jnp.mean(jnp.max(one, axis=0)) / _M)


_COMMON: dict[str, Any] = {"paper": _PAPER, "instances": _instances, "terms": 64, "count": 32}

HEADS = Claim(
    name=f"{_PAPER}/section-4-2-heads",
    locator="Section 4.2",
    statement=(
        r"\mathbb{E} \sup_{Y_1,\dots,Y_H} \sum_{i=1}^m \epsilon_i w^\top \sum_{j=1}^H Y_j(X_i) ="
        r"H\, \mathbb{E} \sup_{Y} \sum_{i=1}^m \epsilon_i w^\top Y(X_i)"
    ),
    kind=Kind.IDENTITY,
    status=Status.AS_PRINTED,
    provenance=Provenance.FOUND,
    sides=_heads,
    control=(
        Control("the root of H", lambda i: _heads(i, factor=_HEADS**0.5)),
        Control("one head", lambda i: _heads(i, factor=1.0)),
    ),
    note=(
        "H = 3, all triples of heads. An equality, no bound: averaged instead of summed, heads "
        "would cost nothing. That w is shared costs nothing either, as every column of each W_c "
        "is free: the supremum of a head is the same at every entry of w."
    ),
    **_COMMON,
)
