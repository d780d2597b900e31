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
        rng: of the draws.
        count: models.
        p: words.
        t: entries of a word.
        d_q: entries of queries and keys.
        d_v: entries of values.
        d: hidden units.
        size: deviation of the entries of queries and keys.
        rows: of the query and key matrices, those beyond d_q zero; gradient and Newton steps keep
            them so. Logits are divided by sqrt(rows) then. All d_q when None.

    Returns:
        Models, stacked.

    Raises:
        UserError: if there are fewer rows than d_q.

    Examples:
        >>> models = gaussian_self_attention(np.random.default_rng(0), 5, 3, 2, 1, 2, 4, rows=3)
        >>> models.W_Q.shape, models.W1.shape, float(abs(models.W_Q[:, 1:]).max())
        ((5, 3, 2), (5, 6, 4), 0.0)
    """
    whole = d_q if rows is None else rows
    if whole < d_q:
        raise UserError(f"rows = {rows} for d_q = {d_q}: give at least as many")
    drawn = []
    for _ in range(count):
        queries = np.zeros((2, whole, t))
        queries[:, :d_q] = size * rng.standard_normal((2, d_q, t))
        W_V = rng.standard_normal((d_v, t))
        W1 = np.sqrt(6 / (p * d_v)) * rng.standard_normal((d_v * p, d))
        drawn.append((*queries, W_V, W1, rng.choice([-1.0, 1.0], d) / np.sqrt(d)))
    parts = [on_device(np.stack(each)) for each in zip(*drawn, strict=True)]
    return jax.vmap(lambda *own: SelfAttentionMLP(*own[:5], b2=own[5]))(
        *parts, jnp.asarray(np.zeros(count))
    )


def tempered_output(
    model: SelfAttentionMLP, x: Float[Array, "t p"], factor: Float[Array, ""]
) -> Float[Array, ""]:
    """The output with logits times a factor, the inverse of a temperature.

    Args:
        model: the network.
        x: one input, a column per word.
        factor: of the logits.

    Returns:
        The output.

    Examples:
        >>> model = gaussian_self_attention(np.random.default_rng(0), 1, 3, 2, 1, 2, 4)
        >>> one = jax.tree.map(lambda a: a[0], model)
        >>> x = jnp.ones((2, 3))  # equal words: no temperature changes their weights
        >>> bool(jnp.isclose(tempered_output(one, x, jnp.array(5.0)), one(x), rtol=1e-6))
        True
    """
    return eqx.tree_at(lambda m: m.W_Q, model, factor * model.W_Q)(x)
