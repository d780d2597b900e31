r"""Empirical risk of any model: the mean loss of its margins on a sample."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_record_arguments
from attlas.losses.logistic import logistic


@validate_record_arguments
def empirical_risk(
    model: Callable[[Array], Array],
    X: Float[Array, " n *shape"],
    y: Float[Array, " n"],
    loss: Callable[[Any], Array] = logistic,
    weights: Float[Array, " n"] | None = None,
) -> Float[Array, ""]:
    r"""L(theta) = (1/n) sum_i w_i l(y_i model(X_i)).

    With weights 0 and 1 this is a leave-one-out risk, which deora2023optimization (section 6.2)
    divides by n as well, not by n - 1.

    Args:
        model: maps one sample to its scalar output.
        y: labels, +1 or -1.
        weights: weights of the samples; all 1 if None.

    Examples:
        >>> risk = empirical_risk(lambda x: 0 * x[0], jnp.ones((3, 1)), jnp.ones(3))
        >>> print(f"{float(risk):.4f}")
        0.6931
    """
    losses = loss(y * jax.vmap(model)(X))
    if weights is not None:
        losses = weights * losses
    return jnp.mean(losses)
