"""Two-layer students of one teacher on inputs that are attended in several ways."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float

from liu2021analyzing.library.data.attended_regression import attended_tasks, layer_outputs
from liu2021analyzing.library.levenberg_marquardt import best_starts, levenberg_marquardt
from liu2021analyzing.library.models.two_layer import TwoLayer

SHARED = 1024
"""Samples up to which all sizes share one program; a larger one is worth a program of its own."""


class AttendedStudents(NamedTuple):
    """Trained students, by task of `attended_tasks` and sample size.

    Attributes:
        error: mean square distance from the truth over fresh inputs.
        reached: whether the training loss is at most that of the truth.
    """

    error: Float[np.ndarray, "tasks sizes"]
    reached: Bool[np.ndarray, "tasks sizes"]


def train_attended_students(
    seed: int,
    s0: Sequence[int],
    p: int,
    d: int,
    sizes: Sequence[int],
    noise: float,
    fresh: int,
    starts: int,
    max_steps: int,
    at_once: int | None = None,
) -> AttendedStudents:
    r"""Students $w_2'(W_1'u)_+$ of the teacher's width on $y=w_2'(W_1'(x\circ f(x)))_++\epsilon$.

    Of several starts the end of least training loss is taken. A smaller sample is the beginning
    of a larger one.

    Args:
        s0: sizes of the supports of f.
        d: hidden units, an even number.
        sizes: sample sizes, increasing.
        noise: deviation of the labels about a truth of deviation one.
        fresh: inputs of the test.
        starts: number of starts per student.
        max_steps: steps of the damped Gauss-Newton method.
        at_once: starts that are trained together.

    Examples:
        >>> found = train_attended_students(0, [2], 4, 2, [16, 64], 0.5, 100, 1, 5)
        >>> found.error.shape, found.reached.shape
        ((5, 2), (5, 2))
    """
    n, rng = int(sizes[-1]), np.random.default_rng([seed, p, 1])
    tasks = list(attended_tasks(np.random.default_rng([seed, p]), p, d, s0, n, fresh))
    errors, shape = noise * rng.standard_normal(n), (len(tasks), len(sizes), starts)
    W1, w2 = _starts(rng, shape, p, d, [np.sum(u[:n] ** 2) / n for u, _ in tasks])
    x, y = (np.stack(a) for a in zip(*((u[:n], t[:n] + errors) for u, t in tasks), strict=True))
    solved = [
        _best(
            W1[:, some].reshape(len(tasks), -1, p, d), w2[:, some].reshape(len(tasks), -1, d),
            x[:, : sizes[some[-1]]], y[:, : sizes[some[-1]]], np.asarray(sizes)[some],
            max_steps, at_once,
        )
        for some in _sharing(sizes)
    ]  # fmt: skip
    *layers, risk = (np.concatenate(a, axis=1) for a in zip(*solved, strict=True))
    mean_squares = [
        [
            np.mean((layer_outputs(u[n:], *pair) - truth[n:]) ** 2)
            for pair in zip(*student_layers, strict=True)
        ]
        for (u, truth), *student_layers in zip(tasks, *layers, strict=True)
    ]
    beginning = np.cumsum(errors**2)[np.asarray(sizes) - 1]
    reached = risk <= beginning / (2 * np.asarray(sizes))
    return AttendedStudents(np.array(mean_squares), reached)


def _best(
    W1: np.ndarray,
    w2: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    sizes: np.ndarray,
    max_steps: int,
    at_once: int | None,
) -> list[np.ndarray]:
    """Layers and training loss of the best start, by task and size; starts come size by size."""
    tasks, count = w2.shape[:2]
    starts = count // len(sizes)
    mask = (np.arange(x.shape[1]) < sizes[:, None]).astype(float)
    layers = (a.reshape(-1, *a.shape[2:]) for a in (W1, w2))
    ends = levenberg_marquardt(
        TwoLayer.__call__,
        jax.vmap(TwoLayer)(*map(jax.device_put, layers)),
        *(np.repeat(a, count, axis=0) for a in (x, y)),
        weights=np.tile(np.repeat(mask, starts, axis=0), (tasks, 1)),
        max_steps=max_steps,
        at_once=at_once,
    )
    best = best_starts(ends, starts)
    fields = (best.value.W1, best.value.w2, best.stats["risk"])
    return [np.asarray(a).reshape(tasks, len(sizes), *a.shape[1:]) for a in fields]


def _sharing(sizes: Sequence[int]) -> list[list[int]]:
    """Places of the sizes whose samples are padded to those of the largest among them."""
    small = [k for k, n in enumerate(sizes) if n <= SHARED]
    return [*([small] if small else []), *([k] for k, n in enumerate(sizes) if n > SHARED)]


def _starts(
    rng: np.random.Generator, shape: tuple[int, ...], p: int, d: int, squares: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian weights; the first layer in units of the root mean square of each task's inputs."""
    W1 = rng.standard_normal((*shape, p * d))
    W1 /= np.sqrt(squares)[:, None, None, None]
    return W1, rng.standard_normal((*shape, d)) / np.sqrt(d)
