"""Embeddings of bits whose tokens have Euclidean norm at most 1, as bounds with B_x = 1 require."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from attlas.core.errors import refuse_unreadable
from attlas.core.memory import require_memory
from attlas.core.ranges import require_at_least
from attlas.data.sparse_majority import BitEmbedding


def one_hot_bits(T: int, dtype: str = "float32") -> BitEmbedding:
    r"""Tokens $x_t=(e_t+s_te_T)/\sqrt2$ with a sign $s_t$ for the bit, and $[CLS]=e_{T+1}$.

    Returns:
        The embedding, of dimension T + 2.

    Examples:
        >>> one_hot_bits(2)(jnp.array([0, 1], jnp.int8)).tolist()[0][:3]
        [0.7071067690849304, 0.0, -0.7071067690849304]
    """
    require_at_least(1, T=T)
    require_memory(8 * T**2, f"an embedding of T = {T} tokens", "give fewer")
    d = T + 2
    eye, half = np.eye(d, dtype=dtype), np.dtype(dtype).type(math.sqrt(0.5))
    places = np.concatenate([half * eye[:T], np.zeros((1, d), dtype)])
    sign = half * eye[T]
    return BitEmbedding(*(jax.device_put(a) for a in (-sign, sign, eye[-1], places)))


@refuse_unreadable
def scaled_to_unit(embedding: BitEmbedding) -> BitEmbedding:
    """The embedding divided by the largest Euclidean norm of any content at any position.

    Returns:
        One with B_x at most 1; [CLS] is counted at all positions.

    Examples:
        >>> twice = jax.tree.map(lambda a: 2 * a, one_hot_bits(3))
        >>> tokens = scaled_to_unit(twice)(jnp.zeros(3, jnp.int8))
        >>> print(f"{float(jnp.linalg.norm(tokens, axis=1).max()):.4f}")
        0.8165
    """
    e = jax.tree.map(np.asarray, embedding)
    tokens = np.concatenate([*(e.positions + c for c in (e.zero, e.one, e.cls))])
    largest = np.linalg.norm(tokens, axis=1).max().astype(tokens.dtype)
    return jax.tree.map(lambda a: jnp.asarray(a / largest), embedding)
