"""Captured weights in canonical form, and how far that form is from what the model computed."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from attlas.capture.captured_heads import CapturedHeads
from attlas.transformers.canonical import Attention
from attlas.transformers.forward import attention_logits


def canonical_attention(captured: CapturedHeads) -> Attention | None:
    """The heads of a layer as `attlas.transformers` has them, in float64.

    Returns:
        None where a matrix was not recognised, where queries, keys and values do not read the same
        rows, where one norm spans all heads, or where the logits are no product of both.
    """
    query, key, value = captured.query, captured.key, captured.value
    if (
        query is None
        or key is None
        or value is None
        or captured.W_O is None
        or captured.b_O is None
    ):
        return None
    alike = np.array_equal(query.x, key.x) and np.array_equal(key.x, value.x)
    joint = query.joint is not None or key.joint is not None
    if not alike or joint or not np.isfinite(captured.scale) or value.factor != 1:
        return None
    rotary = (query.rotary, key.rotary)
    if (rotary[0] is None) != (rotary[1] is None):
        return None
    common = max(query.group) + 1 == captured.heads and key.group == value.group
    if not common:
        return None
    with jax.enable_x64(True):
        matrices: dict[str, Any] = {
            "W_Q": jnp.asarray(query.W),
            "b_Q": jnp.asarray(query.b),
            "W_K": jnp.asarray(key.W),
            "b_K": jnp.asarray(key.b),
            "W_V": jnp.asarray(value.W),
            "b_V": jnp.asarray(value.b),
            "W_O": jnp.asarray(captured.W_O),
            "b_O": jnp.asarray(captured.b_O),
        }
        return Attention(
            **matrices,
            group=key.group,
            scale=captured.scale * query.factor * key.factor,
            causal=captured.causal,
            rotary=query.rotary,
            query_norm=query.norm,
            key_norm=key.norm,
            softcap=captured.softcap,
        )


def logit_residual(
    attention: Attention,
    x: Float[np.ndarray, "T d"],
    logits: Float[np.ndarray, "H T T"],
    allowed: Bool[np.ndarray, "H T T"],
) -> float:
    """Largest difference of the logits that canonical weights give from those of the model.

    Rows are compared up to a constant, which no softmax sees.

    Args:
        x: rows that the attention read.
        logits: logits that the model computed.
        allowed: False where masked.

    Returns:
        The difference over the largest logit.
    """
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf), jnp.float64), attention)
        ours = np.asarray(attention_logits(wide, jnp.asarray(x)))
    number = np.maximum(allowed.sum(axis=-1, keepdims=True), 1)
    sides = []
    for side in (ours, logits):
        seen = np.where(allowed, side, 0.0)
        sides.append(np.where(allowed, seen - seen.sum(axis=-1, keepdims=True) / number, 0.0))
    largest = np.abs(np.where(allowed, logits, 0.0)).max()
    return float(np.abs(sides[0] - sides[1]).max() / largest) if largest > 0 else 0.0
