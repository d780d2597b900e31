r"""Trainings on many independent training sets: the expectation over the data, by sampling.

The generalisation gap of deora2023optimization (Theorem 2, Lemma 3) is an expectation over the
training set. m sets give m independent gaps, hence a mean with an honest standard error.
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
from attlas.core.errors import UserError
from attlas.data.labelled_tokens import require_labelled_tokens
from attlas.losses.margin_loss import margin_loss
from attlas.training.ensemble import cache_width, in_chunks
from attlas.training.fit import Ensemble, fit
from attlas.training.gradient_descent import Samples, empirical_loss, require_trainable
from attlas.training.risk_gradient import model_outputs
from attlas.training.trajectory import Trajectory


class FreshSets(eqx.Module):
    r"""One training for each training set.

    Attributes:
        path: the trainings, sets along a leading axis; their loss is the training loss.
        test_loss: mean loss on the common test samples.
        test_error: standard error of that mean.
    """

    path: Trajectory
    test_loss: Float[Array, "m s"]
    test_error: Float[Array, "m s"]

    @property
    def gap(self) -> Float[Array, "m s"]:
        """Generalisation gap of each set, test loss less training loss."""
        return self.test_loss - self.path.loss


def fresh_sets(
    model: Any,
    X: Float[Array, "m n T d"],
    y: Float[Array, "m n"],
    X_test: Float[Array, "N _ _"],
    y_test: Float[Array, " N"],
    *,
    step_size: float | Float[Array, ""],
    steps: int,
    record_at: Sequence[int] | None = None,
    loss: str = "logistic",
    chunk: int | None = None,
) -> FreshSets:
    r"""Gradient descent from one start on each of m training sets, tested on common samples.

    Args:
        model: the start, `MultiHead` or any Equinox module from tokens to a scalar.
        X: training sets of n samples; m n samples of a generator, reshaped, are independent sets.
        y: labels +-1.
        X_test: test samples.
        y_test: their labels.
        step_size: eta.
        steps: number of steps.
        record_at: increasing step numbers to record; log-spaced ones when None.
        loss: name of a margin loss.
        chunk: sets that train together; what fits the cache when None.

    Returns:
        Trajectories, test losses and gaps.

    Raises:
        UserError: if the sets have no leading axis, or test tokens do not fit training tokens.

    Examples:
        >>> from attlas.models.attention.multi_head import make_multi_head
        >>> X = jnp.array([[[[1.0]]], [[[-1.0]]]])
        >>> found = fresh_sets(
        ...     make_multi_head(1, 1, 1), X, X[:, :, 0, 0], X[:, 0], X[:, 0, 0, 0],
        ...     step_size=1.0, steps=1, record_at=(0, 1))
        >>> abs(found.gap).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """
    if X.ndim != 4 or X.shape[2:] != X_test.shape[1:]:
        raise UserError(
            f"X has shape {X.shape} and X_test {X_test.shape}: give (m, n, T, d) and (N, T, d)"
        )
    require_trainable(model, X, y, step_size, loss)
    require_labelled_tokens(X_test, y_test)
    width = cache_width(model, X[0]) if chunk is None else chunk
    rate = Partial(optax.sgd, jnp.asarray(step_size, X.dtype))
    many = Ensemble(data=True, chunk=width)
    risk, sets = empirical_loss(loss), Samples(X, y, jnp.ones_like(y))
    path = fit(risk, rate, model, sets, steps=steps, record_at=record_at, ensemble=many)
    moving, rest = eqx.partition(path.params, eqx.is_inexact_array)
    tested = in_chunks(lambda some: _test(some, rest, X_test, y_test, loss), moving, width)
    return FreshSets(path, tested[..., 0], tested[..., 1])


@loop_jit(jit=eqx.filter_jit)
def _test(models: Any, rest: Any, X: Array, y: Array, loss: str) -> Float[Array, "m s 2"]:
    """Mean loss of each record of each set, and its standard error."""

    def measure(parameters: Any) -> Array:
        losses = margin_loss(loss).value(y * model_outputs(eqx.combine(parameters, rest), X))
        return jnp.stack([jnp.mean(losses), jnp.std(losses) / losses.shape[0] ** 0.5])

    # One model at a time: the attention on a large test set fills the cache alone.
    return jax.lax.map(lambda records: jax.lax.map(measure, records), models)
