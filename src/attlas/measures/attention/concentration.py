r"""How concentrated attention rows are: (A2) and (A4) of liu2021analyzing, at any scale.

Rows of different lengths are processed in blocks, so that a million of them need only the memory of
a block and the results. Selection runs in NumPy on the host, whose sort is ten times as fast as
XLA's.
"""

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple, get_args

import jax.numpy as jnp
import numpy as np

from attlas.core.arrays import ArrayInput, read_array, read_arrays, working_dtype
from attlas.core.errors import UserError, refuse_unreadable

Norm = Literal["l2", "raw l2", "l1"]

# Rounding of a weight besides its share in the row's sum: exp and a division.
_ENTRY_ROUNDINGS = 8

# Weights processed at once: a block and its copies fit a core's cache.
_CACHED = 65_536

# Terms of a running sum that are added as one group.
_GROUP = 16


class Concentration(NamedTuple):
    """One entry per row, in the leading shape of the weights.

    Attributes:
        s0: smallest number of weights with all but tau of the norm, last axis tau; 0 if no number
            has, which happens only with "raw l2".
        top_norm: l2 norm of the floor(sqrt(p)) largest weights, as plotted in liu2021analyzing.
        relative_top_norm: the same over the l2 norm of the row.
        entropy: -sum a log a, in nats.
        effective_support: exp(entropy), the number of equal weights of that entropy.
        participation: 1 / ||a||_2^2, the number of equal weights of that l2 norm.
    """

    s0: np.ndarray
    top_norm: np.ndarray
    relative_top_norm: np.ndarray
    top_share: np.ndarray
    entropy: np.ndarray
    effective_support: np.ndarray
    participation: np.ndarray


def concentration(
    weights: ArrayInput,
    lengths: ArrayInput | None = None,
    taus: tuple[float, ...] = (0.1,),
    norm: Norm = "l2",
    eps: float | None = None,
) -> Concentration:
    r"""Concentration of attention rows: those of a block, or of whole maps (n, H, T, T).

    $$s_0=\min\{s:\|a_{(1..s)}\|\ge(1-\tau)\|a\|\}$$

    with the l2 norm ("l2"), the l1 norm ("l1"), or the printed condition ||a_(1..s)||_2 >= 1 - tau
    ("raw l2"). The last assumes rows of l2 norm 1, which softmax rows do not have: it forces the
    largest weight to be at least (1 - tau)^2. A threshold missed by at most the rounding of a sum
    counts as reached.

    Args:
        weights: rows of attention weights along the last axis, (..., T), each in its first
            `lengths` entries; a list, or an array of NumPy, JAX or torch of any float type.
        lengths: p of each row, broadcast to the leading axes: `np.arange(1, T + 1)` for causal
            maps; T when None. Entries beyond are not read.
        taus: levels, each in (0, 1).
        norm: the norm that defines s0.
        eps: rounding unit of the arithmetic that produced the rows, if coarser than that of their
            dtype. Half precision is widened to float32 but keeps its rounding unit.

    Returns:
        The statistics, of shape (...), and s0 of shape (..., taus).

    Raises:
        UserError: if a level is out of its range; lengths, rows and settings are checked, too.

    Source: (A2), (A4) and experiment 1 of liu2021analyzing.

    Examples:
        >>> row = np.array([[0.75, 0.25, 0.0, 0.0]])
        >>> found = concentration(row, taus=(0.1, 0.01))
        >>> found.s0.tolist(), found.top_share.tolist(), found.participation.tolist()
        ([[1, 2]], [1.0], [1.6])
        >>> maps = np.tril(np.ones((4, 4))) / np.arange(1.0, 5)[:, None]
        >>> concentration(maps[None, None], np.arange(1, 5)).s0[..., 0].tolist()
        [[[1, 2, 3, 4]]]
    """
    array = _rows(weights)
    lead, width = array.shape[:-1], array.shape[-1]
    sizes = _sizes(array, lengths)
    flat = array.reshape(-1, width)
    taus = tuple(read_arrays("levels", np.float64, taus=taus)[0].tolist())
    if not all(0 < tau < 1 for tau in taus):
        raise UserError(f"taus = {taus}: choose levels between 0 and 1")
    _require_settings(norm, eps)
    unit = max(float(jnp.finfo(array.dtype).eps), eps or 0.0)
    columns = _measured(flat, sizes, taus, norm, unit, lead)
    return Concentration(*(column.reshape((*lead, *column.shape[1:])) for column in columns))


