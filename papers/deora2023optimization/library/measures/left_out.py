r"""Average stability of gradient descent on one training set, and what Lemma 3 puts beside it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.losses.logistic import logistic
from deora2023optimization.library.models.repeated_heads import RepeatedHeads
from deora2023optimization.library.training.leave_one_out import leave_one_out


class LeftOut(NamedTuple):
    """What all leave-one-out trainings of one set give after their last step.

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
        start: of every training.
        X: training samples.
        y: labels +-1.
        X_test: samples at which slopes are taken.
        y_test: their labels.
        step_size: eta.
        steps: number of steps.

    Returns:
        Stability, the gap by leave-one-out, and sizes of the models.

    Examples:
        >>> start = RepeatedHeads(jnp.zeros((1, 1, 1)), jnp.zeros((1, 1, 1)), jnp.array([1]))
        >>> X, y = jnp.array([[[1.0]], [[-1.0]]]), jnp.array([1.0, -1.0])
        >>> found = left_out(start, X, y, X, y, step_size=1.0, steps=1)
        >>> float(found.stability), float(found.largest_head)  # 1/2 on both samples, 1/4 on one
        (0.25, 0.25)
    """
    found = leave_one_out(start, X, y, step_size=step_size, steps=steps, record_at=(steps,))
    models = found.without.last.U, found.without.last.W
    lost, slope, largest = _measured(models, start.copies, (X, y), (X_test, y_test))
    gap = jnp.mean(lost) - found.full.loss[0]
    return LeftOut(found.stability[0], gap, jnp.max(slope), jnp.max(largest))


@jax.jit
def _measured(models: tuple, copies: Array, data: tuple, test: tuple) -> tuple[Array, ...]:
    """Loss of the sample left out, largest slope on test samples, largest head, by model."""

    def loss(parameters: tuple[Array, Array], X: Array, y: Array) -> Array:
        return logistic(y * RepeatedHeads(*parameters, copies)(X))

    def one(parameters: tuple[Array, Array], X: Array, y: Array) -> tuple[Array, ...]:
        slope = jax.vmap(jax.grad(loss), (None, 0, 0))(parameters, *test)
        square = sum(jnp.sum(a**2, axis=(1, 2, 3)) for a in slope)
        largest = RepeatedHeads(*parameters, copies).largest_head
        return loss(parameters, X, y), jnp.sqrt(jnp.max(jnp.asarray(square))), largest

    return jax.vmap(one)(models, *data)
