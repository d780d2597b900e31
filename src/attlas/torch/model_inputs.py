"""A model that is run on a batch as it comes from a loader, and evaluation mode for a while."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards every module has its own mode again.

    Examples:
        >>> layer = nn.Dropout()
        >>> with evaluation_mode(layer):
        ...     layer.training
        False
        >>> layer.training
        True
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
