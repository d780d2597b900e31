"""Attention as the libraries lay it out, in NumPy float64: the other side of the slicing proof.

Nothing here goes through the canonical form. Queries, keys and values of all heads are one matrix
each, as in the file; heads come apart by reshaping the projected rows.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attlas.transformers.stored_transformer import StoredTransformer
from attlas.transformers.trained_transformer import TrainedTransformer

_Tensors = Mapping[str, np.ndarray]


def apart(rows: np.ndarray, heads: int) -> np.ndarray:
    """Rows (T, heads k) of all heads side by side to one block per head, (heads, T, k).

    Examples:
        >>> apart(np.arange(4.0)[None], 2).tolist()
        [[[0.0, 1.0]], [[2.0, 3.0]]]
    """
    return rows.reshape(rows.shape[0], heads, -1).swapaxes(0, 1)


def turned(rows: np.ndarray, frequencies: np.ndarray, *, interleaved: bool = False) -> np.ndarray:
    """Queries or keys turned by their positions 0, 1, ...

    Args:
        rows: (heads, T, k).
        frequencies: angle per position of each pair.
        interleaved: pairs are neighbours; else a half is paired with the other half.

    Examples:
        >>> rows = np.array([[[1.0, 0.0], [1.0, 0.0]]])
        >>> turned(rows, np.array([np.pi / 2])).round(12).tolist()
        [[[1.0, 0.0], [0.0, 1.0]]]
    """
    size = 2 * frequencies.size
    angle = np.arange(rows.shape[1])[:, None] * frequencies
    paired, still = rows[..., :size], rows[..., size:]
    if interleaved:
        # As complex numbers, one per pair: llama2.c's layout.
        complex_rows = paired[..., 0::2] + 1j * paired[..., 1::2]
        spun = complex_rows * np.exp(1j * angle)
        rotated = np.stack([spun.real, spun.imag], axis=-1).reshape(paired.shape)
    else:
        doubled = np.concatenate([angle, angle], axis=-1)
        half = size // 2
        partner = np.concatenate([-paired[..., half:], paired[..., :half]], axis=-1)
        rotated = paired * np.cos(doubled) + partner * np.sin(doubled)
    return np.concatenate([rotated, still], axis=-1)


def mixed_values(
    queries: np.ndarray,
    keys: np.ndarray,
    values: np.ndarray,
    *,
    scale: float,
    causal: bool = True,
    window: int | None = None,
    softcap: float | None = None,
    relative: np.ndarray | None = None,
) -> np.ndarray:
    """Values of the tokens that each token sees, averaged by the softmax, heads side by side.

    Args:
        queries: (heads, T, k).
        keys: (groups, T, k); a group serves heads / groups neighbours.
        values: (groups, T, v).
        scale: factor of the logits.
        causal: whether later tokens are hidden.
        window: tokens that a token sees to each side, itself among them; all when None.
        softcap: c of the logits c tanh(logits / c), or None.
        relative: (heads, distances), added by the key's place less the query's, or None.

    Returns:
        (T, heads v).

    Examples:
        >>> one = np.zeros((1, 2, 1))
        >>> mixed_values(one, one, np.array([[[1.0], [3.0]]]), scale=1.0).tolist()
        [[1.0], [2.0]]
    """
    shared = queries.shape[0] // keys.shape[0]
    keys, values = np.repeat(keys, shared, axis=0), np.repeat(values, shared, axis=0)
    logits = scale * queries @ keys.swapaxes(1, 2)
    T = queries.shape[1]
    hidden = np.zeros((T, T), dtype=bool)
    if causal:
        hidden |= np.triu(np.ones((T, T), dtype=bool), 1)
    if window is not None:
        hidden |= np.tril(np.ones((T, T), dtype=bool), -window)
        hidden |= np.triu(np.ones((T, T), dtype=bool), window)
    if softcap is not None:
        logits = softcap * np.tanh(logits / softcap)
    if relative is not None:
        reach = relative.shape[1] // 2
        for i, j in np.ndindex(T, T):
            logits[:, i, j] += relative[:, min(max(j - i, -reach), reach) + reach]
    logits = np.where(hidden, -np.inf, logits)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return (weights @ values).swapaxes(0, 1).reshape(T, -1)


def linear(
    stored: Mapping[str, np.ndarray],
    path: str,
    rows: np.ndarray,
    factors: np.ndarray | None = None,
) -> np.ndarray:
    """Rows through a map of the file whose matrix has outputs first.

    Args:
        path: prefix of the names of matrix and bias; the bias may be absent.
        factors: (outputs,), of each output; matrix and bias are multiplied in their own precision,
            as the model's are.

    Returns:
        (T, outputs), in float64.

    Examples:
        >>> linear({"q.weight": np.array([[1.0, 2.0]])}, "q", np.array([[3.0, 4.0]])).tolist()
        [[11.0]]
    """
    W, bias = stored[f"{path}.weight"], stored.get(f"{path}.bias")
    if factors is not None:
        factors = factors.astype(W.dtype)
        W, bias = factors[:, None] * W, None if bias is None else factors * bias
    outputs = rows @ W.astype(np.float64).T
    return outputs if bias is None else outputs + bias


def fused_heads(
    table: StoredTransformer, tensors: Mapping[str, np.ndarray], index: int, x: np.ndarray
) -> np.ndarray:
    """Attention whose queries, keys, values and output are four maps of the file, outputs first.

    Positions may be rotary, groups may share keys, heads may have norms, and the first three maps
    may be one, all queries before all keys before all values.

    Args:
        x: (T, d), the attention's input.

    Examples:
        Zero queries average the values.

        >>> from attlas.transformers.tensor_names import Names
        >>> names = Names(query="q", key="k", value="v", output="o")
        >>> table = StoredTransformer(
        ...     architecture="", names=names, layers=("",), width=1, heads=1, hidden=1, eps=1.0,
        ...     activation="gelu", norm_placement="pre-norm", biased=(), causal=False,
        ... )
        >>> maps = {f"{name}.weight": np.eye(1) for name in "kvo"} | {"q.weight": np.zeros((1, 1))}
        >>> fused_heads(table, maps, 0, np.array([[1.0], [3.0]])).tolist()
        [[2.0], [2.0]]
    """
    stored, names = table.stored(tensors), table.names
    rotary = None if table.rotaries is None else table.rotaries[index]
    layer = table.layers[index if table.order is None else table.order[index]]
    states, groups = np.asarray(x, np.float64), table.groups or table.heads
    inward = _inward(table, stored, layer, states)

    def prepared(rows: np.ndarray, norm: str, blocks: int) -> np.ndarray:
        projected = apart(rows, blocks)
        if norm:
            gain = stored[f"{layer}{norm}.weight"].astype(np.float64) + table.gain_shift
            size = np.sqrt(np.mean(projected**2, axis=-1, keepdims=True) + table.eps)
            projected = gain * projected / size
        if rotary is None:
            return projected
        return turned(projected, np.asarray(rotary.frequencies), interleaved=rotary.interleaved)

    queries = prepared(inward[0], names.query_norm, table.heads)
    mixed = mixed_values(
        queries,
        prepared(inward[1], names.key_norm, groups),
        apart(inward[2], groups),
        scale=queries.shape[-1] ** -0.5 if table.scales is None else table.scales[index],
        causal=table.causal,
        window=None if table.windows is None else table.windows[index],
        softcap=table.softcap,
        relative=None if table.relative is None else table.logits_of(stored),
    )
    added = None if table.residual_scale == 1 else np.full(table.width, table.residual_scale)
    return linear(stored, layer + names.output, mixed, added)


def _inward(
    table: StoredTransformer, stored: Mapping[str, np.ndarray], layer: str, states: np.ndarray
) -> list[np.ndarray]:
    """Queries, keys and values of all heads, before norms and rotation."""
    names, k, groups = table.names, table.size_of_heads, table.groups or table.heads
    sizes, factors = (table.heads * k, groups * k, groups * k), None
    if table.turned_factor != 1 and table.rotaries is not None:
        turning = 2 * table.rotaries[0].frequencies.size
        of_head = np.where(np.arange(k) < turning, table.turned_factor, 1.0)
        unit = np.ones(groups * k)
        factors = [np.tile(of_head, table.heads), np.tile(of_head, groups), unit]
    if names.fused:
        joint = None if factors is None else np.concatenate(factors)
        fused = linear(stored, layer + names.fused, states, joint)
        return np.split(fused, np.cumsum(sizes)[:2], axis=1)
    paths = names.query, names.key, names.value
    each = factors or [None] * 3
    return [linear(stored, layer + path, states, f) for path, f in zip(paths, each, strict=True)]


def readers(
    table: Callable[[Mapping[str, Any]], StoredTransformer],
) -> tuple[
    Callable[[Mapping[str, Any], _Tensors, str], TrainedTransformer],
    Callable[[Mapping[str, Any], _Tensors, int, np.ndarray], np.ndarray],
]:
    """`read` and `fused_attention` of an architecture with four maps in each layer's attention."""

    def read(config: Mapping[str, Any], tensors: _Tensors, name: str) -> TrainedTransformer:
        return table(config).read(tensors, name)

    def fused_attention(
        config: Mapping[str, Any], tensors: _Tensors, index: int, x: np.ndarray
    ) -> np.ndarray:
        return fused_heads(table(config), tensors, index, x)

    return read, fused_attention
