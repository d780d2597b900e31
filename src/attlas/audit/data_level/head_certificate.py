r"""How much a head's output can change when its tokens do: the certificate of a reduced head."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attlas.audit.data_level.reduced_heads import ReducedHeads, head_maps, turned
from attlas.bounds.attention.local_lipschitz import local_lipschitz
from attlas.norms.matrix import spectral_norm
from attlas.transformers.canonical import Attention

SQUARINGS = 8
"""Norms of covariances come from the 256th power: too large by at most a factor k^{1/512}."""


def local_certificate(
    attention: Attention, head: ReducedHeads, y: Float[Array, "T r"], seen: Bool[Array, "T T"]
) -> Float[Array, ""]:
    """Upper bound on the norm of one head's Jacobian at its tokens, see `local_lipschitz`.

    Args:
        attention: scale, rotation and norms of the layer.
        seen: True where the row's token sees the column's; at least one per row.
    """
    queries, keys, weights = head_maps(attention, head, y, seen)
    plain = attention.rotary is None
    query_maps = key_maps = None
    if not plain or attention.query_norm is not None:
        query_rows = y @ head.W_Q + head.b_Q[None]
        query_maps = _derivatives(lambda h: turned(attention, attention.query_norm, h), query_rows)
    if not plain or attention.key_norm is not None:
        key_rows = y @ head.W_K + head.b_K[None]
        key_maps = _derivatives(lambda h: turned(attention, attention.key_norm, h), key_rows)
    bound = local_lipschitz(
        weights,
        queries,
        keys,
        y @ head.W_V,
        head.W_Q,
        head.W_K,
        head.W_V,
        jnp.eye(head.W_V.shape[1], dtype=y.dtype),
        attention.scale,
        query_maps,
        key_maps,
        SQUARINGS,
    )
    if attention.softcap is not None:
        rest = query_maps, attention.scale
        bound = bound._replace(by_queries=_capped(weights, y @ head.W_V, keys, head.W_Q, *rest))
    return bound.total


def _capped(
    weights: Array, values: Array, keys: Array, W_Q: Array, query_maps: Array | None, scale: float
) -> Array:
    """max_i sum_j p_ij |v_j - o_i| |w_ij|, which holds whatever slopes of at most 1 a cap has.

    Slopes take the mean of v_j - o_i away from zero, so that no covariance bounds the part of the
    queries. The part of the keys bounds each slope by 1 already.
    """
    n, eps = weights.shape[0], float(jnp.finfo(weights.dtype).eps)
    loss = (2 * n + 4 * max(W_Q.shape[1], values.shape[1]) + 64) * eps
    longest = jnp.max(jnp.linalg.norm(values, axis=-1))
    away = jnp.linalg.norm(values[None] - (weights @ values)[:, None], axis=-1) + loss * longest
    sums = jnp.sum(weights * away * jnp.linalg.norm(keys, axis=-1)[None], axis=1)
    turned_by = 1.0 if query_maps is None else spectral_norm(query_maps, upper=True)
    return scale * spectral_norm(W_Q, upper=True) * jnp.max(turned_by * sums) * (1 + loss)


def _derivatives(
    function: Callable[[Array], Array], h: Float[Array, "T k"]
) -> Float[Array, "T k k"]:
    """Jacobian of each row of a function that acts on each row alone."""
    along = jnp.eye(h.shape[1], dtype=h.dtype)
    tangents = jnp.broadcast_to(along[:, None], (h.shape[1], *h.shape))
    derivatives = jax.vmap(lambda tangent: jax.jvp(function, (h,), (tangent,))[1])(tangents)
    return jnp.transpose(derivatives, (1, 2, 0))
