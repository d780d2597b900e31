"""What one step of mirror descent does with its tensors, one by one or by one call for all."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from attlas.torch.blocks import CHUNK, block_scales, block_sizes, block_views
from attlas.torch.signed_power import Power, power_of, signed_power_

Step = float | Tensor


class Move(NamedTuple):
    """One block: u becomes decay u - step g; `grad` and `dual` are views of its entries."""

    dual: Tensor
    grad: Tensor
    step: Step
    decay: Step


class Work(NamedTuple):
    """A parameter, its mirror variable (w itself where `in_place`) and the moves of its blocks."""

    w: Tensor
    dual: Tensor
    in_place: bool
    power: Power
    block: Any
    moves: list[Move]


def works_of(
    group: dict[str, Any],
    params: list[Tensor],
    duals: list[Tensor],
    grads: list[Tensor],
    compiling: bool,
) -> list[Work]:
    """The moves of every parameter, their steps scaled by the norms of their blocks.

    Args:
        group: a parameter group of `LpMirrorDescent`.
        params: its parameters that have a gradient.
        duals: the mirror variable of each; the parameter itself where it is its own.
        grads: the gradient of each, or the momentum that moves its mirror variable instead.
        compiling: whether numbers must be tensors, because a compiler would make constants of them.

    Examples:
        >>> w = torch.tensor([4.0])
        >>> rule = dict(p=2.0, lr=0.5, weight_decay=0.2, scaling="plain", maximize=False)
        >>> works_of(rule, [w], [w], [torch.tensor([2.0])], compiling=False)[0].moves
        [Move(dual=tensor([4.]), grad=tensor([2.]), step=0.5, decay=0.9)]
    """
    if not params:
        return []
    scaling, p = group["scaling"], group["p"]
    block = None if scaling == "plain" else group["block"]
    pushes = [block_views(grad, block) for grad in grads]
    scales: list[list[Any]] = [[None for _ in views] for views in pushes]
    if scaling != "plain":
        wide = [
            [view.to(dual.dtype) for view in views]
            for views, dual in zip(pushes, duals, strict=True)
        ]
        scales = block_scales(wide, p, block, group["eps"], group["floor"])
    if scaling == "relative":
        sizes = block_sizes([block_views(dual, block) for dual in duals], p, block)
        scales = [
            [(p - 1) * scale * size for scale, size in zip(*rows, strict=True)]
            for rows in zip(scales, sizes, strict=True)
        ]
    lr, sign = _number(group["lr"], compiling), -1.0 if group["maximize"] else 1.0
    works = []
    for w, dual, views, row in zip(params, duals, pushes, scales, strict=True):
        moves = []
        for part, grad, scale in zip(block_views(dual, block), views, row, strict=True):
            step: Step = sign * lr
            decay: Step = 1.0 - lr * group["weight_decay"]
            if scale is not None:
                scale = _number(scale, compiling)
                step = step * scale
                still = scale == 0
                decay = (
                    torch.where(still, 1.0, decay)
                    if isinstance(still, Tensor)
                    else (1.0 if still else decay)
                )
            moves.append(Move(part, grad, step, decay))
        works.append(Work(w, dual, w is dual, power_of(1 / (p - 1), dual.dtype), block, moves))
    return works


def _number(value: Step, compiling: bool) -> Step:
    """A number where that waits for nothing; a tensor on an accelerator and for a compiler."""
    if compiling:
        return torch.as_tensor(value, dtype=torch.float64)
    if isinstance(value, int | float):
        return value
    return value.item() if value.device.type == "cpu" else value.squeeze()


def run_steps(works: list[Work], foreach: bool | None) -> None:
    """Move the mirror variables of one parameter group and write their images.

    Args:
        foreach: whether to make one call for all tensors; None decides by their device.

    Examples:
        >>> w, grad = torch.tensor([4.0]), torch.tensor([2.0])
        >>> identity = power_of(1.0, w.dtype)
        >>> run_steps([Work(w, w, True, identity, None, [Move(w, grad, 0.5, 1.0)])], None)
        >>> w.tolist()
        [3.0]
    """
    if foreach is None:
        foreach = all(work.w.device.type not in ("cpu", "meta") for work in works)
    if foreach:
        _foreach_steps(works)
        return
    for work in works:
        _steps(work)


def _steps(work: Work) -> None:
    """One parameter, in pieces that fit the cache where the arrays lie in one piece and order."""
    arrays = (work.w, work.dual, work.moves[0].grad)
    if len(work.moves) > 1 or not all(array.is_contiguous() for array in arrays):
        whole_step(work)
        return
    for w, dual, grad in zip(*(array.view(-1).split(CHUNK) for array in arrays), strict=True):
        moves = [work.moves[0]._replace(dual=dual, grad=grad)]
        whole_step(work._replace(w=w, dual=dual, moves=moves))


def whole_step(work: Work) -> None:
    """Move the mirror variable of one parameter and write its image.

    Examples:
        With p = 3, w is the root of its mirror variable, 9 - 0.5 times 10 = 4.

        >>> w, dual, grad = torch.tensor([3.0]), torch.tensor([9.0]), torch.tensor([10.0])
        >>> root = power_of(0.5, w.dtype)
        >>> whole_step(Work(w, dual, False, root, None, [Move(dual, grad, 0.5, 1.0)]))
        >>> w.tolist(), dual.tolist()
        ([2.0], [4.0])
    """
    move_dual(work)
    if not work.in_place:
        _write_images([work.w], [work.dual], work.power, foreach=False)


def move_dual(work: Work) -> None:
    """Move the mirror variable of one parameter, and nothing else.

    Examples:
        >>> dual, grad = torch.tensor([9.0]), torch.tensor([10.0])
        >>> identity = power_of(1.0, dual.dtype)
        >>> move_dual(Work(dual, dual, True, identity, None, [Move(dual, grad, 0.5, 1.0)]))
        >>> dual.tolist()
        [4.0]
    """
    for move in work.moves:
        _move(*move)


def pushed(work: Work) -> Tensor:
    """Where a parameter has a gradient, in blocks that move at all.

    Examples:
        >>> dual, grad = torch.ones(2), torch.tensor([10.0, 0.0])
        >>> identity = power_of(1.0, dual.dtype)
        >>> pushed(Work(dual, dual, True, identity, None, [Move(dual, grad, 0.5, 1.0)])).tolist()
        [True, False]
    """
    result = torch.zeros_like(work.dual, dtype=torch.bool)
    for part, move in zip(block_views(result, work.block), work.moves, strict=True):
        step = move.step
        part.copy_((move.grad != 0) & (step != 0))
    return result


def _move(dual: Tensor, grad: Tensor, step: Step, decay: Step) -> None:
    if isinstance(decay, Tensor) or decay != 1:
        dual.mul_(decay)
    if isinstance(step, Tensor):
        dual.sub_(grad.to(dual.dtype) * step)
    else:
        dual.add_(grad.to(dual.dtype), alpha=-step)


def _foreach_steps(works: list[Work]) -> None:
    """The same by one call for all that is alike."""
    alike: dict[Any, list[Move]] = {}
    for move in (move for work in works for move in work.moves):
        numbers = (n if isinstance(n, float) else id(n) for n in (move.step, move.decay))
        alike.setdefault((move.dual.device, move.dual.dtype, *numbers), []).append(move)
    for moves in alike.values():
        duals = [move.dual for move in moves]
        grads = [move.grad.to(move.dual.dtype) for move in moves]
        step, decay = moves[0].step, moves[0].decay
        if isinstance(decay, Tensor) or decay != 1:
            torch._foreach_mul_(duals, decay)
        if isinstance(step, Tensor):
            torch._foreach_sub_(duals, torch._foreach_mul(grads, step))
        else:
            torch._foreach_add_(duals, grads, alpha=-step)
    pairs: dict[Any, list[Work]] = {}
    for work in works:
        if not work.in_place:
            pairs.setdefault((work.w.device, work.w.dtype), []).append(work)
    for some in pairs.values():
        _write_images([work.w for work in some], [work.dual for work in some], some[0].power, True)


def _write_images(ws: list[Tensor], duals: list[Tensor], power: Power, foreach: bool) -> None:
    if ws[0].dtype == duals[0].dtype:
        signed_power_(ws, duals, power, foreach)
        return
    images = [torch.empty_like(dual) for dual in duals]
    signed_power_(images, duals, power, foreach)
    for w, image in zip(ws, images, strict=True):
        w.copy_(image)
