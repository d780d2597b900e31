r"""Mirror descent for the potential psi(w) = (1/p) sum |w|^p, as a PyTorch optimiser.

The mirror map is [grad psi(w)]_j = sign(w_j) |w_j|^{p-1}, and one step reads
grad psi(w+) = grad psi(w) - eta grad L(w) (l_p-AttGD of julistiono2024optimizing).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim.sgd import sgd

from attlas.core.errors import UserError
from attlas.torch.arguments import require_arguments
from attlas.torch.signed_power import power_of, signed_power_
from attlas.torch.steps import Work, move_dual, pushed, run_steps, whole_step, works_of


class LpMirrorDescent(torch.optim.Optimizer):
    r"""l_p mirror descent in relative, normalised or plain steps, with momentum.

    m+ = mu m + g, u+ = (1 - eta lambda) u - eta s m+, w+ = sign(u+) |u+|^{1/(p-1)}, with
    u = grad psi(w), momentum mu, weight decay lambda and, with q = p / (p - 1),

    - "relative": s = (p - 1) ||u||_q / (||m+||_q + eps): a step changes u by (p - 1) eta of its
      norm, and so w by about eta, in whatever units loss and weights are: one rate serves every p.
      Smaller weights than 0.001 count as that large; what starts at zero moves.
    - "normalized": s = 1 / (||m+||_q + eps), dual-normalised l_p-AttGD.
    - "plain": s = 1, l_p-AttGD of julistiono2024optimizing. A rate that trains is about that of
      SGD times a typical |w|^{p-2}: at p = 3 hundreds of times smaller steps than at p = 1.1.

    A norm is taken over each block of the parameter group (`block`; by default each parameter).

    The state is u in float32 (float64 for float64 parameters); the parameter is its image, rounded
    to the parameter's type, so that small updates add up where bfloat16 would lose them. It costs
    4 bytes per parameter (8 for float64), and m as much where there is momentum. At p = 2 in
    float32 and float64 u is w itself and not kept, and a plain step is that of `torch.optim.SGD`,
    bit for bit, but that decay stays out of the momentum.

    A parameter that was changed in place between steps (a projection, a reset, a loaded
    checkpoint), moved or cast is noticed, and entries that are not the image of u take up
    u = grad psi(w) anew. Entries without a gradient are not moved, not even by the rounding of u;
    parameters that have some take longer. Writing through `param.data` in place is what torch
    hides from everyone: call `refresh()` after it.

    On the host `torch.compile(optimizer.step)` makes one loop of a step's calls, which is about
    twice as fast where the power is taken by roots and products (p = 1.1, 1.5, 3, 5, 9).

    An entry whose gradient is NaN or infinite becomes so itself and no other: it does not count in
    a norm.

    Plain steps act entry by entry: sharded parameters (FSDP) need nothing. The other two need the
    norm of the whole gradient, and are refused where parameters are known to be sharded.

    Args:
        params: parameters, or groups of them with their own p, lr and so on. A p that is given
            for `model.parameters()` moves embeddings and norms with it too: `attention_groups`
            makes groups in which attention weights alone have it.
        lr: eta at least 0, a number or a tensor with one.
        p: exponent 1 < p < inf.
        momentum: mu, 0 <= mu < 1, under the name that OneCycleLR and CyclicLR cycle.
        scaling: "relative", "normalized" or "plain", as above.
        eps: a number that is added to the dual norm of m.
        floor: dual norm at or below which a block does not move, decay included; the smallest
            normal number over its rounding unit when None.
        weight_decay: lambda, at least 0; it shrinks u.
        block: range of a norm: "tensor" for each parameter by itself, None for the group, (axis,
            repeats, sizes) for fused ones, as in `attlas.torch.blocks`.
        maximize: whether to ascend.
        foreach: whether to make one call for all tensors, which takes no other bits. When None,
            where all of them are on an accelerator; on the host pieces that fit the cache are
            faster.

    Raises:
        UserError: for an argument that is not a number or out of range, complex parameters,
            sharded ones where a norm is needed, and at a step sparse gradients.

    Examples:
        At p = 3, u = w |w| moves from (1, 0) to (4, -1).

        >>> w = torch.nn.Parameter(torch.tensor([1.0, 0.0]))
        >>> optimizer = LpMirrorDescent([w], lr=0.5, p=3.0, scaling="plain")
        >>> (torch.tensor([-6.0, 2.0]) @ w).backward()
        >>> optimizer.step()
        >>> w.tolist()
        [2.0, -1.0]

        A relative step of 0.48 takes u = 4 to 0.16, whatever the size of the gradient.

        >>> for size in (1.0, 1e6):
        ...     w = torch.nn.Parameter(torch.tensor([2.0]))
        ...     (size * w).sum().backward()
        ...     LpMirrorDescent([w], lr=0.48, p=3.0).step()
        ...     print(f"{w.item():.3f}")
        0.400
        0.400
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-2,
        p: float = 2.0,
        *,
        momentum: float = 0.0,
        scaling: str = "relative",
        eps: float = 0.0,
        floor: float | None = None,
        weight_decay: float = 0.0,
        block: Any = "tensor",
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        self._marks: dict[Tensor, tuple[Any, ...]] = {}
        defaults = {
            "lr": lr,
            "p": p,
            "momentum": momentum,
            "scaling": scaling,
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
        for group in self.param_groups:
            # Of states from before there were three scalings and momentum.
            group.setdefault("momentum", 0.0)
            old = "normalized" if group.pop("normalized", False) else "plain"
            group.setdefault("scaling", old)
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
        """Continue from a saved state, bit for bit: its tensors keep their own type.

        Args:
            state_dict: result of `state_dict()` of an optimiser with groups of the same sizes.
        """
        super().load_state_dict(state_dict)
        keep_types(self, state_dict)

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
                self._gradient_step(group)
                jobs.append([])
                continue
            params = _with_gradients(group["params"])
            pushes = self._pushes(group, params)
            duals = [self._dual(w, group["p"]) for w in params]
            even = []
            for work in works_of(group, params, duals, pushes, compiling):
                if work.in_place or self._marks.get(work.w) == (*_signature(work.w), True):
                    even.append(work)
                else:
                    self._careful_step(work, group["p"])
            jobs.append(even)
        return jobs

    def _pushes(self, group: dict[str, Any], params: list[Tensor]) -> list[Tensor]:
        """What moves the mirror variables: gradients, or with momentum their discounted sums."""
        for w in params:
            _require_dense(w)
        if not group["momentum"]:
            for w in params:
                self._forget(w, "momentum")
            return [w.grad for w in params]
        pushes = []
        for w in params:
            state, grad = self.state[w], w.grad.to(_dual_dtype(w))
            if "momentum" in state:
                state["momentum"] = state["momentum"].to(grad).mul_(group["momentum"]).add_(grad)
            else:
                state["momentum"] = grad.clone()
            pushes.append(state["momentum"])
        return pushes

    def _gradient_step(self, group: dict[str, Any]) -> None:
        """The step at p = 2, which torch makes."""
        params = _with_gradients(group["params"])
        if not params:
            return
        momentum, lr, decay = group["momentum"], group["lr"], group["weight_decay"]
        pushes = self._pushes(group, params)
        if momentum and decay:
            for w in params:
                w.mul_(1 - lr * decay)
        sgd(
            params,
            pushes,
            [None for _ in params],
            foreach=group["foreach"],
            weight_decay=0.0 if momentum else decay,
            momentum=0.0,
            lr=lr,
            dampening=0.0,
            nesterov=False,
            maximize=group["maximize"],
        )

    def _forget(self, w: Tensor, *names: str) -> None:
        """Drop entries of a parameter's state, and the state where nothing is left."""
        state = self.state.get(w)
        if state is None:
            return
        for name in names:
            state.pop(name, None)
        if not state:
            del self.state[w]

    def _dual(self, w: Tensor, p: float) -> Tensor:
        """The mirror variable of a parameter for this p, taken up anew where there is none."""
        if p == 2 and w.dtype == _dual_dtype(w):
            self._forget(w, "dual", "p")
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


def keep_types(optimizer: torch.optim.Optimizer, state_dict: Mapping[str, Any]) -> None:
    """Restore mirror variables and momentum that torch has cast to the types of their parameters.

    Args:
        optimizer: the optimiser, which has just read the state.
        state_dict: the dictionary that it was given, with tensors as they were saved.

    Examples:
        >>> w = torch.nn.Parameter(torch.ones(1, dtype=torch.bfloat16))
        >>> w.grad = torch.ones_like(w)
        >>> optimizer = LpMirrorDescent([w], lr=0.001, p=3.0)
        >>> optimizer.step()
        >>> torch.optim.Optimizer.load_state_dict(optimizer, saved := optimizer.state_dict())
        >>> optimizer.state[w]["dual"].dtype
        torch.bfloat16
        >>> keep_types(optimizer, saved)
        >>> optimizer.state[w]["dual"]
        tensor([0.9980])
    """
    keys = [index for group in state_dict["param_groups"] for index in group["params"]]
    parameters = [w for group in optimizer.param_groups for w in group["params"]]
    for key, param in zip(keys, parameters, strict=True):
        state = state_dict["state"].get(key, {})
        for name in {"dual", "momentum"} & state.keys():
            wide = state[name].to(param.device, _dual_dtype(param), copy=True)
            optimizer.state[param][name] = wide


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
    return group["p"] == 2 and exact and group["scaling"] == "plain"
