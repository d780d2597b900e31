r"""The largest Hessian eigenvalue of the whole model, against what the step size allows."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Shaped

from attlas.audit.deep_level.head_curvature import last_hidden_states, mean_loss
from attlas.audit.deep_level.rate_decision import Sharpness
from attlas.audit.deep_level.stable_step import require_step, stable_threshold
from attlas.audit.sequence_loss import COMPARED, JudgedBatch
from attlas.measures.curvature.extreme_eigenvalues import hessian_extremes
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.trained_weights import HeldWeights, trained_weights
from attlas.transformers.whole_model import WholeModel, whole_model


def model_sharpness(
    model: TrainedTransformer,
    batch: JudgedBatch,
    learning_rate: float,
    *,
    optimizer: str = "sgd",
    momentum: float = 0.0,
    max_steps: int = 120,
) -> Sharpness:
    r"""Largest eigenvalue of the Hessian of the mean loss in all trained weights, with an interval.

    What is no weight of the model's own is held, see `trained_weights`.

    Args:
        max_steps: largest dimension of a Krylov space.

    Raises:
        UserError: if the optimiser has no threshold, or a number is out of range.
    """
    require_step(learning_rate, optimizer, momentum)
    threshold = stable_threshold(optimizer, momentum)
    weights = whole_model(model)
    data = tuple(jnp.asarray(part) for part in batch[1:])
    if batch.kind in COMPARED:
        data = (*data, last_hidden_states(weights, data[0], data[1]))
    (trained,), held = trained_weights(weights)
    solved = hessian_extremes(trained_loss, trained, held, *data, max_steps=max_steps)
    if not solved.converged:
        unknown = float("nan")
        return Sharpness(unknown, unknown, unknown, unknown, threshold)
    low, high = (float(end) for end in np.asarray(solved.certificate["enclosure"])[1, 0])
    value = float(solved.unwrap().largest[0])
    return Sharpness(value, low, high, learning_rate * value, threshold)


def trained_loss(
    trained: WholeModel, held: HeldWeights, *data: Shaped[Array, "n T *d"]
) -> Float[Array, ""]:
    """Mean loss as a function of the trained weights, see `mean_loss`."""
    return mean_loss(held.joined(trained), *data)
