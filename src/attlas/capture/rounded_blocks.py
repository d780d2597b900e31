"""Weights of the blocks of a model, rounded to few bits while its loss is taken."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import nn

_BLOCK = re.compile(r"^(.*?\.\d+)(?:\.|$)")


def blocks_of(names: Sequence[str]) -> list[str]:
    """The blocks that attentions are part of: their names up to the first number, each once.

    Examples:
        >>> blocks_of(["h.0.attn", "h.1.self", "h.1.cross"])
        ['h.0', 'h.1']
    """
    matches = (_BLOCK.match(name) for name in names)
    return list(dict.fromkeys(match[1] for match in matches if match))


@contextmanager
def rounded_blocks(model: nn.Module, bits: Mapping[str, int]) -> Iterator[None]:
    """The matrices of some blocks rounded to equal steps, one size of step per output.

    Args:
        bits: number of bits by the name of the block; weights come back at the end.

    Examples:
        >>> model = nn.ModuleDict({"h": nn.ModuleList([nn.Linear(2, 1, bias=False)])})
        >>> _ = nn.init.constant_(model["h"][0].weight[:, :1].detach(), 1.0)
        >>> with rounded_blocks(model, {"h.0": 2}):
        ...     weight = model["h"][0].weight.detach().clone()
        >>> sorted({0.0, 1.0} | set(weight.abs().flatten().tolist()))
        [0.0, 1.0]
    """
    held: list[tuple[nn.Parameter, torch.Tensor]] = []
    try:
        with torch.no_grad():
            for name, number in bits.items():
                for path, module in model.get_submodule(name).named_modules():
                    inputs_first = type(module).__name__ == "Conv1D"
                    for weight in module.parameters(recurse=False):
                        if weight.dim() < 2 or not weight.is_floating_point():
                            continue
                        held.append((weight, weight.detach().clone()))
                        weight.copy_(_rounded(weight, number, -2 if inputs_first else -1))
                    del path
        yield
    finally:
        with torch.no_grad():
            for weight, before in reversed(held):
                weight.copy_(before)


def _rounded(weight: torch.Tensor, bits: int, inputs: int) -> torch.Tensor:
    step = weight.abs().amax(inputs, keepdim=True) / (2 ** (bits - 1) - 1)
    unit = torch.where(step > 0, step, torch.ones_like(step))
    return torch.where(step > 0, (weight / unit).round() * unit, weight)
