r"""Leave-one-out trainings: n trajectories, each without one sample (deora2023optimization, 6.2).

L^{-i}(theta) = (1/n) sum_{j != i} l_j(theta) divides by n, as the paper does. Sample i has weight
0 instead of being cut out, so that one compiled program runs all trajectories in chunks.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.tree_util import Partial
from jaxtyping import Array, Float

from attlas._jax.loop_jit import loop_jit
from attlas.losses.logistic import logistic
from attlas.training.ensemble import cache_width
from attlas.training.fit import Ensemble, fit
from attlas.training.gradient_descent import Samples, empirical_loss, require_trainable
from attlas.training.trajectory import Trajectory
from deora2023optimization.library.repeated_heads import RepeatedHeads


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
        y: labels, -1 or 1.
        record_at: increasing step numbers to record; log-spaced ones when None.
        loss: name of a margin loss.
        batch: trajectories that run together; what fits the cache when None.

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
    trajectories = fit(
        empirical_loss(loss),
        Partial(optax.sgd, jnp.asarray(step_size, X.dtype)),
        model,
        Samples(X, y, jnp.concatenate([jnp.ones((1, n)), 1 - jnp.eye(n)]).astype(X.dtype)),
        steps=steps,
        record_at=record_at,
        ensemble=Ensemble(data=Samples(False, False, True), chunk=width),
    )
    full, without = trajectories.member(0), trajectories.member(slice(1, None))
    return LeaveOneOut(full, without, _distance(full.params, without.params))


@loop_jit
def _distance(full: Any, without: Any) -> Float[Array, "n s"]:
    moved = (jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array)) for tree in (full, without))
    pairs = zip(*moved, strict=True)
    squares = [jnp.sum((b - a[None]) ** 2, axis=tuple(range(2, b.ndim))) for a, b in pairs]
    return jnp.sqrt(sum(squares))


class LeftOut(NamedTuple):
    """Stability of the leave-one-out trainings of one set after their last step.

    Attributes:
        stability: mean distance of the parameters from those trained on all samples.
        loo_gap: mean loss of the sample left out, less the training loss on all.
        lipschitz: largest gradient norm of the loss of one test sample at the leave-one-out
            models: a lower bound of the constant of Lemma 3 of deora2023optimization.
        largest_head: the largest head of these models.
    """

    stability: Float[Array, ""]
    loo_gap: Float[Array, ""]
    lipschitz: Float[Array, ""]
    largest_head: Float[Array, ""]


def left_out(
    start: RepeatedHeads,
    X: Float[Array, "n T d"],
    y: Float[Array, " n"],
    X_test: Float[Array, "N T d"],
    y_test: Float[Array, " N"],
    *,
    step_size: float,
    steps: int,
) -> LeftOut:
    """Train on all samples and without each of them, and compare.

    Args:
        start: initial parameters of every training.
        y: labels, -1 or 1.
        X_test: samples at which slopes are taken.

    Returns:
        Stability, the gap by leave-one-out, and sizes of the models.

    Examples:
        >>> start = RepeatedHeads(jnp.zeros((1, 1, 1)), jnp.zeros((1, 1, 1)), jnp.array([1]))
        >>> X, y = jnp.array([[[1.0]], [[-1.0]]]), jnp.array([1.0, -1.0])
        >>> found = left_out(start, X, y, X, y, step_size=1.0, steps=1)
        >>> float(found.stability), float(found.largest_head)  # 1/2 on both samples, 1/4 on one
        (0.25, 0.25)
    """
    trained = leave_one_out(start, X, y, step_size=step_size, steps=steps, record_at=(steps,))
    models = trained.without.last.U, trained.without.last.W
    lost, slope, largest = _measured(models, start.copies, (X, y), (X_test, y_test))
    gap = jnp.mean(lost) - trained.full.loss[0]
    return LeftOut(trained.stability[0], gap, jnp.max(slope), jnp.max(largest))


@jax.jit
def _measured(models: tuple, copies: Array, data: tuple, test: tuple) -> tuple[Array, ...]:
    """Loss of the sample left out, largest slope on test samples, largest head, by model."""

    def loss(parameters: tuple[Array, Array], X: Array, y: Array) -> Array:
        return logistic(y * RepeatedHeads(*parameters, copies)(X))

    def measure(parameters: tuple[Array, Array], X: Array, y: Array) -> tuple[Array, ...]:
        slope = jax.vmap(jax.grad(loss), (None, 0, 0))(parameters, *test)
        square = sum(jnp.sum(a**2, axis=(1, 2, 3)) for a in slope)
        largest = RepeatedHeads(*parameters, copies).largest_head
        return loss(parameters, X, y), jnp.sqrt(jnp.max(jnp.asarray(square))), largest

    return jax.vmap(measure)(models, *data)
