"""Students of a regression task, each the best of several starts, and their test errors."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from liu2021analyzing.library.data.standardised_task import StandardisedTask
from liu2021analyzing.library.models.stacked_outputs import stacked_outputs
from liu2021analyzing.library.models.two_layer import TwoLayer
from liu2021analyzing.library.solvers.levenberg_marquardt import best_starts, levenberg_marquardt


def student_errors(
    task: StandardisedTask,
    predict: Callable[..., Array],
    starts: Any,
    *args: Any,
    repeats: int,
    **settings: Any,
) -> Float[np.ndarray, " students"]:
    r"""Mean square distance from the truth over fresh inputs, at the end of least training risk.

    Args:
        task: samples and truth.
        predict: output predict(network, x, *args) of one network on one input.
        starts: networks with a leading axis: each student's starts stand together.
        *args: further arguments of `predict`, with that axis.
        repeats: starts of each student.
        **settings: of `levenberg_marquardt`: penalties, weights of the samples, steps.

    Returns:
        One error per student.

    Examples:
        >>> x, y = np.array([[1.0], [2.0]]), np.array([3.0, 6.0])
        >>> task = StandardisedTask(x, y, np.array([[1.0]]), np.array([2.0]))
        >>> student_errors(task, lambda w, x: w @ x, np.ones((2, 1)), repeats=2).round(6).tolist()
        [1.0]
    """
    count = jax.tree.leaves(starts)[0].shape[0]
    x, y = (np.repeat(a[None], count, axis=0) for a in (task.x, task.y))
    ends = levenberg_marquardt(predict, starts, x, y, *args, **settings)
    best, own = best_starts(ends, repeats).value, [a[::repeats] for a in args]
    outputs = stacked_outputs(predict, *jax.device_put((best, task.fresh, *own)))
    return np.mean((np.asarray(outputs) - task.truth) ** 2, axis=1)


def on_all_words(network: TwoLayer, x: Float[Array, "t p"]) -> Float[Array, ""]:
    """The output of a network that reads all words, the columns of x, as one vector.

    Args:
        network: of t p inputs.
        x: one input.

    Returns:
        The output.

    Examples:
        >>> import jax.numpy as jnp
        >>> network = TwoLayer(jnp.eye(4), jnp.array([1.0, 10.0, 100.0, 1000.0]))
        >>> float(on_all_words(network, jnp.array([[1.0, 2.0], [3.0, 4.0]])))
        4231.0
    """
    return network(x.T.reshape(-1))
