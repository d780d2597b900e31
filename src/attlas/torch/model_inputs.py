"""A batch of inputs as it comes from a loader, handed to a model on the model's device."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


def run_on(model: nn.Module, inputs: Any, device: torch.device) -> Any:
    """What a model returns for a mapping of keywords, a tuple of arguments, or one argument.

    Args:
        inputs: tensors in it are moved to the device.

    Examples:
        >>> host = torch.device("cpu")
        >>> run_on(nn.Identity(), (torch.ones(2),), host).tolist()
        [1.0, 1.0]
        >>> run_on(nn.Identity(), {"input": torch.ones(1)}, host).tolist()
        [1.0]
    """
    if isinstance(inputs, Mapping):
        return model(**{name: moved(value, device) for name, value in inputs.items()})
    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    return model(*(moved(value, device) for value in arguments))


def moved(value: Any, device: torch.device) -> Any:
    """A tensor on a device; anything else as it is.

    Examples:
        >>> moved("text", torch.device("cpu"))
        'text'
    """
    return value.to(device) if isinstance(value, Tensor) else value
