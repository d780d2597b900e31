"""`jax.jit` with the compiler options that pay for long loops."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp

from attlas._jax.compilation import loop_options
from attlas._jax.device_arrays import is_traced


def loop_jit(
    function: Callable[..., Any] | None = None,
    *,
    jit: Callable[..., Callable[..., Any]] = jax.jit,
    **settings: Any,
) -> Callable[..., Any]:
    """`jax.jit` of a function whose loop runs longer than compiling takes.

    It uses `attlas._jax.compilation.loop_options`. JAX takes options of a complete program only:
    inside another program those of the outer one hold. Without a function it is a decorator.

    Examples:
        >>> twice = loop_jit(lambda x: 2 * x)
        >>> float(twice(1.0)), float(jax.jit(twice)(1.0)), float(jax.grad(twice)(1.0))
        (2.0, 2.0, 2.0)
    """
    if function is None:
        return partial(loop_jit, jit=jit, **settings)
    nested = jit(function, **settings)
    options = loop_options()
    if options is None:
        return nested
    looping = jit(function, compiler_options=options, **settings)

    @wraps(function)
    def program(*args: Any, **kwargs: Any) -> Any:
        # Under `jit` a new array is a tracer too, whatever the arguments are.
        met = (args, kwargs, jnp.zeros(()))
        traced = any(map(is_traced, jax.tree.leaves(met)))
        return (nested if traced else looping)(*args, **kwargs)

    return program
