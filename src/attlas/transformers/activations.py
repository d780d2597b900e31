"""Activations by the names that configuration files use."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attlas.core.errors import UserError

_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "gelu_new": lambda x: jax.nn.gelu(x, approximate=True),
    "gelu_pytorch_tanh": lambda x: jax.nn.gelu(x, approximate=True),
    "gelu_fast": lambda x: jax.nn.gelu(x, approximate=True),
    "linear": lambda x: x,
    "quick_gelu": lambda x: x * jax.nn.sigmoid(1.702 * x),
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "swish": jax.nn.silu,
    "tanh": jnp.tanh,
}
ACTIVATIONS = tuple(sorted(_ACTIVATIONS))
"""Names that are known."""


def activation(name: str) -> Callable[[Array], Array]:
    """The elementwise function of that name.

    Raises:
        UserError: if no function has that name.

    Examples:
        >>> float(activation("relu")(jnp.array(-1.0)))
        0.0
        >>> activation("mish")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: activation 'mish' is not known: choose one of gelu, \
gelu_fast, gelu_new, gelu_pytorch_tanh, linear, quick_gelu, relu, silu, swish, tanh
    """
    if name not in _ACTIVATIONS:
        raise UserError(f"activation '{name}' is not known: choose one of {', '.join(ACTIVATIONS)}")
    return _ACTIVATIONS[name]
