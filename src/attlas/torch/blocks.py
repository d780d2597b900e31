r"""Blocks of parameters: what a dual norm is taken over.

A block is given as None (all tensors of a parameter group together), "tensor" (each tensor by
itself) or (axis, repeats, sizes): each tensor holds one block for each of `sizes`, cut along an
axis that repeats the sequence of them `repeats` times. A fused projection of queries, keys and
values is (1, 1, (d, d, d)) in GPT-2 and (0, heads, (d_h, d_h, d_h)) in GPT-NeoX.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from attlas.core.errors import UserError
from attlas.torch.signed_power import Power, power_of, signed_power_

CHUNK = 1 << 17
"""Entries that are treated at once on the host: three arrays of them stay in the shared cache, and
calls cost little beside them."""
LEAST_SIZE = 1e-3
"""A block of smaller weights counts as one of this size in a relative step, so that weights that
start at zero move: the second epsilon of Adafactor."""


def require_block(block: Any, shapes: Sequence[Sequence[int]]) -> None:
    """Check that a block is one and fits the tensors of its group.

    Raises:
        UserError: naming the block and the first shape that it does not fit.

    Examples:
        >>> require_block((0, 1, (2, 2)), [(5,)])
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: block = (0, 1, (2, 2)) does not fit the shape (5,): axis 0 ...
    """
    if block is None or block == "tensor":
        return
    try:
        axis, repeats, sizes = block
        total = repeats * sum(sizes)
        positive = all(type(number) is int and number > 0 for number in (repeats, *sizes))
        positive = positive and type(axis) is int and axis >= 0
    except (TypeError, ValueError):
        positive = False
    if not positive:
        raise UserError(f"block = {block!r}: give None, 'tensor' or (axis, repeats, sizes)")
    for shape in shapes:
        if axis >= len(shape) or shape[axis] != total:
            raise UserError(
                f"block = {block} does not fit the shape {tuple(shape)}: "
                f"axis {axis} must have {total} entries"
            )


def block_views(tensor: Tensor, block: Any) -> list[Tensor]:
    """The blocks of one tensor as views of it.

    Returns:
        One view for each block; the tensor itself where it is not cut.

    Examples:
        >>> [view.tolist() for view in block_views(torch.arange(4), (0, 2, (1, 1)))]
        [[[0], [2]], [[1], [3]]]
    """
    if block is None or block == "tensor":
        return [tensor]
    axis, repeats, sizes = block
    return list(tensor.unflatten(axis, (repeats, sum(sizes))).split(tuple(sizes), axis + 1))


def dual_norm(x: Tensor, p: float) -> Tensor:
    r"""The norm (sum |x|^q)^{1/q}, q = p / (p - 1), the largest entry divided out first.

    Args:
        x: float32 or float64.
        p: exponent above 1.

    Returns:
        A scalar; NaN where an entry is NaN.

    Examples:
        >>> round(float(dual_norm(torch.tensor([3.0, -4.0]), 2.0)), 6)
        5.0
    """
    q = p / (p - 1)
    least, most = torch.aminmax(x)  # seven times as fast as the norm of infinite order
    largest = torch.maximum(most, -least)
    unit = torch.where(largest > 0, largest, torch.ones_like(largest))
    flat, power = x.reshape(-1), power_of(q, x.dtype)
    # On the host in pieces that stay in the cache; a compiler cuts by itself.
    at_once = torch.compiler.is_compiling() or x.device.type != "cpu"
    pieces = (flat,) if at_once else flat.split(CHUNK)
    room = [torch.empty_like(pieces[0]) for _ in range(2)]
    sums = []
    for piece in pieces:
        ratio, powers = (buffer[: piece.numel()] for buffer in room)
        torch.abs(piece, out=ratio).div_(unit)
        _powers_(powers, ratio, power)
        sums.append(powers.sum())
    return unit * torch.stack(sums).sum() ** (1 / q)


def _powers_(out: Tensor, x: Tensor, power: Power) -> None:
    """Write x^a for entries of at least 0, as x times a root at a = 1 + 1/2^r."""
    if not power.roots or power.factors != 2**power.roots + 1:
        signed_power_([out], [x], power)
        return
    torch.sqrt(x, out=out)
    for _ in range(power.roots - 1):
        out.sqrt_()
    out.mul_(x)


def _norm_of_finite(x: Tensor, p: float) -> Tensor:
    """The dual norm of the entries that are finite."""
    if not torch.compiler.is_compiling() and x.device.type == "cpu":
        norm = dual_norm(x, p)
        if bool(norm.isfinite()):
            return norm
    return dual_norm(x.nan_to_num(0.0, 0.0, 0.0), p)


def block_scales(
    grads: Sequence[Sequence[Tensor]], p: float, block: Any, eps: float, floor: float | None
) -> list[list[Tensor]]:
    """1 / (dual norm + eps) of the block that each view belongs to; 0 where the norm is too small.

    Entries that are infinite or NaN do not count in the norm, so that they spoil no other entry of
    their block.

    Args:
        grads: views of the blocks of each tensor's gradient.
        p: exponent above 1.
        block: None for one norm over all tensors; otherwise one norm per block.
        eps: added to the norm.
        floor: norm at or below which nothing moves; the smallest normal number over its rounding
            unit when None.

    Examples:
        >>> grads = [[torch.tensor([3.0, -4.0])], [torch.zeros(1)]]
        >>> [round(float(row[0]), 6) for row in block_scales(grads, 2.0, "tensor", 0.0, None)]
        [0.2, 0.0]
        >>> spoilt = torch.tensor([3.0, -4.0, torch.nan])
        >>> round(float(block_scales([[spoilt]], 2.0, "tensor", 0.0, None)[0][0]), 6)
        0.2
    """
    norms = _block_norms(grads, p, block)

    def factor(norm: Tensor) -> Tensor:
        info = torch.finfo(norm.dtype)
        low = norm <= (info.tiny / info.eps if floor is None else floor)
        unit = torch.ones_like(norm)
        return torch.where(low, torch.zeros_like(norm), 1 / (torch.where(low, unit, norm) + eps))

    return [[factor(norm) for norm in row] for row in norms]


def block_sizes(duals: Sequence[Sequence[Tensor]], p: float, block: Any) -> list[list[Tensor]]:
    r"""The dual norm ||u||_q = ||w||_p^{p-1} of the block that each view belongs to.

    A block of n weights whose mean (sum |w|^p / n)^{1/p} is below `LEAST_SIZE` has the norm of n
    weights of that size.

    Args:
        duals: views of the blocks of each parameter's mirror variable u.
        p: exponent above 1.
        block: None for one norm over all tensors; otherwise one norm per block.

    Examples:
        At p = 3 the weights (0, 2) have u = (0, 4); four weights of zero count as 0.001.

        >>> duals = [[torch.tensor([0.0, 4.0])], [torch.zeros(4)]]
        >>> [round(float(row[0]), 8) for row in block_sizes(duals, 3.0, "tensor")]
        [4.0, 2.52e-06]
    """
    counts = [[view.numel() for view in views] for views in duals]
    if block is None:
        total = sum(number for row in counts for number in row)
        counts = [[total for _ in row] for row in counts]
    return [
        [norm.clamp(min=LEAST_SIZE ** (p - 1) * number ** (1 - 1 / p))
         for norm, number in zip(norms, row, strict=True)]
        for norms, row in zip(_block_norms(duals, p, block), counts, strict=True)
    ]  # fmt: skip


def _block_norms(arrays: Sequence[Sequence[Tensor]], p: float, block: Any) -> list[list[Tensor]]:
    """The dual norm of the block that each view belongs to, of the entries that are finite."""
    norms = [[_norm_of_finite(view, p) for view in views] for views in arrays]
    if block is not None:
        return norms
    first = norms[0][0]
    stacked = torch.stack([norm.to(first) for row in norms for norm in row])
    total = dual_norm(stacked, p)
    return [[total.to(norm) for norm in row] for row in norms]
