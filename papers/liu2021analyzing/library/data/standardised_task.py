"""Noisy samples of any teacher, whose truth has mean zero and deviation one."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


class StandardisedTask(NamedTuple):
    """Training inputs and labels, fresh inputs and their truth."""

    x: Float[np.ndarray, " n *shape"]
    y: Float[np.ndarray, " n"]
    fresh: Float[np.ndarray, " m *shape"]
    truth: Float[np.ndarray, " m"]


def standardised_task(
    rng: np.random.Generator,
    teacher: Callable[[Array], Array],
    n: int,
    fresh: int,
    shape: tuple[int, ...],
    noise: float,
) -> StandardisedTask:
    r"""Samples y = (teacher(x) - m) / s + noise, with mean m and deviation s over fresh inputs.

    Fresh inputs are drawn first: tasks of one generator share them, and their first samples.

    Args:
        teacher: any model of one input.
        fresh: inputs to test on.
        shape: shape of one input, whose entries are uniform in [-1, 1].
        noise: deviation of the labels' Gaussian noise.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> task = standardised_task(rng, lambda x: 3 + x[0], 5, 100, (2,), noise=0.5)
        >>> task.x.shape, bool(abs(task.truth.mean()) < 1e-6), round(float(task.truth.std()), 6)
        ((5, 2), True, 1.0)
    """
    inputs = rng.uniform(-1, 1, (fresh, *shape))
    x = rng.uniform(-1, 1, (n, *shape))
    spread = noise * rng.standard_normal(n)
    every_input = jnp.asarray(np.concatenate([inputs, x]))
    values = np.asarray(_outputs(teacher, every_input), float)
    values = (values - values[:fresh].mean()) / values[:fresh].std()
    return StandardisedTask(x, values[fresh:] + spread, inputs, values[:fresh])


@eqx.filter_jit
def _outputs(teacher: Callable[[Array], Array], x: Float[Array, " n *shape"]) -> Array:
    return jax.vmap(teacher)(x)
