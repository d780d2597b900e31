r"""Losses of a margin by name: value, derivative and logarithm of the slope together."""

import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple

from jaxtyping import Array

import attlas.losses
from attlas.core.errors import UserError


class MarginLoss(NamedTuple):
    r"""A strictly decreasing loss of the margin u = y f (Assumption A of julistiono2024optimizing).

    Attributes:
        value: l(u).
        derivative: l'(u).
        log_slope: log(-l'(u)), finite where l'(u) underflows.
    """

    value: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    log_slope: Callable[[Array], Array]


def margin_loss(name: str | MarginLoss) -> MarginLoss:
    """The loss of a given name: the file `losses/<name>.py` that defines all three functions.

    Args:
        name: "logistic", "exponential", "correlation", or any further file of the folder; or a loss
            itself, which is returned.

    Raises:
        UserError: if no such loss exists.

    Examples:
        >>> import jax.numpy as jnp
        >>> float(margin_loss("correlation").value(jnp.array(2.0)))
        -2.0
        >>> margin_loss("hinge")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: unknown loss 'hinge': choose one of correlation, ...
    """
    if isinstance(name, MarginLoss):
        return name
    files = sorted(info.name for info in pkgutil.iter_modules(attlas.losses.__path__))
    if name in files and _is_loss(name):
        file = _file(name)
        return MarginLoss(
            getattr(file, name),
            getattr(file, f"{name}_derivative"),
            getattr(file, f"{name}_log_slope"),
        )
    raise UserError(f"unknown loss {name!r}: choose one of {', '.join(filter(_is_loss, files))}")


def _file(name: str) -> ModuleType:
    return importlib.import_module(f"attlas.losses.{name}")


def _is_loss(name: str) -> bool:
    """Whether a file of the folder defines a margin loss of its name."""
    return hasattr(_file(name), f"{name}_log_slope")
