r"""Mirror descent for the potential psi(w) = (1/p) sum |w|^p, as a PyTorch optimiser.

The mirror map is [grad psi(w)]_j = sign(w_j) |w_j|^{p-1}, and one step reads
grad psi(w+) = grad psi(w) - eta grad L(w) (l_p-AttGD of julistiono2024optimizing).
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim.sgd import sgd

from attlas.core.errors import UserError
from attlas.torch.arguments import require_arguments
from attlas.torch.signed_power import power_of, signed_power_
from attlas.torch.steps import Work, move_dual, pushed, run_steps, whole_step, works_of


class LpMirrorDescent(torch.optim.Optimizer):
    r"""l_p mirror descent, plain or dual-normalised (l_p-AttGD of julistiono2024optimizing).

    u+ = (1 - eta lambda) u - eta s g, w+ = sign(u+) |u+|^{1/(p-1)}, with u = grad psi(w), weight
    decay lambda and s = 1. Normalised: s = 1 / (||g||_q + eps), q = p / (p - 1), the norm over the
    blocks of the parameter group (`block`; by default the group is one block).

    The state is u in float32 (float64 for float64 parameters); the parameter is its image, rounded
    to the parameter's type, so that small updates add up where bfloat16 would lose them. It costs
    4 bytes per parameter (8 for float64). At p = 2 in float32 and float64 u is w itself: no state,
    and without `normalized` the step is that of `torch.optim.SGD`, bit for bit.

    A parameter that was changed in place between steps (a projection, a reset, a loaded
    checkpoint), moved or cast is noticed, and entries that are not the image of u take up
    u = grad psi(w) anew. Entries without a gradient are not moved, not even by the rounding of u;
    parameters that have some take longer. Writing through `param.data` in place is what torch
    hides from everyone: call `refresh()` after it.

    On the host `torch.compile(optimizer.step)` makes one loop of a step's calls, which is about
    twice as fast where the power is taken by roots and products (p = 1.1, 1.5, 3, 5, 9).

    An entry whose gradient is NaN or infinite becomes so itself and no other: it does not count in
    the norm of a normalised step.

    Plain steps act entry by entry: sharded parameters (FSDP) need nothing. A normalised step needs
    the norm of the whole gradient: under sharding it would be that of each shard, and is wrong.

    Args:
        params: parameters, or groups of them with their own p, lr and so on. A p that is given
            for `model.parameters()` moves embeddings and norms with it too: `attention_groups`
            makes groups in which attention weights alone have it.
        lr: eta at least 0, a number or a tensor with one.
        p: exponent 1 < p < inf.
        normalized: whether to divide by the dual norm.
        eps: added to that norm.
        floor: dual norm at or below which a block does not move, decay included; the smallest
            normal number over its rounding unit when None.
        weight_decay: lambda, at least 0; it shrinks u.
        block: range of the norm: None for the group, "tensor" for each parameter by itself, (axis,
            repeats, sizes) for fused ones, as in `attlas.torch.blocks`.
        maximize: whether to ascend.
        foreach: whether to make one call for all tensors, which takes no other bits. When None,
            where all of them are on an accelerator; on the host pieces that fit the cache are
            faster.

    Raises:
        UserError: for an argument that is not a number or out of range, complex parameters, and
            at a step sparse gradients.

    Examples:
        At p = 3, u = w |w| moves from (1, 0) to (4, -1).

        >>> w = torch.nn.Parameter(torch.tensor([1.0, 0.0]))
        >>> optimizer = LpMirrorDescent([w], lr=0.5, p=3.0)
        >>> (torch.tensor([-6.0, 2.0]) @ w).backward()
        >>> optimizer.step()
        >>> w.tolist()
        [2.0, -1.0]
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-3,
        p: float = 2.0,
        *,
        normalized: bool = False,
        eps: float = 0.0,
        floor: float | None = None,
        weight_decay: float = 0.0,
        block: Any = None,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        self._marks: dict[Tensor, tuple[Any, ...]] = {}
        defaults = {
            "lr": lr,
            "p": p,
            "normalized": normalized,
            "eps": eps,
            "floor": floor,
            "weight_decay": weight_decay,
            "block": block,
            "maximize": maximize,
            "foreach": foreach,
        }
        require_arguments({**defaults, "params": [], "block": None})
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Of tensors that may be others now.
        self._marks = {}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters, which train by the defaults where the group sets no others.

        Raises:
            UserError: for a value out of range; nothing is added then.
        """
        super().add_param_group(param_group)
        try:
            require_arguments(self.param_groups[-1])
        except UserError:
            self.param_groups.pop()
            raise

    @torch._disable_dynamo
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a saved state, bit for bit: the mirror variables keep their own type.

        Args:
            state_dict: result of `state_dict()` of an optimiser with groups of the same sizes.
        """
        super().load_state_dict(state_dict)
        # torch casts a state to its parameter's type, which would round u to bfloat16.
        saved = [index for group in state_dict["param_groups"] for index in group["params"]]
        parameters = [index for group in self.param_groups for index in group["params"]]
        for key, param in zip(saved, parameters, strict=True):
            state = state_dict["state"].get(key, {})
            if "dual" in state:
                dtype = _dual_dtype(param)
                self.state[param]["dual"] = state["dual"].to(param.device, dtype, copy=True)

    def refresh(self) -> None:
        """Look at every parameter again in the next step, for changes through `param.data`."""
        self._marks = {}

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step for every parameter that has a gradient; returns what the closure returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        compiling = torch.compiler.is_compiling()
        jobs = self._prepare(compiling)
        if compiling:
            # Without branches on the tensors, and with numbers as tensors: compiled once.
            for work in (work for works in jobs for work in works):
                whole_step(work)
        else:
            for group, works in zip(self.param_groups, jobs, strict=True):
                run_steps(works, group["foreach"])
        self._mark(jobs)
        return loss

    @torch._disable_dynamo
    def _prepare(self, compiling: bool) -> list[list[Work]]:
        """What even steps are to do, per group; gradient descent and closer looks are done here."""
        jobs = []
        for group in self.param_groups:
            if _is_euclidean(group):
                _gradient_step(group)
                jobs.append([])
                continue
            params = _with_gradients(group["params"])
            for w in params:
                _require_dense(w)
            duals = [self._dual(w, group["p"]) for w in params]
            even = []
            for work in works_of(group, params, duals, compiling):
                if work.in_place or self._marks.get(work.w) == (*_signature(work.w), True):
                    even.append(work)
                else:
                    self._careful_step(work, group["p"])
            jobs.append(even)
        return jobs

    def _dual(self, w: Tensor, p: float) -> Tensor:
        """The mirror variable of a parameter for this p, taken up anew where there is none."""
        if p == 2 and w.dtype == _dual_dtype(w):
            self.state.pop(w, None)
            return w
        state = self.state[w]
        if state.get("p") != p or state["dual"].dtype != _dual_dtype(w):
            state["dual"], state["p"] = _mirrored(w, p), p
            self._marks.pop(w, None)
        return state["dual"]

    def _careful_step(self, work: Work, p: float) -> None:
        """A step that keeps what is no image where u stays, and looks for changes from outside."""
        w, dual = work.w, work.dual
        if self._marks.get(w, ())[:-1] != _signature(w):
            dual.copy_(torch.where(_image(dual, w, p) == w, dual, _mirrored(w, p)))
        before = dual.clone()
        move_dual(work)
        place = _image(dual, w, p)
        # A weight may differ from its image by rounding: without a gradient it is left as it is.
        w.copy_(torch.where((dual != before) | pushed(work), place, w))
        self._marks[w] = (*_signature(w), bool((place == w).all()))

    @torch._disable_dynamo
    def _mark(self, jobs: list[list[Work]]) -> None:
        for work in (work for works in jobs for work in works):
            if not work.in_place:
                self._marks[work.w] = (*_signature(work.w), True)


