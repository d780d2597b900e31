"""The weights of the heads of one captured attention: where each matrix lies is read off numbers.

No table says how a library lays out its projections: the columns of queries, keys and values are
those whose outputs the attention was seen to use, and the sum over heads is compared with what the
output map returned.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.capture.captured_run import Call, CapturedAttention, is_linear, is_norm
from attlas.capture.linear_maps import (
    LinearMap,
    Match,
    array_of,
    linear_map,
    matching_columns,
    read_norm,
)
from attlas.capture.rotation_fit import fitted_rotation
from attlas.transformers.canonical import Norm, Rotary


class Projected(NamedTuple):
    """Queries, keys or values of all heads of a layer.

    Attributes:
        W: projection of each group of heads.
        b: its bias.
        group: group of each head.
        norm: norm of each head's rows after the projection, or None.
        joint: norm of the rows of all heads together, whose gain is part of W; or None.
        rotary: rotary positions, or None.
        factor: of the rows, beside all that.
        x: rows that were read, (B, T, d).
    """

    W: Float[np.ndarray, "G d k"]
    b: Float[np.ndarray, "G k"]
    group: tuple[int, ...]
    norm: Norm | None
    joint: Norm | None
    rotary: Rotary | None
    factor: float
    x: Float[np.ndarray, "B T d"]


class CapturedHeads(NamedTuple):
    """What is known of the weights of one attention.

    Attributes:
        name: of its module.
        heads: H.
        query: None where its matrix was not recognised; likewise the three that follow.
        key: keys.
        value: values.
        W_O: output projection of each head.
        b_O: bias of their sum.
        norm: the norm whose output queries, keys and values all read, or None.
        projection: x W + b between that norm and what they read, as W and b; None for none.
        scale: factor of queries times keys in the logits; NaN where the logits are none.
        softcap: c of logits c tanh(logits / c), or None.
        biased: whether positions add to the logits.
        causal: whether no row sees a later token.
        residual: largest relative difference between what these matrices give and what the model
            computed; NaN where nothing was recognised.
    """

    name: str
    heads: int
    query: Projected | None
    key: Projected | None
    value: Projected | None
    W_O: Float[np.ndarray, "H v out"] | None
    b_O: Float[np.ndarray, " out"] | None
    norm: Norm | None
    projection: tuple[np.ndarray, np.ndarray] | None
    scale: float
    softcap: float | None
    biased: bool
    causal: bool
    residual: float


def captured_heads(
    captured: CapturedAttention, tolerance: float, softcap: float | None = None
) -> CapturedHeads | None:
    """The weights of the heads of an attention.

    Args:
        tolerance: largest relative difference of numbers that count as the same.
        softcap: c of the model's configuration, which is used where the logits show it.

    Returns:
        None where the attention has no plain maps.
    """
    seen = captured.seen
    if seen is None:
        return None
    tensors = (seen.queries, seen.keys, seen.values, seen.weights)
    queries, keys, values, weights = (array_of(tensor) for tensor in tensors)
    maps = [linear_map(call) for call in captured.calls if is_linear(call.module)]
    norms = [call for call in captured.calls if is_norm(call.module)]
    sources = [*_linear_sources(maps), *_normed_sources(norms, maps, queries.shape, tolerance)]
    query, key, value = (_projected(rows, sources, tolerance) for rows in (queries, keys, values))
    logits, allowed = array_of(seen.logits), seen.allowed.cpu().numpy()
    products = queries @ np.swapaxes(keys, -1, -2)
    scale, cap, biased = _scale(products, logits, allowed, softcap, tolerance)
    W_O = b_O = None
    residuals = []
    if captured.output is not None:
        output = linear_map(captured.output)
        W_O = output.W.reshape(queries.shape[1], -1, output.W.shape[1])
        b_O = output.b
        if value is not None:
            by_heads = np.einsum("bhij,bhjv,hvo->bio", weights, _rows(value), W_O) + b_O
            residuals.append(np.abs(by_heads - output.y).max() / np.abs(output.y).max())
    parts = [part for part in (query, key, value) if part is not None]
    shared = parts and all(np.array_equal(part.x, parts[0].x) for part in parts)
    norm, projection = None, None
    if shared:
        norm, projection = _norm_before(parts[0].x, norms, maps, tolerance)
    later = np.triu(np.ones(allowed.shape[-2:], bool), 1)
    return CapturedHeads(
        captured.name,
        queries.shape[1],
        query,
        key,
        value,
        W_O,
        b_O,
        norm,
        projection,
        scale,
        cap,
        biased,
        bool(allowed.shape[-1] == allowed.shape[-2] and not np.any(allowed & later)),
        float(max(residuals, default=np.nan)),
    )


def _norm_before(
    x: Float[np.ndarray, "B T d"], norms: list[Call], maps: list[LinearMap], tolerance: float
) -> tuple[Norm | None, tuple[np.ndarray, np.ndarray] | None]:
    """The norm whose output is read, directly or through one linear map."""
    reads = [(x, None)]
    reads += [(each.x, (each.W, each.b)) for each in maps if np.array_equal(each.y, x)]
    for rows, projection in reads:
        for call in norms:
            if tuple(call.output.shape) == rows.shape and np.array_equal(
                array_of(call.output), rows
            ):
                norm = read_norm(call, tolerance)
                return norm, None if norm is None else projection
    return None, None


class _Source(NamedTuple):
    """Rows that queries, keys or values may be, and the matrix that they come from."""

    rows: Float[np.ndarray, "B T m"]
    W: Float[np.ndarray, "d m"]
    b: Float[np.ndarray, " m"]
    x: Float[np.ndarray, "B T d"]
    norm: Norm | None = None
    joint: Norm | None = None


def _linear_sources(maps: list[LinearMap]) -> Iterator[_Source]:
    for each in reversed(maps):
        if each.y.ndim == 3:
            yield _Source(each.y, each.W, each.b, each.x)


def _normed_sources(
    norms: list[Call], maps: list[LinearMap], shape: tuple[int, ...], tolerance: float
) -> Iterator[_Source]:
    """Rows that a norm of queries or keys has made of the output of a linear map."""
    size = shape[-1]
    for call in reversed(norms):
        before, after = array_of(call.input), array_of(call.output)
        by_head = before.ndim == 4 and before.shape[-1] == size
        if not by_head and before.ndim != 3:
            continue
        norm = read_norm(call, tolerance)
        if norm is None:
            continue
        if by_head and maps and before.shape[1] != maps[-1].y.shape[1]:  # heads before tokens
            before, after = np.swapaxes(before, 1, 2), np.swapaxes(after, 1, 2)
        flat = [rows.reshape(*rows.shape[:2], -1) for rows in (before, after)]
        for each in reversed(maps):
            if each.y.ndim != 3 or each.y.shape[:2] != flat[0].shape[:2]:
                continue
            rows = [array.reshape(-1, array.shape[-1]) for array in (flat[0], each.y)]
            match = matching_columns(rows[0], rows[1], tolerance)
            if match is None or abs(match.factor - 1) > tolerance or np.any(match.shift):
                continue
            W, b = each.W[:, match.columns], each.b[match.columns]
            if by_head:
                yield _Source(flat[1], W, b, each.x, norm=norm)
            else:
                gain = np.asarray(norm.gain)
                yield _Source(flat[1], W * gain, b * gain, each.x, joint=norm)
            break


def _projected(
    rows: Float[np.ndarray, "B H T k"], sources: list[_Source], tolerance: float
) -> Projected | None:
    """Where the rows of all heads come from."""
    group = _groups(rows)
    first = [group.index(g) for g in range(max(group) + 1)]
    for source in sources:
        if source.rows.shape[:2] != (rows.shape[0], rows.shape[2]):
            continue
        parts: list[tuple[Match, Rotary | None]] = []
        for head in first:
            taken = [int(match.columns[0]) for match, _ in parts]
            part = _block(rows[:, head], source.rows, taken, tolerance)
            if part is None:
                break
            parts.append(part)
        factor = parts[0][0].factor if parts else 0.0
        slack = max(tolerance, _TABLES) * abs(factor)
        if len(parts) < len(first) or any(abs(m.factor - factor) > slack for m, _ in parts):
            continue
        if (source.norm or source.joint) and any(np.any(match.shift) for match, _ in parts):
            continue
        W = np.stack([source.W[:, match.columns] for match, _ in parts])
        b = np.stack([source.b[match.columns] + match.shift / factor for match, _ in parts])
        rotary = parts[0][1]
        return Projected(W, b, group, source.norm, source.joint, rotary, factor, source.x)
    return None


_TABLES = 1e-6
"""Sines and cosines that a model has stored in float32 are off by this much."""


def _block(
    wanted: Float[np.ndarray, "B T k"],
    offered: Float[np.ndarray, "B T m"],
    taken: list[int],
    tolerance: float,
) -> tuple[Match, Rotary | None] | None:
    """The columns that one head's rows are, up to a factor and a rotation by positions."""
    size, m = wanted.shape[-1], offered.shape[-1]
    if size > m:
        return None
    match = matching_columns(wanted.reshape(-1, size), offered.reshape(-1, m), tolerance)
    if match is not None:
        return match, None
    tolerance = max(10 * tolerance, _TABLES)
    lengths = np.linalg.norm(wanted, axis=-1)
    for start in range(0, m - size + 1, int(np.gcd(size, m))):
        block = offered[..., start : start + size]
        other = np.linalg.norm(block, axis=-1)
        if start in taken or not np.all(other > 0):
            continue
        ratio = lengths / other  # a rotation and a factor change all rows alike
        if np.ptp(ratio) > tolerance * ratio.max():
            continue
        fit = fitted_rotation(block, wanted, tolerance)
        if fit is not None:
            return Match(np.arange(start, start + size), fit[1], np.zeros(size)), fit[0]
    return None


