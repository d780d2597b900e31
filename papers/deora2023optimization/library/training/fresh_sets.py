r"""Trainings on many independent training sets: the expectation over the data, by sampling.

The generalisation gap of deora2023optimization (Theorem 2, Lemma 3) is an expectation over the
training set. m sets give m independent gaps, hence a mean with an honest standard error.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.tree_util import Partial
from jaxtyping import Array, Float

from attlas._jax.loop_jit import loop_jit
from attlas.core.errors import UserError
from attlas.data.labelled_tokens import require_labelled_tokens
from attlas.losses.logistic import logistic
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
        y: labels, -1 or 1.
        record_at: increasing step numbers to record; log-spaced ones when None.
        loss: name of a margin loss.
        chunk: sets that train together; what fits the cache when None.

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
    moving, static = eqx.partition(path.params, eqx.is_inexact_array)
    tested = in_chunks(lambda some: _test(some, static, X_test, y_test, loss), moving, width)
    return FreshSets(path, tested[..., 0], tested[..., 1])


@loop_jit(jit=eqx.filter_jit)
def _test(models: Any, static: Any, X: Array, y: Array, loss: str) -> Float[Array, "m s 2"]:
    """Mean loss of each record of each set, and its standard error."""

    def measure(parameters: Any) -> Array:
        losses = margin_loss(loss).value(y * model_outputs(eqx.combine(parameters, static), X))
        return jnp.stack([jnp.mean(losses), jnp.std(losses) / losses.shape[0] ** 0.5])

    # One model at a time: the attention on a large test set fills the cache alone.
    return jax.lax.map(lambda records: jax.lax.map(measure, records), models)


class CrossedLosses(NamedTuple):
    """Mean losses of the models of a group of sets; groups are independent.

    Attributes:
        training: loss on the set that each model was trained on.
        crossed: loss on the other sets of the group.
    """

    training: Float[np.ndarray, " g"]
    crossed: Float[np.ndarray, " g"]

    @property
    def gap(self) -> Float[np.ndarray, " g"]:
        """Estimates of the expected generalisation gap, free of the noise that sets share."""
        return self.crossed - self.training


def crossed_losses(
    models: Any,
    X: Float[Array | np.ndarray, "m n T d"],
    y: Float[Array | np.ndarray, "m n"],
    size: int,
) -> CrossedLosses:
    r"""Logistic loss of each model on its training set, and on the other sets of its group.

    For independent sets S_1, ..., S_k of one law and the models trained on them, the mean over
    i != j of the loss of model i on S_j is without bias for the expected test loss; less the mean
    training loss it gives the gap, from which the difficulty of the sets cancels.

    Args:
        models: one per set, along a leading axis of every floating array; other arrays are shared.
        y: labels, -1 or 1.
        size: sets per group, at least 2; it divides their number.

    Examples:
        >>> from attlas.models.attention.multi_head import MultiHead
        >>> models = MultiHead(jnp.zeros((2, 1, 3)), jnp.zeros((2, 3, 3)))
        >>> sets, labels = np.ones((2, 5, 1, 3)), np.ones((2, 5))
        >>> found = crossed_losses(jax.tree.map(lambda a: a[:, None], models), sets, labels, 2)
        >>> found.training.round(3).tolist(), found.gap.tolist()
        ([0.693], [0.0])
    """
    m = X.shape[0]
    if size < 2 or m % size:
        raise UserError(f"{m} sets in groups of {size}: groups have at least 2, none is smaller")
    moving, static = eqx.partition(models, eqx.is_inexact_array)
    some, sets, labels = jax.tree.map(lambda a: a.reshape(-1, size, *a.shape[1:]), (moving, X, y))
    crossed = np.asarray(_crossed(some, sets, labels, static))
    training = np.einsum("gii->g", crossed) / size
    mean_crossed = (crossed.sum(axis=(1, 2)) - size * training) / (size * (size - 1))
    return CrossedLosses(training, mean_crossed)


@loop_jit(jit=eqx.filter_jit)
def _crossed(models: Any, X: Array, y: Array, static: Any) -> Array:
    """Loss of the model of set i on set j of a group, [group, i, j]."""

    def loss(model: Any, X: Array, y: Array) -> Array:
        return jnp.mean(logistic(y * model_outputs(eqx.combine(model, static), X)))

    on_all = jax.vmap(loss, (None, 0, 0))
    return jax.vmap(jax.vmap(on_all, (0, None, None)))(models, X, y)
