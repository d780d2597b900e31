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


def slicing_residual(
    attention: Attention, fused_attention: Callable[[np.ndarray], np.ndarray], seed: int = 0
) -> float:
    r"""Difference between the sum over heads and the fused layer, on normal rows.

    $$\max_{ij}|\textstyle\sum_hP_h(XW_V+b_V)W_O+b_O-f(X)|_{ij}\,/\,\max_{ij}|f(X)|_{ij}$$

    Args:
        attention: heads of a layer.
        fused_attention: f, the layer's attention from the file's own matrices, (T, d) to (T, d).
        seed: of the rows.

    Returns:
        The residual in float64; of the order of its rounding where the slicing is right.
    """
    d = attention.W_Q.shape[1]
    x = np.random.default_rng(seed).normal(size=(_TOKENS, d))
    want = np.asarray(fused_attention(x), np.float64)
    with jax.enable_x64(True):
        wide = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), attention)
        found = np.asarray(_attention_of(wide, jnp.asarray(x)))
    return float(np.max(np.abs(found - want)) / np.max(np.abs(want)))


def prove_slicing(model: TrainedTransformer) -> Float[np.ndarray, " L"]:
    """The residual of every stored layer, or a refusal.

    Args:
        model: as `load_model` read it.

    Returns:
        The residuals.

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
    found = []
    for stored in range(max(model.stored_layer) + 1):
        index = model.stored_layer.index(stored)
        attention = model.stored_block(stored).attention
        whole = partial(fused_attention, index)
        residual = slicing_residual(attention, whole)
        if not residual <= LARGEST_RESIDUAL:
            suspect = _suspect(attention, whole)
            raise UserError(
                f"{model.name}: the heads of layer {index} do not add up to the layer (residual "
                f"{residual:.2g}, at most {LARGEST_RESIDUAL:.0e}): {suspect} is cut in "
                f"another way than '{model.architecture}' is read"
            )
        found.append(residual)
    return np.array(found)


def _suspect(attention: Attention, fused_attention: Callable[[np.ndarray], np.ndarray]) -> str:
    """The matrix which, cut in one of the usual wrong ways, would explain the file."""
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        blocks = jnp.asarray(getattr(attention, name))
        for cut in (*WRONG_CUTS.values(), _rolled_back):
            other = eqx.tree_at(lambda tree, name=name: getattr(tree, name), attention, cut(blocks))
            if slicing_residual(other, fused_attention) <= LARGEST_RESIDUAL:
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


WRONG_CUTS: dict[str, Callable[[Array], Array]] = {
    "rolled": _rolled,
    "transposed": _transposed,
    "interleaved": _interleaved,
}
"""The usual mistakes of slicing; each must be noticed."""


@eqx.filter_jit
def _attention_of(attention: Attention, x: Float[Array, "T d"]) -> Float[Array, "T d"]:
    return attended(attention, attention_weights(attention, x), x)
