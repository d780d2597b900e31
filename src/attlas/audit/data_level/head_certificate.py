r"""How much a head's output can change when its input does: certificates of all heads at once.

Row i of the output is the mean of the values under p_i. Its derivative has three parts: the
weights as they are, the i-th token through its query, and every token through its key.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attlas.audit.data_level.reduced_heads import ReducedHeads, head_maps, turned
from attlas.interop.canonical import Attention, Norm

# Squarings of a Gram matrix by which its largest eigenvalue is bounded; matrices of which it is
# then computed. The others are those whose bound is smaller.
_SQUARINGS, _EXACT = 3, 4


def local_certificate(
    attention: Attention, head: ReducedHeads, y: Float[Array, "T r"], seen: Bool[Array, "T T"]
) -> Float[Array, ""]:
    r"""Upper bound on the norm of one head's Jacobian at its tokens.

    $$\|J\|\le\|V\|\|P\|_2+\max_i\|VC_iA_i^\top\|
    +\sqrt{\max_j\textstyle\sum_iP_{ij}}\;\max_i\|VC_iV^\top\|^{1/2}\max_j|u_{ij}|$$

    C_i is the covariance of values and keys under p_i, and u_ij the gradient of logit ij in the
    j-th token; without rotation and norm of the keys it is the same for all j.

    Args:
        attention: scale, rotation and norms of the layer.
        head: one entry of `ReducedHeads`.
        y: tokens in its coordinates.
        seen: which tokens each token sees; every row at least one.

    Returns:
        The bound, up to rounding.
    """
    queries, keys, P = head_maps(attention, head, y, seen)
    values = y @ head.W_V
    asked = _derivative(attention, attention.query_norm, y @ head.W_Q + head.b_Q[None])
    shown = _derivative(attention, attention.key_norm, y @ head.W_K + head.b_K[None])
    from_mean = values[None] - (P @ values)[:, None]  # i, j, v
    weighted = P[:, :, None] * from_mean
    crossed = attention.scale * jnp.einsum("ijv,jk->ivk", weighted, keys)
    R_Q, R_K = (jnp.linalg.qr(W)[1] for W in (head.W_Q, head.W_K))
    by_query = jnp.einsum("ivk,iak,ra->ivr", crossed, asked, R_Q)
    spread = jnp.einsum("ijv,ijw->ivw", weighted, from_mean)
    gradients = attention.scale * jnp.einsum("ra,jak,ik->ijr", R_K, shown, queries)
    longest = jnp.max(jnp.where(seen, jnp.linalg.norm(gradients, axis=-1), 0), axis=1)
    through = jnp.linalg.norm(head.W_V, 2) * jnp.linalg.norm(P, 2)
    # The spread is positive semidefinite: its norm times |u|^2 is that of the scaled matrix.
    by_key = jnp.sqrt(_largest_norm(longest[:, None, None] ** 2 * spread))
    return through + _largest_norm(by_query) + jnp.sqrt(jnp.max(jnp.sum(P, axis=0))) * by_key


def ball_certificate(
    attention: Attention, head: ReducedHeads, n: int, radius: float | Array
) -> Float[Array, ""]:
    r"""Upper bound on the norm of one head's Jacobian wherever n tokens lie in a ball.

    $$\|J\|\le\|V\|\big[\sqrt n\,(1+R(\alpha R+a))+R(\alpha R+c)\big]$$

    with alpha the largest norm of the query-key product, a and c those of the gradients that the
    biases add to keys and queries, each over all relative positions. c is 0 without rotation:
    what a logit has from the query alone, every logit of its row has.

    Args:
        attention: scale, rotation and norms of the layer.
        head: one entry of `ReducedHeads`.
        n: number of tokens.
        radius: R, which no token exceeds in norm.

    Returns:
        The bound, up to rounding; NaN where queries or keys are normalised, whose derivative has
        no bound on a ball.
    """
    alpha, a, c = logit_sizes(attention, head, n)[:3]
    c = c if attention.rotary is not None else jnp.zeros_like(c)
    value = jnp.linalg.norm(head.W_V, 2)
    keys, queries = radius * (alpha * radius + a), radius * (alpha * radius + c)
    found = value * (jnp.sqrt(jnp.asarray(n, value.dtype)) * (1 + keys) + queries)
    normalised = attention.query_norm is not None or attention.key_norm is not None
    return jnp.full_like(found, jnp.nan) if normalised else found


def logit_sizes(
    attention: Attention, head: ReducedHeads, n: int
) -> tuple[Float[Array, ""], Float[Array, ""], Float[Array, ""], Float[Array, ""]]:
    r"""Largest parts of a logit over the relative positions of n tokens.

    $$x_i'A_mx_j+a_m'x_j+c_m'x_i+e_m,\qquad m=i-j$$

    Args:
        attention: scale and rotation of the layer; norms of queries and keys do not count.
        head: one entry of `ReducedHeads`.
        n: number of tokens.

    Returns:
        max_m of ||A_m||, |a_m|, |c_m|, |e_m|.
    """
    R_Q, R_K = (jnp.linalg.qr(W)[1] for W in (head.W_Q, head.W_K))
    size = head.W_Q.shape[-1]
    turns = jnp.eye(size, dtype=R_Q.dtype)[None]
    if attention.rotary is not None:
        every = jnp.broadcast_to(turns[0][:, None], (size, n, size))
        turns = jnp.swapaxes(jax.vmap(lambda h: turned(attention, None, h))(every), 0, 1)
        if not attention.causal:
            turns = jnp.concatenate([turns, jnp.swapaxes(turns, -1, -2)])

    cores = jnp.einsum("ra,mab,sb->mrs", R_Q, turns, R_K)
    from_query = jnp.einsum("a,mab,sb->ms", head.b_Q, turns, R_K)
    from_key = jnp.einsum("ra,mab,b->mr", R_Q, turns, head.b_K)
    alone = jnp.einsum("a,mab,b->m", head.b_Q, turns, head.b_K)
    sizes = (
        _largest_norm(cores),
        jnp.max(jnp.linalg.norm(from_query, axis=1)),
        jnp.max(jnp.linalg.norm(from_key, axis=1)),
        jnp.max(jnp.abs(alone)),
    )
    return jax.tree.map(lambda each: attention.scale * each, sizes)


def _derivative(
    attention: Attention, norm: Norm | None, h: Float[Array, "T k"]
) -> Float[Array, "T k k"]:
    """Of each token's turned query or key; row a belongs to coordinate a of h."""
    function: Callable[[Array], Array] = lambda h: turned(attention, norm, h)
    along = jnp.eye(h.shape[1], dtype=h.dtype)
    tangents = jnp.broadcast_to(along[:, None], (h.shape[1], *h.shape))
    found = jax.vmap(lambda tangent: jax.jvp(function, (h,), (tangent,))[1])(tangents)
    return jnp.swapaxes(found, 0, 1)


def _largest_norm(matrices: Float[Array, "T a b"]) -> Float[Array, ""]:
    r"""An upper bound on the largest spectral norm of many matrices, nearly always equal to it.

    The trace of the 2^s-th power of a Gram matrix bounds its largest eigenvalue to the 2^s. The
    few matrices of largest bound get their norms, and the next one's bound covers the rest.
    """
    gram = jnp.einsum("tab,tac->tbc", matrices, matrices)
    size = jnp.trace(gram, axis1=1, axis2=2)
    unit = gram / jnp.where(size > 0, size, 1)[:, None, None]
    for _ in range(_SQUARINGS):
        unit = unit @ unit
    power = jnp.trace(unit, axis1=1, axis2=2)
    upper = jnp.sqrt(size * jnp.maximum(power, 0) ** (0.5**_SQUARINGS))
    bounds, places = jax.lax.top_k(upper, min(_EXACT + 1, len(matrices)))
    exact = jnp.sqrt(jnp.max(jnp.linalg.eigvalsh(gram[places[:_EXACT]]), axis=1, initial=0.0))
    return jnp.maximum(jnp.max(exact), jnp.max(bounds[_EXACT:], initial=0.0))
