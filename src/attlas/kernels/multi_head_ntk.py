r"""Neural tangent kernel of the multi-head model in closed form.

K_ij = <nabla Phi(X_i), nabla Phi(X_j)> with the gradients of Lemma 1 of deora2023optimization,
summed over blocks of heads by BLAS, so that the Jacobian of all samples is never held.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.linalg import blas

from attlas.core.arrays import (
    ArrayInput,
    own_precision,
    read_arrays,
    working_dtype,
)
from attlas.core.axis_sizes import Shape
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.finite import finite_result
from attlas.core.memory import require_memory
from attlas.kernels._blocks.gram_tiles import GramShape, GramTiles, plan_tiles, ranges
from attlas.kernels._blocks.head_features import (
    HeadBlock,
    feature_widths,
    head_block,
    scratch_width,
    write_features,
)
from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.models.attention.multi_head_derivatives import model_gradient


@refuse_misfits
def ntk_features(model: MultiHead, X: ArrayInput) -> Float[Array, "n P"]:
    r"""The gradients nabla Phi(X_i) as rows: for models whose Jacobian fits the memory.

    Args:
        X: samples, (n, T, d), computed in the model's type.

    Returns:
        One row per sample, parameters in the order ravel(U), ravel(W).

    Examples:
        >>> model = MultiHead(jnp.array([[3.0]]), jnp.array([[[0.0]]]), Decoder.LAST)
        >>> ntk_features(model, jnp.array([[[0.0], [2.0]]])).tolist()
        [[1.0, 6.0]]
    """
    arrays = {"model.W": model.W, "model.U": model.U, "X": X}
    with own_precision("H d d, H *t d, n T d", **arrays) as (W, U, samples):
        _check_samples("X", samples.shape, U.shape, W.shape, model.decoder)
        size = U.dtype.itemsize * len(samples) * (U.size + W.size)
        instead = "give fewer samples, or use ntk_gram"
        require_memory(size, "the features", instead, on_device=True)
        dtype = getattr(model.U, "dtype", U.dtype)
        network = MultiHead(U.astype(dtype), W.astype(dtype), model.decoder)

        def row(tokens: Float[Array, "T d"]) -> Float[Array, " P"]:
            gradient = model_gradient(network, tokens)
            return jnp.concatenate([jnp.ravel(gradient.U), jnp.ravel(gradient.W)])

        return jax.vmap(row)(samples.astype(dtype))


@refuse_misfits
def ntk_gram(
    model: MultiHead, X: ArrayInput, Z: ArrayInput | None = None, *, memory: int = 2**28
) -> np.ndarray:
    r"""Gram matrix K_ij = <nabla_theta Phi(X_i), nabla_theta Phi(Z_j)> in closed form.

    Summed over blocks of heads, K = (1/H) sum_h F_h F_h', with all parameters trained. Without Z
    only one triangle is computed. With more samples than the budget allows, tile by tile.

    Args:
        X: samples (n, T, d); lists, or an array of NumPy, JAX or torch, as Z.
        Z: samples (m, T, d) of the columns; X itself when None.
        memory: bytes for working arrays, beyond inputs, output and the few MB that BLAS and
            NumPy themselves hold.

    Returns:
        K in the widest type of model and samples, float32 or float64, (n, n) or (n, m).

    A `UserError` names samples that cannot be read or do not fit the model, or a budget that
    holds no tile.

    Examples:
        >>> model = MultiHead(jnp.array([[3.0]]), jnp.array([[[0.0]]]), Decoder.LAST)
        >>> ntk_gram(model, np.array([[[0.0], [2.0]], [[2.0], [2.0]]])).tolist()
        [[37.0, 2.0], [2.0, 4.0]]
    """
    inputs = {"model.W": model.W, "model.U": model.U, "X": X, "Z": X if Z is None else Z}
    W, U, rows, columns = read_arrays("H d d, H *t d, n T d, n2 T2 d", **inputs)
    # BLAS knows no narrower type than float32.
    dtype = working_dtype("float32", *(array.dtype for array in (U, W, rows, columns)))
    _check_samples("X", rows.shape, U.shape, W.shape, model.decoder)
    _check_samples("Z", columns.shape, U.shape, W.shape, model.decoder)
    size = dtype.itemsize * len(rows) * len(columns)
    require_memory(size, f"the Gram matrix of {len(rows)} samples", "give fewer")
    U, W, rows = U.astype(dtype, copy=False), W.astype(dtype, copy=False), _as(rows, dtype)
    columns = None if Z is None else _as(columns, dtype)
    tiles = plan_tiles(_gram_shape(model.decoder, (U, W), rows, columns), memory)
    gram = np.zeros((len(rows), len(rows if columns is None else columns)), dtype)
    if tiles.samples >= max(gram.shape):
        _add_heads(model.decoder, (U, W), tiles, (rows, columns), gram)
        return finite_result(gram, "the Gram matrix", "U, W or the samples")
    for i in ranges(gram.shape[0], tiles.samples):
        for j in ranges(gram.shape[1], tiles.samples):
            if columns is None and j.start < i.start:
                continue
            tile = np.zeros_like(gram[i, j], order="C")
            second = columns[j] if columns is not None else rows[j] if i != j else None
            _add_heads(model.decoder, (U, W), tiles, (rows[i], second), tile)
            gram[i, j] = tile
            if columns is None:
                gram[j, i] = tile.T
    return finite_result(gram, "the Gram matrix", "U, W or the samples")


def _gram_shape(
    decoder: Decoder,
    parameters: tuple[np.ndarray, np.ndarray],
    rows: np.ndarray,
    columns: np.ndarray | None,
) -> GramShape:
    U, W = parameters
    T, d = max(s.shape[1] for s in (rows, columns) if s is not None), W.shape[1]
    u, w = feature_widths(decoder, T, d)
    return GramShape(
        rows=len(rows),
        columns=len(rows if columns is None else columns),
        symmetric=columns is None,
        heads=len(W),
        widths=(u, w) if decoder is Decoder.LAST else (u + w,),
        scratch=scratch_width(decoder, T, d),
        parameters=d * d + U[0].size,
        itemsize=rows.dtype.itemsize,
    )


def _as(samples: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The samples in one type, contiguous: nothing is copied that has both already."""
    return np.ascontiguousarray(samples, dtype)


