"""Gaussian weights of the self-attention model, drawn on the host: teachers, and many starts."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.device_arrays import on_device
from attlas.core.errors import UserError
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP


def gaussian_self_attention(
    rng: np.random.Generator,
    count: int,
    p: int,
    t: int,
    d_q: int,
    d_v: int,
    d: int,
    *,
    size: float = 1.0,
    rows: int | None = None,
) -> SelfAttentionMLP:
    r"""Models with an output bias of zero, whose hidden units and outputs are of order one.

    Args:
        size: deviation of the entries of queries and keys.
        rows: number of rows of the query and key matrices; those beyond d_q are zero, and gradient
            and Newton steps keep them so. Logits are then divided by sqrt(rows). d_q when None.

    Examples:
        >>> models = gaussian_self_attention(np.random.default_rng(0), 5, 3, 2, 1, 2, 4, rows=3)
        >>> models.W_Q.shape, models.W1.shape, float(abs(models.W_Q[:, 1:]).max())
        ((5, 3, 2), (5, 6, 4), 0.0)
    """
    row_count = d_q if rows is None else rows
    if row_count < d_q:
        raise UserError(f"rows = {rows} for d_q = {d_q}: give at least as many")
    weights = []
    for _ in range(count):
        queries = np.zeros((2, row_count, t))
        queries[:, :d_q] = size * rng.standard_normal((2, d_q, t))
        W_V = rng.standard_normal((d_v, t))
        W1 = np.sqrt(6 / (p * d_v)) * rng.standard_normal((d_v * p, d))
        weights.append((*queries, W_V, W1, rng.choice([-1.0, 1.0], d) / np.sqrt(d)))
    arrays = [on_device(np.stack(stack)) for stack in zip(*weights, strict=True)]
    return jax.vmap(lambda *matrices: SelfAttentionMLP(*matrices[:5], b2=matrices[5]))(
        *arrays, jnp.asarray(np.zeros(count))
    )


def tempered_output(
    model: SelfAttentionMLP, x: Float[Array, "t p"], factor: Float[Array, ""]
) -> Float[Array, ""]:
    """The output with logits times a factor, the inverse of a temperature.

    Args:
        factor: the logits are multiplied by it: an inverse temperature.

    Examples:
        >>> model = gaussian_self_attention(np.random.default_rng(0), 1, 3, 2, 1, 2, 4)
        >>> one = jax.tree.map(lambda a: a[0], model)
        >>> x = jnp.ones((2, 3))  # equal words: no temperature changes their weights
        >>> bool(jnp.isclose(tempered_output(one, x, jnp.array(5.0)), one(x), rtol=1e-6))
        True
    """
    return eqx.tree_at(lambda m: m.W_Q, model, factor * model.W_Q)(x)