def _measured(
    flat: np.ndarray,
    sizes: np.ndarray,
    taus: tuple[float, ...],
    norm: Norm,
    unit: float,
    lead: tuple[int, ...],
) -> Concentration:
    """The statistics of rows [r, T]."""
    rows, width = flat.shape
    statistics = Concentration(np.zeros((rows, len(taus)), np.int32), *np.zeros((6, rows)))
    # Rows that share floor(sqrt(p)) share one slice of largest weights, at little padding.
    roots = np.array([math.isqrt(p) for p in range(width + 1)])[sizes]
    for root in np.unique(roots):
        alike = np.flatnonzero(roots == root)
        step = max(1, _CACHED // (root + 1) ** 2)
        for start in range(0, alike.size, step):
            indices = alike[start : start + step]
            block = _padded(flat, sizes, indices)
            _require_distributions(block, sizes[indices], indices, unit, lead)
            block_statistics = _statistics(block, int(root), taus, norm)
            for column, values in zip(statistics, block_statistics, strict=True):
                column[indices] = values
    return statistics


@refuse_unreadable
def streamed_concentration(
    blocks: Iterable[tuple[ArrayInput, ArrayInput | None]],
    taus: tuple[float, ...] = (0.1,),
    norm: Norm = "l2",
    eps: float | None = None,
) -> Concentration:
    """`concentration` of blocks (weights, lengths) that come one at a time.

    Args:
        blocks: blocks to measure; each is dropped before the next is read.
        eps: rounding unit of the arithmetic that produced the rows; their dtype's when None.

    Returns:
        The statistics of all rows, in the order they came, along the first axis.

    Raises:
        UserError: if there is no block.

    Examples:
        >>> rows = np.full((3, 4), 0.25)
        >>> streamed_concentration([(rows, None), (rows, None)]).s0.ravel().tolist()
        [4, 4, 4, 4, 4, 4]
    """
    results = [concentration(rows, lengths, taus, norm, eps) for rows, lengths in blocks]
    if not results:
        raise UserError("no attention rows: give at least one block (weights, lengths)")
    return Concentration(*(np.concatenate(column) for column in zip(*results, strict=True)))


def top_norm(weights: ArrayInput, s0: int, lengths: ArrayInput | None = None) -> np.ndarray:
    r"""||a_(1..s0)||_2, the l2 norm of the s0 largest weights of each row.

    Args:
        weights: rows of attention weights, as for `concentration`, (..., T).
        lengths: p of each row, broadcast to the leading axes; T when None.

    Returns:
        The norms, of shape (...); NaN for a row that has one.

    Raises:
        UserError: if a row has fewer than s0 weights, or s0 < 1.

    Source: (A2) of liu2021analyzing.

    Examples:
        >>> top_norm(np.array([[0.1, 0.6, 0.0, 0.3]]), 1).tolist()
        [0.6]
    """
    array = _rows(weights)
    sizes = _sizes(array, lengths)
    rows, width = sizes.size, array.shape[-1]
    if s0 < 1 or (rows and s0 > sizes.min()):
        least = sizes.min() if rows else width
        raise UserError(f"s0 = {s0} of p = {least} weights: choose s0 from 1 to the least p")
    block = _padded(array.reshape(-1, width), sizes, np.arange(rows))
    top = np.partition(block, -s0, axis=1)[:, -s0:]
    return np.sqrt(np.einsum("ij,ij->i", top, top)).reshape(array.shape[:-1])


def _require_settings(norm: str, eps: float | None) -> None:
    if norm not in get_args(Norm) or not (eps is None or 0 <= eps < 1):
        names = ", ".join(get_args(Norm))
        raise UserError(f"norm = {norm!r}, eps = {eps}: choose one of {names}, and 0 <= eps < 1")


def _rows(weights: ArrayInput) -> np.ndarray:
    array = read_array(weights, "weights")
    if array.ndim < 1 or not jnp.issubdtype(array.dtype, jnp.floating):
        raise UserError(
            f"weights of shape {array.shape} and type {array.dtype}: give floating numbers, "
            "rows of attention weights along the last axis"
        )
    return array


def _sizes(weights: np.ndarray, lengths: ArrayInput | None) -> np.ndarray:
    """The length of every row, in one axis."""
    lead, width = weights.shape[:-1], weights.shape[-1]
    sizes = np.asarray(width) if lengths is None else read_array(lengths, "lengths")
    if not np.issubdtype(sizes.dtype, np.integer) or not _broadcasts(sizes.shape, lead):
        raise UserError(
            f"lengths of shape {sizes.shape} and type {sizes.dtype} for rows {lead}: give one "
            "whole number per row, or what broadcasts to them"
        )
    sizes = np.broadcast_to(sizes, lead).ravel()
    if sizes.size and not (sizes.min() >= 1 and sizes.max() <= width):
        raise UserError(
            f"lengths from {sizes.min()} to {sizes.max()} in rows of {width}: give 1 to {width}"
        )
    return sizes


def _broadcasts(shape: tuple[int, ...], lead: tuple[int, ...]) -> bool:
    pairs = zip(reversed(shape), reversed(lead), strict=False)
    return len(shape) <= len(lead) and all(size in (1, rows) for size, rows in pairs)


def _padded(weights: np.ndarray, sizes: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """The rows `indices`, truncated to the longest of them, zero beyond their lengths."""
    widest = int(sizes[indices].max(initial=1))
    block = weights[indices, :widest]
    # Sums in half precision would be coarser than the tolerance of their check.
    block = block.astype(working_dtype("float32", block.dtype), copy=False)
    inside = np.arange(widest) < sizes[indices][:, None]
    return block if inside.all() else np.where(inside, block, np.zeros((), block.dtype))


def _require_distributions(
    block: np.ndarray,
    sizes: np.ndarray,
    indices: np.ndarray,
    unit: float,
    lead: tuple[int, ...],
) -> None:
    """Rows must be distributions up to the rounding of a softmax and of two sums of p terms."""
    gap = np.abs(block.sum(1, dtype=np.float64) - 1)
    allowed = (sizes + _ENTRY_ROUNDINGS) * unit
    # A comparison with NaN is false: such a row counts as wrong.
    wrong = np.flatnonzero(~((gap <= allowed) & (block.min(1) >= 0)))
    if wrong.size:
        k = wrong[0]
        place = tuple(int(i) for i in np.unravel_index(indices[k], lead))
        total = block[k].sum(dtype=np.float64)
        raise UserError(
            f"attention row {place[0] if len(place) == 1 else place} sums to {total:.9g} "
            f"with least weight {block[k].min():.3g}: rows must be >= 0 and sum to 1 within "
            f"{allowed[k]:.1e}"
        )


def _statistics(
    block: np.ndarray, root: int, taus: tuple[float, ...], norm: Norm
) -> tuple[np.ndarray, ...]:
    """The columns of `Concentration` for rows of equal floor(sqrt(p))."""
    ordered = np.sort(block, axis=1)
    top = ordered[:, -root:]
    squares = np.einsum("ij,ij->i", ordered, ordered)
    top_squares = np.einsum("ij,ij->i", top, top)
    tiny = np.finfo(block.dtype).tiny
    logs = np.log(np.maximum(ordered, tiny))
    entropy = np.maximum(-np.einsum("ij,ij->i", ordered, logs), 0)
    return (
        _support_sizes(ordered, squares, taus, norm),
        np.sqrt(top_squares),
        np.sqrt(top_squares / squares),
        top.sum(1),
        entropy,
        np.exp(entropy),
        1 / squares,
    )


def _support_sizes(
    ordered: np.ndarray, squares: np.ndarray, taus: tuple[float, ...], norm: Norm
) -> np.ndarray:
    """s0 = p minus the number of smallest weights that may be dropped; padding zeros go first."""
    # Running sums of groups tell in which group the answer lies; only that group is summed term by
    # term, as a running sum over a whole row costs five times its sort.
    rows, width = ordered.shape
    padding = -width % _GROUP
    terms = np.zeros((rows, width + padding), ordered.dtype)
    np.multiply(ordered, 1 if norm == "l1" else ordered, out=terms[:, padding:])
    terms = terms.reshape(rows, -1, _GROUP)
    lost = np.cumsum(terms @ np.ones(_GROUP, terms.dtype), axis=1)
    total, row_indices = lost[:, -1], np.arange(rows)
    slack = width * float(np.finfo(ordered.dtype).eps) * total
    sizes_of = np.zeros((rows, len(taus)), np.int32)
    for column, tau in enumerate(taus):
        threshold = {"l1": (1 - tau) * total, "l2": (1 - tau) ** 2 * squares}.get(norm)
        threshold = np.full_like(total, (1 - tau) ** 2) if threshold is None else threshold
        may_go = total - threshold + slack
        full_groups = np.minimum(
            np.count_nonzero(lost <= may_go[:, None], axis=1), lost.shape[1] - 1
        )
        before = np.where(full_groups > 0, lost[row_indices, full_groups - 1], 0)
        inside = before[:, None] + np.cumsum(terms[row_indices, full_groups], axis=1)
        gone = full_groups * _GROUP + np.count_nonzero(inside <= may_go[:, None], axis=1)
        sizes = width + padding - gone
        sizes_of[:, column] = np.where(may_go >= 0, np.maximum(sizes, 1), 0)
    return sizes_of
