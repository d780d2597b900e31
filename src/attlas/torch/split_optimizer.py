"""Mirror descent for the attention weights and another optimiser for the rest, as one object."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from attlas.core.errors import UserError
from attlas.torch.lp_mirror_descent import LpMirrorDescent, keep_types


class SplitOptimizer(torch.optim.Optimizer):
    """Two optimisers in one, for schedulers, `transformers.Trainer`, accelerate and checkpoints.

    Groups and state are those of the two parts themselves: what a scheduler writes into a group
    reaches the part, and `state_dict` holds all. An entry "part" of each group is 0 for mirror
    descent and 1 for the rest.

    Where the rest has `betas`, as AdamW has, OneCycleLR and CyclicLR cycle the first of them: the
    groups of mirror descent have `betas` too then, and the first is their momentum. Their largest
    rates are given for each group: `max_lr=[group["lr"] for group in optimizer.param_groups]`.

    Args:
        mirror: the optimiser that trains the attention weights.
        remainder: the optimiser that trains all other parameters.

    Raises:
        UserError: if a parameter is in both.

    Examples:
        >>> a, b = (torch.nn.Parameter(torch.tensor([1.0])) for _ in range(2))
        >>> mirror = LpMirrorDescent([a], lr=0.5, p=3.0, scaling="plain")
        >>> optimizer = SplitOptimizer(mirror, torch.optim.SGD([b], lr=0.5))
        >>> (0.38 * a + b).backward()
        >>> optimizer.step()
        >>> [round(w.item(), 6) for w in (a, b)]
        [0.9, 0.5]
    """

    def __init__(self, mirror: LpMirrorDescent, remainder: torch.optim.Optimizer) -> None:
        self.parts = (mirror, remainder)
        first = {w for group in mirror.param_groups for w in group["params"]}
        _require_apart(first, [w for group in remainder.param_groups for w in group["params"]])
        for part, optimizer in enumerate(self.parts):
            for group in optimizer.param_groups:
                group["part"] = part
        for group in mirror.param_groups:
            self._take_betas(group)
        cycled = {
            name: remainder.defaults[name] for name in ("betas",) if name in remainder.defaults
        }
        defaults = {"lr": mirror.defaults["lr"], "momentum": mirror.defaults["momentum"], **cycled}
        super().__init__([*mirror.param_groups, *remainder.param_groups], defaults)
        for optimizer in self.parts:
            self.state.update(optimizer.state)
        self._link()

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "parts": self.parts}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._link()

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to mirror descent where the group has a p, else to the rest.

        Raises:
            UserError: for a value of mirror descent that is out of range, or a parameter that is
                there already; nothing is added then.
        """
        if "part" not in param_group:
            params = param_group["params"]
            params = [params] if isinstance(params, Tensor) else list(params)
            _require_apart({w for group in self.param_groups for w in group["params"]}, params)
            param_group = {**param_group, "params": params}
            part = 0 if "p" in param_group else 1
            self.parts[part].add_param_group(param_group)
            param_group = self.parts[part].param_groups[-1]
            param_group["part"] = part
            if part == 0:
                self._take_betas(param_group)
        super().add_param_group(param_group)

    @torch._disable_dynamo
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from a saved state, bit for bit.

        Raises:
            UserError: if the state is none of a split optimiser with the same parts.
        """
        theirs = [group.get("part") for group in state_dict["param_groups"]]
        numbers = [group["part"] for group in self.param_groups]
        if theirs != numbers:
            raise UserError(
                f"the state has groups of parts {theirs}, this optimiser {numbers}: load a state "
                "that a split optimiser of the same model and parts has saved"
            )
        super().load_state_dict(state_dict)
        keep_types(self, state_dict)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of both parts; returns what the closure returns."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.parts[0].param_groups:
            if "betas" in group:
                group["momentum"] = float(group["betas"][0])
        for optimizer in self.parts:
            optimizer.step()
        return loss

    def refresh(self) -> None:
        """Look at every parameter of mirror descent again, for changes through `param.data`."""
        self.parts[0].refresh()

    def _take_betas(self, group: dict[str, Any]) -> None:
        betas = self.parts[1].defaults.get("betas")
        if betas is not None:
            group["betas"] = (group["momentum"], *betas[1:])

    def _link(self) -> None:
        """Make groups and state those of the parts, after either has been replaced."""
        for part, optimizer in enumerate(self.parts):
            groups = [group for group in self.param_groups if group["part"] == part]
            optimizer.__setstate__({"state": self.state, "param_groups": groups})


def _require_apart(first: set[Tensor], others: list[Tensor]) -> None:
    for w in others:
        if w in first:
            raise UserError(
                f"a parameter of shape {tuple(w.shape)} is trained by both parts: give it to one"
            )