def _groups(rows: Float[np.ndarray, "B H T k"]) -> tuple[int, ...]:
    """Heads that have the same rows share a group."""
    group: list[int] = []
    for head in range(rows.shape[1]):
        if head and np.array_equal(rows[:, head], rows[:, head - 1]):
            group.append(group[-1])
        else:
            group.append(group[-1] + 1 if group else 0)
    return tuple(group)


def _rows(part: Projected) -> Float[np.ndarray, "B H T k"]:
    """Rows of each head as the matrices give them."""
    own = np.einsum("btd,gdk->bgtk", part.x, part.W) + part.b[:, None]
    return part.factor * own[:, list(part.group)]


def _scale(
    products: np.ndarray,
    logits: np.ndarray,
    allowed: np.ndarray,
    softcap: float | None,
    tolerance: float,
) -> tuple[float, float | None, bool]:
    """Factor of the products in the logits, the soft cap, and whether positions add to them."""
    for cap in (None, softcap) if softcap else (None,):
        seen = np.where(allowed, logits, 0.0)
        if cap is not None:
            if np.abs(seen).max() >= cap:
                continue
            seen = cap * np.arctanh(seen / cap)
        read = np.where(allowed, products, 0.0)
        scale = float(np.sum(seen * read) / np.sum(read**2))
        # a soft cap amplifies the rounding of logits near it
        slack = tolerance if cap is None else 1e3 * tolerance
        if np.abs(seen - scale * read).max() <= slack * np.abs(seen).max():
            return scale, cap, False
    # what is the same along a row changes no weight, and what positions add is so in all sequences
    for across, sides in ((False, (logits, products)), (True, (logits, products))):
        read = [_centred(np.where(allowed, side, 0.0), allowed) for side in sides]
        if across:
            read = [side[1:] - side[:1] for side in read]
        if not read[1].size or not np.any(read[1]):
            continue
        scale = float(np.sum(read[0] * read[1]) / np.sum(read[1] ** 2))
        error = np.abs(read[0] - scale * read[1]).max()
        if error <= 10 * tolerance * np.abs(logits[allowed]).max():
            return scale, None, across
    return float("nan"), None, False


def _centred(values: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Rows less their mean over the tokens that they see."""
    number = np.maximum(allowed.sum(axis=-1, keepdims=True), 1)
    return np.where(allowed, values - values.sum(axis=-1, keepdims=True) / number, 0.0)