def _check_samples(name: str, shape: Shape, U: Shape, W: Shape, decoder: Decoder) -> None:
    """Check that the samples [n, T, d] and the decoders fit the model."""
    full = decoder is Decoder.FULL
    _, T, d = shape
    if W[1:] != (d, d):
        raise UserError(
            f"{name} has tokens of dimension {d} but the model reads {W[1]}: make them the same"
        )
    if len(U) != 2 + full:
        raise UserError(f"model.U has shape {U}: {decoder} reads {'[H T d]' if full else '[H d]'}")
    if full and U[1] != T:
        raise UserError(
            f"{name} has {T} tokens but the model's decoder reads {U[1]}: make them the same"
        )


def _add_heads(
    decoder: Decoder,
    parameters: tuple[np.ndarray, np.ndarray],
    tiles: GramTiles,
    samples: tuple[np.ndarray, np.ndarray | None],
    gram: np.ndarray,
) -> None:
    """Adds one tile's Gram matrix over all heads; without second samples it is symmetric."""
    (U, W), (rows, columns) = parameters, samples
    rank_one = decoder is Decoder.LAST
    grams = [gram, np.zeros_like(gram)] if rank_one else [gram]
    stores = [
        None if tokens is None else _FeatureStore(decoder, tokens, tiles)
        for tokens in (rows, columns)
    ]
    for heads in tiles.blocks(len(W)):
        block = head_block(U[heads], W[heads], decoder)
        left, right = (None if store is None else store.fill(block) for store in stores)
        assert left is not None
        for k, part in enumerate(grams):
            _add_product(part, left[k], None if right is None else right[k], len(W))
    if rank_one:
        last = rows[:, -1] @ (rows if columns is None else columns)[:, -1].T
        grams[1] *= last
        gram += grams[1]
    if columns is None:
        _mirror(gram)


class _FeatureStore:
    """One buffer for the features of a tile, used again for every block of heads."""

    def __init__(self, decoder: Decoder, samples: np.ndarray, tiles: GramTiles) -> None:
        n, T, d = samples.shape
        self.samples, self.chunk = samples, tiles.chunk
        self.widths = feature_widths(decoder, T, d)
        self.apart = decoder is Decoder.LAST
        self.buffer = np.empty(n * tiles.heads * sum(self.widths), samples.dtype)

    def fill(self, block: HeadBlock) -> list[np.ndarray]:
        """The features of a block, one matrix for each Gram matrix that is accumulated."""
        n, (u, w) = len(self.samples), (block.heads * width for width in self.widths)
        used = self.buffer[: n * (u + w)]
        if self.apart:
            features = [used[: n * u].reshape(n, u), used[n * u :].reshape(n, w)]
            u_all, w_all = features
        else:
            features = [used.reshape(n, u + w)]
            u_all, w_all = features[0][:, :u], features[0][:, u:]
        for chunk in ranges(n, self.chunk):
            write_features(block, self.samples[chunk], u_all[chunk], w_all[chunk])
        return features


def _add_product(gram: np.ndarray, left: np.ndarray, right: np.ndarray | None, heads: int) -> None:
    """Adds left right' / H in place; without right only the upper triangle of left left'.

    BLAS reads columns first: it sees the transposes of these arrays, which cost nothing.
    """
    if right is None:
        (rank_k,) = blas.get_blas_funcs(("syrk",), (left,))
        rank_k(1 / heads, left.T, beta=1.0, c=gram.T, trans=1, lower=1, overwrite_c=1)
    else:
        (multiply,) = blas.get_blas_funcs(("gemm",), (left,))
        multiply(1 / heads, right.T, left.T, beta=1.0, c=gram.T, trans_a=1, overwrite_c=1)


def _mirror(gram: np.ndarray, block: int = 64) -> None:
    """Copies the upper triangle into the empty lower one, by blocks: no second matrix is held."""
    for i in ranges(len(gram), block):
        for j in ranges(i.start, block):
            gram[i, j] = gram[j, i].T
        gram[i, i] += np.triu(gram[i, i], 1).T
