r"""Curvature of the loss in the weights of one head, with enclosures of the extreme eigenvalues."""

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attlas.audit.deep_level.head_hessians import HeadHessians
from attlas.audit.sequence_loss import JudgedBatch, sequence_losses
from attlas.core.arrays import precision_of
from attlas.measures.curvature.spectrum_ends import SpectrumEnds, spectrum_ends
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.whole_model import WholeModel, whole_model

CURVATURE_STEPS = 40
"""Hessian products per head; how far an interval then reaches is on the page."""


class HeadCurvature(NamedTuple):
    """Extreme eigenvalues of the Hessian of the mean loss in one head's weights.

    Attributes:
        smallest: least eigenvalue, as far as it was reached.
        largest: largest eigenvalue, likewise.
        smallest_low: lower end of the interval that holds the least eigenvalue.
        smallest_high: its upper end.
        largest_low: the same of the largest.
        largest_high: its upper end.
        smallest_residual: |H v - theta v|; an eigenvalue lies that near to `smallest`.
        largest_residual: the same of `largest`.
    """

    smallest: Float[np.ndarray, "L H"]
    largest: Float[np.ndarray, "L H"]
    smallest_low: Float[np.ndarray, "L H"]
    smallest_high: Float[np.ndarray, "L H"]
    largest_low: Float[np.ndarray, "L H"]
    largest_high: Float[np.ndarray, "L H"]
    smallest_residual: Float[np.ndarray, "L H"]
    largest_residual: Float[np.ndarray, "L H"]


def head_curvature(
    model: TrainedTransformer,
    batch: JudgedBatch,
    *,
    steps: int = CURVATURE_STEPS,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> HeadCurvature:
    r"""Extreme Hessian eigenvalues of each head's block (W_Q, W_K, W_V, W_O).

    The block of a head holds its own matrices; a key/value group that several heads share belongs
    to each of them. Shared layers are one block, which every layer reports.

    Args:
        steps: Hessian products per head.
        progress: called with the number of products done, and of all products.

    Returns:
        Eigenvalues with their intervals: those of `spectrum_ends`, wrong with probability
        1e-6 each.
    """
    weights = whole_model(model)
    heads = model.heads_per_layer
    intervals: list[np.ndarray] = []
    with precision_of(weights.embedding):
        hessians = HeadHessians(weights, batch)
        plan = [
            (stored, members, hessians.size(stored))
            for stored in range(len(weights.layers))
            for members in np.array_split(np.arange(heads), -(-heads // hessians.together(stored)))
        ]
        report = _counted(progress, sum(min(steps, size) for *_, size in plan))
        for stored, members, size in plan:
            products = hessians.products(stored, members)
            ends = spectrum_ends(products, members.size, size, steps=steps, progress=report)
            intervals.append(_columns(ends))
    columns = np.concatenate(intervals, axis=1).reshape(8, len(weights.layers), heads)
    return HeadCurvature(*columns[:, list(model.stored_layer)])


def _counted(progress: Callable[[int, int], None], all_: int) -> Callable[[], None]:
    """What is called without a number, and tells how often it was called of how often."""
    counter = count(1)
    return lambda: progress(next(counter), all_)


def _columns(ends: SpectrumEnds) -> Float[np.ndarray, "eight B"]:
    """The fields of `HeadCurvature`."""
    interval = np.stack([ends.low, ends.high], axis=2).reshape(-1, 4)
    return np.concatenate([ends.values, interval, ends.residuals], axis=1).T


def mean_loss(
    weights: WholeModel,
    tokens: Array,
    present: Array,
    targets: Array,
    counted: Array,
    unchanged: Array | None = None,
) -> Array:
    """Mean over sequences of the loss per sequence.

    Args:
        present: False for padding, [n, T], as `tokens`, `targets` and `counted`.
        counted: True where a token counts for the loss.
        unchanged: last hidden states of the unchanged model, for a loss against its own output.
    """
    hidden = jax.vmap(weights.hidden)(tokens, present)
    return jnp.mean(sequence_losses(weights.readout, hidden, targets, counted, unchanged))


@eqx.filter_jit
def last_hidden_states(
    weights: WholeModel, tokens: Int[Array, "n T"], present: Bool[Array, "n T"]
) -> Float[Array, "n T d"]:
    """Hidden states that leave the last layer."""
    return jax.vmap(weights.hidden)(tokens, present)
