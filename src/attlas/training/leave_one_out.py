r"""Leave-one-out trainings: n trajectories, each blind to one sample (deora2023optimization, 6.2).

L^{-i}(theta) = (1/n) sum_{j != i} l_j(theta) divides by n, as the paper does. Sample i has weight
0 instead of being cut out, so that one compiled program runs all trajectories in chunks.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.training.ensemble import cache_width, in_chunks
from attlas.training.gradient_descent import Descent, descend, require_trainable
from attlas.training.trajectory import recording_schedule


class LeaveOneOut(eqx.Module):
    r"""The training on all samples beside those that leave one out.

    Attributes:
        full: training on all samples.
        without: trainings without sample i, along a leading axis; their loss is L^{-i}.
        distance: ||theta_k - theta_k^{-i}||.
    """

    full: Descent
    without: Descent
    distance: Float[Array, "n s"]

    @property
    def stability(self) -> Float[Array, " s"]:
        """Average model stability, the mean of ||theta_k - theta_k^{-i}|| over i."""
        return jnp.mean(self.distance, axis=0)


@eqx.filter_jit
def _blind(
    model: Any, weights: Array, X: Array, y: Array, step_size: Array, schedule: Array, loss: str
) -> Descent:
    return jax.vmap(lambda w: descend(model, X, y, w, step_size, schedule, loss))(weights)


def leave_one_out(
    model: Any,
    X: Float[Array, "n T d"],
    y: Float[Array, " n"],
    *,
    step_size: float | Float[Array, ""],
    steps: int,
    record_at: Sequence[int] | None = None,
    loss: str = "logistic",
    batch: int | None = None,
) -> LeaveOneOut:
    r"""Gradient descent on all samples, and n times without one of them, from one start.

    The cost is (n + 1) x steps gradients, the memory (n + 1) x records models.

    Args:
        model: the start, `MultiHead` or any Equinox module from tokens to a scalar.
        X: samples.
        y: labels +-1.
        step_size: eta.
        steps: number of steps.
        record_at: increasing step numbers to record; log-spaced ones when None.
        loss: name of a margin loss.
        batch: trajectories that run together; what fits the cache when None.

    Returns:
        All trajectories.

    Examples:
        >>> from attlas.models.multi_head import make_multi_head
        >>> X = jnp.array([[[1.0]], [[-1.0]]])
        >>> found = leave_one_out(
        ...     make_multi_head(1, 1, 1), X, X[:, 0, 0], step_size=1.0, steps=1, record_at=(0, 1))
        >>> found.distance.tolist()
        [[0.0, 0.25], [0.0, 0.25]]
    """
    require_trainable(model, X, y, step_size, loss)
    n = X.shape[0]
    schedule = jnp.asarray(recording_schedule(steps, record_at), int)
    weights = np.concatenate([np.ones((1, n)), 1 - np.eye(n)]).astype(X.dtype)
    rate = jnp.asarray(step_size, X.dtype)
    width = cache_width(model, X) if batch is None else batch
    found = in_chunks(lambda w: _blind(model, w, X, y, rate, schedule, loss), weights, width)
    full, without = (
        eqx.tree_at(
            lambda path: path.steps, jax.tree.map(lambda a, part=part: a[part], found), schedule
        )
        for part in (0, slice(1, None))
    )
    return LeaveOneOut(full, without, _distance(full.model, without.model))


@jax.jit
def _distance(full: Any, without: Any) -> Float[Array, "n s"]:
    moved = (jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)) for tree in (full, without))
    pairs = zip(*moved, strict=True)
    squares = [jnp.sum((b - a[None]) ** 2, axis=tuple(range(2, b.ndim))) for a, b in pairs]
    return jnp.sqrt(sum(squares))
