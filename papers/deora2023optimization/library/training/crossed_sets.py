"""Generalisation gaps without test samples: models of fresh sets, tested on each other's sets."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.loop_jit import loop_jit
from attlas.core.errors import UserError
from attlas.losses.logistic import logistic
from attlas.training.risk_gradient import model_outputs


class CrossedLosses(NamedTuple):
    """Mean losses of the models of a group of sets; groups are independent.

    Attributes:
        own: on the set that each was trained on.
        other: on the other sets of the group.
    """

    own: Float[np.ndarray, " g"]
    other: Float[np.ndarray, " g"]

    @property
    def gap(self) -> Float[np.ndarray, " g"]:
        """Estimates of the expected generalisation gap, free of the noise that sets share."""
        return self.other - self.own


def crossed_losses(
    models: Any,
    X: Float[Array | np.ndarray, "m n T d"],
    y: Float[Array | np.ndarray, "m n"],
    size: int,
) -> CrossedLosses:
    r"""Logistic loss of each model on its own training set, and on the others of its group.

    For independent sets S_1, ..., S_k of one law and the models trained on them, the mean over
    i != j of the loss of model i on S_j is without bias for the expected test loss; less the mean
    training loss it gives the gap, from which the difficulty of the sets cancels.

    Args:
        models: one per set, along a leading axis of every floating array; other arrays are shared.
        X: training sets.
        y: labels +-1.
        size: sets per group, at least 2; it divides their number.

    Returns:
        Losses by group.

    Raises:
        UserError: if the sets do not make whole groups.

    Examples:
        >>> from attlas.models.attention.multi_head import MultiHead
        >>> models = MultiHead(jnp.zeros((2, 1, 3)), jnp.zeros((2, 3, 3)))
        >>> sets, labels = np.ones((2, 5, 1, 3)), np.ones((2, 5))
        >>> found = crossed_losses(jax.tree.map(lambda a: a[:, None], models), sets, labels, 2)
        >>> found.own.round(3).tolist(), found.gap.tolist()
        ([0.693], [0.0])
    """
    m = X.shape[0]
    if size < 2 or m % size:
        raise UserError(f"{m} sets in groups of {size}: groups have at least 2, none is smaller")
    moving, rest = eqx.partition(models, eqx.is_inexact_array)
    some, sets, labels = jax.tree.map(lambda a: a.reshape(-1, size, *a.shape[1:]), (moving, X, y))
    crossed = np.asarray(_crossed(some, sets, labels, rest))
    own = np.einsum("gii->g", crossed) / size
    other = (crossed.sum(axis=(1, 2)) - size * own) / (size * (size - 1))
    return CrossedLosses(own, other)


@loop_jit(jit=eqx.filter_jit)
def _crossed(models: Any, X: Array, y: Array, rest: Any) -> Array:
    """Loss of the model of set i on set j of a group, [group, i, j]."""

    def loss(model: Any, X: Array, y: Array) -> Array:
        return jnp.mean(logistic(y * model_outputs(eqx.combine(model, rest), X)))

    on_all = jax.vmap(loss, (None, 0, 0))
    return jax.vmap(jax.vmap(on_all, (0, None, None)))(models, X, y)
