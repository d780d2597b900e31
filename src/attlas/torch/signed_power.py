r"""The signed power sign(x) |x|^a of lists of tensors, by roots and products where a allows it.

A power with a general exponent costs some ten times as much as a product. The exponents of
mirror maps are often dyadic: 1/(p-1) is 1/2 at p = 3, 2 at p = 1.5, 10 at p = 1.1, 1/4 at p = 5.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

MOST_ROOTS, MOST_FACTORS = 3, 16
PIECE, LANES = 1 << 16, 64


class Power(NamedTuple):
    """How |x|^a is taken: n factors of the r-fold square root, or, with n = 0, as a power."""

    exponent: float
    roots: int
    factors: int


def power_of(exponent: float, dtype: torch.dtype) -> Power:
    """The way to take a power: by roots and products where a = n / 2^r in the type's precision.

    In float64 none but the identity, the square and the root are taken so, which are rounded once;
    there p = 1.1 is not 11/10, and a product of ten factors would be none of its mirror map.

    Args:
        exponent: a > 0.
        dtype: float32 or float64.

    Examples:
        >>> power_of(0.5, torch.float64)[1:], power_of(1 / (1.1 - 1), torch.float32)[1:]
        ((1, 1), (0, 10))
        >>> power_of(1 / (1.1 - 1), torch.float64)[1:]
        (0, 0)
    """
    wide = dtype == torch.float64
    most_roots, most_factors = (1, 2) if wide else (MOST_ROOTS, MOST_FACTORS)
    rounded = exponent if wide else torch.tensor(exponent, dtype=torch.float32).item()
    for roots in range(most_roots + 1):
        factors = rounded * 2**roots
        if factors == int(factors) <= most_factors:
            return Power(exponent, roots, int(factors))
    return Power(exponent, 0, 0)


def signed_power_(
    out: Sequence[Tensor], x: Sequence[Tensor], power: Power, foreach: bool = False
) -> None:
    """Write sign(x) |x|^a into tensors of the same shapes and type; a zero stays zero.

    One by one and by `torch._foreach_*` the same operations run in the same order and give the
    same bits.

    Args:
        out: destination; shares no memory with `x`.
        x: tensors of one type, float32 or float64.
        power: result of `power_of` for a and this type.
        foreach: whether to make one call for all tensors.

    Examples:
        >>> out = [torch.empty(3)]
        >>> signed_power_(out, [torch.tensor([4.0, 0.0, -9.0])], power_of(0.5, torch.float32))
        >>> out[0].tolist()
        [2.0, 0.0, -3.0]
    """
    if not x:
        return
    if (power.roots, power.factors) == (0, 1):
        _copy_(out, x, foreach)
    elif (power.roots, power.factors) == (0, 2):
        _abs_into(out, x, foreach)
        _mul_(out, x, foreach)
    else:
        _abs_into(out, x, foreach)
        if power.factors:
            for _ in range(power.roots):
                _sqrt_(out, foreach)
            _factors_(out, power.factors, foreach)
        else:
            _pow_(out, power.exponent, foreach)
        for factor, sign in zip(out, x, strict=True):
            factor.copysign_(sign)


def _factors_(out: Sequence[Tensor], factors: int, foreach: bool) -> None:
    """The n-th power in place, squaring from the highest binary digit down."""
    if factors == 1:
        return
    base = [factor.clone() for factor in out]
    for digit in f"{factors:b}"[1:]:
        _mul_(out, out, foreach)
        if digit == "1":
            _mul_(out, base, foreach)


def _copy_(out: Sequence[Tensor], x: Sequence[Tensor], foreach: bool) -> None:
    if foreach:
        torch._foreach_copy_(out, x)
        return
    for target, source in zip(out, x, strict=True):
        target.copy_(source)


def _abs_into(out: Sequence[Tensor], x: Sequence[Tensor], foreach: bool) -> None:
    if foreach:
        torch._foreach_copy_(out, x)
        torch._foreach_abs_(out)
        return
    for target, source in zip(out, x, strict=True):
        torch.abs(source, out=target)


def _mul_(out: Sequence[Tensor], x: Sequence[Tensor], foreach: bool) -> None:
    if foreach:
        torch._foreach_mul_(out, x)
        return
    for target, source in zip(out, x, strict=True):
        target.mul_(source)


def _sqrt_(out: Sequence[Tensor], foreach: bool) -> None:
    if foreach:
        torch._foreach_sqrt_(out)
        return
    for tensor in out:
        tensor.sqrt_()


def _pow_(out: Sequence[Tensor], exponent: float, foreach: bool) -> None:
    """Powers in place, the same for an entry wherever it stands.

    On the host torch takes whole vectors of entries with one routine and the rest of an array, of
    a thread's share or of a strided row with another: the two differ in the last bit. Therefore
    arrays are taken in pieces that whole vectors fill, of which two threads share at most.
    """
    if torch.compiler.is_compiling() or out[0].device.type != "cpu":
        if foreach:
            torch._foreach_pow_(out, exponent)
        else:
            for tensor in out:
                tensor.pow_(exponent)
        return
    for tensor in out:
        flat = tensor.reshape(-1)
        for piece in flat.split(PIECE):
            filled = piece.new_ones(-(-piece.numel() // LANES) * LANES)
            filled[: piece.numel()] = piece
            piece.copy_(filled.pow_(exponent)[: piece.numel()])
        if flat.data_ptr() != tensor.data_ptr():
            tensor.copy_(flat.view(tensor.shape))