def _dual_dtype(w: Tensor) -> torch.dtype:
    return torch.float64 if w.dtype == torch.float64 else torch.float32


def _signature(w: Tensor) -> tuple[Any, ...]:
    """What changes with every change of a tensor that torch lets see."""
    return w._version, w.data_ptr(), w.dtype, w.device


def _mirrored(w: Tensor, p: float) -> Tensor:
    wide = w.detach().to(_dual_dtype(w))
    out = torch.empty_like(wide)
    signed_power_([out], [wide], power_of(p - 1, wide.dtype))
    return out


def _image(dual: Tensor, w: Tensor, p: float) -> Tensor:
    out = torch.empty_like(dual)
    signed_power_([out], [dual], power_of(1 / (p - 1), dual.dtype))
    return out.to(w.dtype)


def _require_dense(w: Tensor) -> None:
    if w.grad is not None and w.grad.layout != torch.strided:
        raise UserError(
            f"a gradient of shape {tuple(w.shape)} is sparse: mirror descent moves every entry; "
            "build the embedding with sparse=False"
        )


def _with_gradients(params: list[Tensor]) -> list[Tensor]:
    return [w for w in params if w.grad is not None and w.numel()]


def _is_euclidean(group: dict[str, Any]) -> bool:
    """Whether the step is that of gradient descent, u being w."""
    exact = all(w.dtype == _dual_dtype(w) for w in group["params"])
    return group["p"] == 2 and exact and not group["normalized"]


def _gradient_step(group: dict[str, Any]) -> None:
    params = _with_gradients(group["params"])
    if not params:
        return
    for w in params:
        _require_dense(w)
    sgd(
        params,
        [w.grad for w in params],
        [None for _ in params],
        foreach=group["foreach"],
        weight_decay=group["weight_decay"],
        momentum=0.0,
        lr=group["lr"],
        dampening=0.0,
        nesterov=False,
        maximize=group["maximize"],
    )
