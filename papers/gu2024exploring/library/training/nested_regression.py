"""One network trained on the first n of many samples, for several n at once."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.models.networks.softmax_network import SoftmaxNetwork
from attlas.training.trajectory import Trajectory
from gu2024exploring.library.training.softmax_regression import train_softmax_networks


def train_on_nested(
    start: SoftmaxNetwork,
    X: Float[Array, "n d"],
    Y: Float[Array, "n k"],
    sizes: Sequence[int],
    *,
    step_size: Float[Array, " e"] | Float[np.ndarray, " e"],
    steps: int,
    record_at: Sequence[int] | None = None,
    X_test: Float[Array, "n2 d"] | None = None,
) -> Trajectory:
    """`train_softmax_networks` on nested training sets, which share one program.

    Rows of zeros fill up the smaller sets. They change nothing: the output of a network whose
    second layer sums to zero is zero at zero, and so is the gradient in the first layer.

    Args:
        start: the network, its second layer balanced as at the symmetric initialisation.
        sizes: number of samples of each training.
        record_at: increasing step numbers; log-spaced when None.

    Returns:
        The recorded steps, sizes along the leading axis.

    Raises:
        UserError: if a size is not among the samples, or the second layer is not balanced.

    Examples:
        >>> start = SoftmaxNetwork(jnp.zeros((1, 2)), jnp.array([[1.0, -1.0]]))
        >>> one = jnp.ones((3, 1))
        >>> path = train_on_nested(start, one, one, (1, 3), step_size=np.array([0.1, 0.1]),
        ...                        steps=1, record_at=(0, 1))
        >>> path.loss[:, 0].tolist()
        [0.5, 1.5]
    """
    wanted = np.asarray(sizes)
    if not (wanted.size and wanted.min() >= 1 and wanted.max() <= len(X)):
        raise UserError(f"sizes = {tuple(sizes)}: choose from 1 to the {len(X)} samples")
    sums, terms = np.asarray(start.a.sum(axis=1)), start.a.shape[1]
    if np.abs(sums).max() > terms * np.finfo(sums.dtype).eps * float(jnp.abs(start.a).max()):
        raise UserError("the second layer does not sum to zero: start from symmetric_network")
    inside = jnp.asarray(np.arange(len(X))[None] < wanted[:, None])[:, :, None]
    return train_softmax_networks(
        jax.tree.map(lambda a: jnp.stack([a] * len(wanted)), start),
        jnp.where(inside, X[None], 0),
        jnp.where(inside, Y[None], 0),
        step_size=jnp.asarray(step_size),
        steps=steps,
        record_at=record_at,
        X_test=X_test,
    )
