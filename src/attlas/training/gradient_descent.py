r"""Full-batch gradient descent on the empirical risk: one model, or many at once.

theta_{k+1} = theta_k - eta grad L(theta_k), as in deora2023optimization: `fit` with the gradient
of `risk_gradient`, which is in closed form for multi-head attention.
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

from attlas._jax.device_arrays import entry
from attlas.core.errors import UserError
from attlas.data.labelled_tokens import require_labelled_tokens
from attlas.losses.margin_loss import margin_loss
from attlas.models.attention.multi_head import MultiHead
from attlas.training.course import ClosedForm
from attlas.training.ensemble import cache_width
from attlas.training.fit import Ensemble, fit
from attlas.training.risk_gradient import risk_gradient
from attlas.training.trajectory import Trajectory


class Samples(NamedTuple):
    """The samples of the risk, with labels and weights.

    Attributes:
        X: samples along the first axis.
        weights: weights of the samples; the risk is still divided by n.
    """

    X: Any
    y: Any
    weights: Any


def _value_and_gradient(model: Any, samples: Samples, loss: str) -> tuple[Array, Any]:
    return risk_gradient(model, *samples, loss)


def empirical_loss(loss: str) -> ClosedForm:
    r"""Risk L(theta) = (1/n) sum_i w_i l(y_i Phi(X_i)) of `Samples` for `fit`, with its gradient.

    `loss` is the name of a margin loss.

    Examples:
        >>> model = MultiHead(jnp.zeros((1, 1, 1)), jnp.zeros((1, 1, 1)))
        >>> samples = Samples(jnp.ones((2, 1, 1)), jnp.ones(2), jnp.ones(2))
        >>> path = fit(empirical_loss("logistic"), optax.sgd(2.0), model, samples, steps=1)
        >>> path.params.U[:, 0, 0, 0].tolist()
        [0.0, 1.0]
    """
    return ClosedForm(Partial(_value_and_gradient, loss=loss))


def require_trainable(model: Any, X: Array, y: Array, step_size: Any, loss: str) -> None:
    """Check that a model, samples and settings can be trained.

    Args:
        model: the start, with no axis before those of its parameters.
        X: samples (n, T, d).

    Raises:
        UserError: if the model does not fit the tokens, the step size is not positive and finite,
            or the samples or the loss are invalid.

    Examples:
        >>> from attlas.models.attention.multi_head import make_multi_head
        >>> X, y = jnp.ones((2, 3, 4)), jnp.ones(2)
        >>> require_trainable(make_multi_head(1, 3, 5), X, y, 0.1, "logistic")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: the model has U of shape (1, 3, 5) where ... (1, 3, 4): ...
    """
    require_labelled_tokens(X, y)
    margin_loss(loss)
    if isinstance(model, MultiHead):
        model.require_tokens(*X.shape[-2:])
    try:
        sizes = np.asarray(step_size)
    except jax.errors.TracerArrayConversionError:
        return
    if sizes.dtype.kind not in "fiuV":  # V: bfloat16
        raise UserError(f"step_size has the type {sizes.dtype}: give real numbers")
    if not np.all((sizes > 0) & np.isfinite(sizes)):
        raise UserError(f"step_size = {step_size} is not positive and finite: choose another")


def gradient_descent(
    model: Any,
    X: Float[Array, "n T d"],
    y: Float[Array, " n"],
    *,
    step_size: float | Float[Array, ""],
    steps: int,
    record_at: Sequence[int] | None = None,
    loss: str = "logistic",
    weights: Float[Array, " n"] | None = None,
) -> Trajectory:
    r"""theta_{k+1} = theta_k - eta grad L(theta_k), on all samples at every step.

    It costs `steps` gradients and the memory of the records. Under `jax.vmap` the model, the
    samples and the step size may each have a leading axis.

    Args:
        model: the start, `MultiHead` or any Equinox module from tokens to a scalar.
        record_at: increasing step numbers to record; log-spaced ones when None.
        loss: name of a margin loss.
        weights: weights of the samples, by default 1; the risk is still divided by n.

    Examples:
        >>> from attlas.models.attention.multi_head import make_multi_head
        >>> X = jnp.array([[[1.0]], [[-1.0]]])
        >>> path = gradient_descent(
        ...     make_multi_head(1, 1, 1), X, X[:, 0, 0], step_size=1.0, steps=9, record_at=(0, 1))
        >>> path.params.U[:, 0, 0, 0].tolist()
        [0.0, 0.5]
    """
    require_trainable(model, X, y, step_size, loss)
    weights = jnp.ones_like(y) if weights is None else weights
    return fit(
        empirical_loss(loss),
        Partial(optax.sgd, jnp.asarray(step_size, X.dtype)),
        model,
        Samples(X, y, weights),
        steps=steps,
        record_at=record_at,
    )


def gradient_descent_ensemble(
    models: Any,
    X: Float[Array, "n T d"],
    y: Float[Array, " n"],
    *,
    step_size: float | Float[Array, " e"],
    steps: int,
    record_at: Sequence[int] | None = None,
    loss: str = "logistic",
    chunk: int | None = None,
) -> Trajectory:
    r"""`gradient_descent` of many starts or step sizes on the same samples, in chunks.

    Args:
        models: starts along a leading axis of every parameter.
        step_size: eta, one for all or one per model.
        record_at: increasing step numbers to record; log-spaced ones when None.
        chunk: models per chunk; by default as many as fit the cache.

    Returns:
        The recorded steps, models along the leading axis.

    Examples:
        >>> from attlas.models.attention.multi_head import make_multi_head
        >>> models = jax.tree.map(lambda a: jnp.stack([a] * 3), make_multi_head(1, 1, 1))
        >>> X = jnp.array([[[1.0]], [[-1.0]]])
        >>> path = gradient_descent_ensemble(
        ...     models, X, X[:, 0, 0], step_size=jnp.array([1.0, 2, 4]), steps=1, record_at=(1,))
        >>> path.params.U[:, 0, 0, 0, 0].tolist()
        [0.5, 1.0, 2.0]
    """
    moving, frozen = eqx.partition(models, eqx.is_inexact_array)
    count = jax.tree.leaves(moving)[0].shape[0]
    first = eqx.combine(jax.tree.map(lambda a: entry(a, 0), moving), frozen)
    require_trainable(first, X, y, step_size, loss)
    if np.shape(step_size) not in ((), (1,), (count,)):
        raise UserError(
            f"step_size has shape {np.shape(step_size)}: give one for all, or one for each of "
            f"{count} models"
        )
    sizes = np.broadcast_to(np.asarray(step_size, X.dtype), (count,))
    width = cache_width(first, X) if chunk is None else chunk
    return fit(
        empirical_loss(loss),
        Partial(optax.sgd, sizes),
        models,
        Samples(X, y, jnp.ones_like(y)),
        steps=steps,
        record_at=record_at,
        ensemble=Ensemble(params=True, optimizer=True, chunk=width),
    )
