r"""Leave-one-out trainings: n trajectories, each blind to one sample (deora2023optimization, 6.2).

L^{-i}(theta) = (1/n) sum_{j != i} l_j(theta) divides by n, as the paper does. Sample i has weight
0 instead of being cut out, so that one compiled program runs all trajectories in chunks.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.tree_util import Partial
from jaxtyping import Array, Float

from attlas._jax.loop_jit import loop_jit
from attlas.training.ensemble import cache_width
from attlas.training.fit import Ensemble, fit
from attlas.training.gradient_descent import Samples, empirical_loss, require_trainable
from attlas.training.trajectory import Trajectory


class LeaveOneOut(eqx.Module):
    r"""The training on all samples beside those that leave one out.

    Attributes:
        full: training on all samples.
        without: trainings without sample i, along a leading axis; their loss is L^{-i}.
        distance: ||theta_k - theta_k^{-i}||.
    """

    full: Trajectory
    without: Trajectory
    distance: Float[Array, "n s"]

    @property
    def stability(self) -> Float[Array, " s"]:
        """Average model stability, the mean of ||theta_k - theta_k^{-i}|| over i."""
        return jnp.mean(self.distance, axis=0)


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
        >>> from attlas.models.attention.multi_head import make_multi_head
        >>> X = jnp.array([[[1.0]], [[-1.0]]])
        >>> found = leave_one_out(
        ...     make_multi_head(1, 1, 1), X, X[:, 0, 0], step_size=1.0, steps=1, record_at=(0, 1))
        >>> found.distance.tolist()
        [[0.0, 0.25], [0.0, 0.25]]
    """
    require_trainable(model, X, y, step_size, loss)
    n, width = X.shape[0], cache_width(model, X) if batch is None else batch
    found = fit(
        empirical_loss(loss),
        Partial(optax.sgd, jnp.asarray(step_size, X.dtype)),
        model,
        Samples(X, y, jnp.concatenate([jnp.ones((1, n)), 1 - jnp.eye(n)]).astype(X.dtype)),
        steps=steps,
        record_at=record_at,
        ensemble=Ensemble(data=Samples(False, False, True), chunk=width),
    )
    full, without = found.member(0), found.member(slice(1, None))
    return LeaveOneOut(full, without, _distance(full.params, without.params))


@loop_jit
def _distance(full: Any, without: Any) -> Float[Array, "n s"]:
    moved = (jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)) for tree in (full, without))
    pairs = zip(*moved, strict=True)
    squares = [jnp.sum((b - a[None]) ** 2, axis=tuple(range(2, b.ndim))) for a, b in pairs]
    return jnp.sqrt(sum(squares))
