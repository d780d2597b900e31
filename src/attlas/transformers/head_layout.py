r"""Proof, on every run, that the matrices of the heads are those of the layer.

A head that was cut wrongly out of a fused or transposed matrix has plausible norms. So the sum over
heads is compared with the layer's attention as the file's own matrices give it, which goes through
none of the cutting.
"""

from collections.abc import Callable
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.transformers.canonical import Attention
from attlas.transformers.forward import attended, attention_weights
from attlas.transformers.trained_transformer import TrainedTransformer

LARGEST_RESIDUAL = 1e-10
_TOKENS = 6


def head_layout_residual(
    attention: Attention, fused_attention: Callable[[np.ndarray], np.ndarray], seed: int = 0
) -> float:
    r"""Difference between the sum over heads and the fused layer, on normal inputs.

    $$\max_{ij}|\textstyle\sum_hP_h(XW_V+b_V)W_O+b_O-f(X)|_{ij}\,/\,\max_{ij}|f(X)|_{ij}$$

    Args:
        fused_attention: f, the layer's attention from the file's own matrices, (T, d) to (T, d).

    Returns:
        The residual in float64; of the order of its rounding where the slicing is right.
    """
    d = attention.W_Q.shape[1]
    x = np.random.default_rng(seed).normal(size=(_TOKENS, d))
    fused = np.asarray(fused_attention(x), np.float64)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), attention)
        by_heads = np.asarray(_attention_of(wide, jnp.asarray(x)))
    return float(np.max(np.abs(by_heads - fused)) / np.max(np.abs(fused)))


def check_head_layout(model: TrainedTransformer) -> Float[np.ndarray, " L"]:
    """The residual of every stored layer, or a refusal.

    Raises:
        UserError: if one exceeds 1e-10, naming the layer and the matrix that is at fault where
            cutting it in another way mends it; or if the model was not read from a file's matrices.
    """
    fused_attention = model.fused_attention
    if fused_attention is None:
        raise UserError(
            f"{model.name} was not read from a file or a module: there is nothing to compare its "
            "heads with"
        )
    residuals = []
    for stored in range(max(model.stored_layer) + 1):
        index = model.stored_layer.index(stored)
        attention = model.stored_block(stored).attention
        fused = partial(fused_attention, index)
        residual = head_layout_residual(attention, fused)
        if not residual <= LARGEST_RESIDUAL:
            suspect = _suspect(attention, fused)
            raise UserError(
                f"{model.name}: the heads of layer {index} do not add up to the layer (residual "
                f"{residual:.2g}, at most {LARGEST_RESIDUAL:.0e}): {suspect} is cut in "
                f"another way than '{model.architecture}' is read"
            )
        residuals.append(residual)
    return np.array(residuals)


def _suspect(attention: Attention, fused_attention: Callable[[np.ndarray], np.ndarray]) -> str:
    """The matrix which, cut in one of the usual wrong ways, would explain the file."""
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        blocks = jnp.asarray(getattr(attention, name))
        for cut in (*WRONG_LAYOUTS.values(), _rolled_back):
            rearranged = eqx.tree_at(
                lambda tree, name=name: getattr(tree, name), attention, cut(blocks)
            )
            if head_layout_residual(rearranged, fused_attention) <= LARGEST_RESIDUAL:
                return name
    return "one of W_Q, W_K, W_V, W_O"


def _rolled(blocks: Array) -> Array:
    """Every head has its neighbour's matrix."""
    return jnp.roll(blocks, 1, axis=0)


def _rolled_back(blocks: Array) -> Array:
    """Every head has its other neighbour's matrix."""
    return jnp.roll(blocks, -1, axis=0)


def _transposed(blocks: Array) -> Array:
    """Inputs read as outputs, with the numbers in their places."""
    return jnp.swapaxes(blocks, 1, 2).reshape(blocks.shape)


def _interleaved(blocks: Array) -> Array:
    """Coordinate by coordinate across heads in place of head by head."""
    heads, rows, columns = blocks.shape
    if rows > columns:
        return blocks.transpose(1, 2, 0).reshape(rows, heads, columns).transpose(1, 0, 2)
    return blocks.transpose(1, 0, 2).reshape(heads, rows, columns)


WRONG_LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "rolled": _rolled,
    "transposed": _transposed,
    "interleaved": _interleaved,
}
"""The usual mistakes of slicing; each must be noticed."""


@eqx.filter_jit
def _attention_of(attention: Attention, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    return attended(attention, attention_weights(attention, x), x)
