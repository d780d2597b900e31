"""One teacher on inputs that are attended in several ways, for students with and without f."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from liu2021analyzing.library.data.attended_regression import (
    attended_inputs,
    attention_matrix,
    balanced_layers,
    layer_outputs,
)

Task = tuple[Float[np.ndarray, "n p"], Float[np.ndarray, " n"]]


def attended_tasks(
    rng: np.random.Generator, p: int, d: int, s0: Sequence[int], n: int, fresh: int
) -> Iterator[Task]:
    r"""What a student reads and the truth $w_2'(W_1'(x\circ f(x)))_+$, for each f and student.

    First equal weights f; then weights on s0 fixed places, for each s0, and on s0 moving places.
    Each of the latter comes twice: for a student that knows f and reads x o f(x), and for one
    that reads x.

    Args:
        rng: of the draws.
        p: inputs.
        d: hidden units of the teacher, an even number.
        s0: sizes of the support.
        n: samples to train on.
        fresh: samples after these, over which the truth has deviation one.

    Yields:
        Inputs of a student, n + fresh of them, and the truth.

    Examples:
        >>> tasks = list(attended_tasks(np.random.default_rng(0), 4, 2, [2], 5, 100))
        >>> len(tasks), tasks[0][0].shape, (tasks[2][0][0] == tasks[4][0][0]).all().item()
        (5, (105, 4), True)
    """
    W1, w2 = balanced_layers(rng, p, d)
    x = rng.uniform(-1, 1, (n + fresh, p))
    M = attention_matrix(rng, p)
    inputs = [attended_inputs(x, size, where) for where in (None, M) for size in s0]
    for k, u in enumerate([x / np.sqrt(p), *inputs]):
        truth = layer_outputs(u, W1, w2)
        truth /= truth[n:].std()
        yield u, truth
        if k:
            yield x, truth
