r"""Curvature of the loss in the weights of one head, with enclosures of the extreme eigenvalues."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attlas.audit.sequence_loss import COMPARED, JudgedBatch, sequence_losses
from attlas.interop.trained_transformer import TrainedTransformer
from attlas.interop.whole_model import WholeModel, whole_model
from attlas.measures.curvature.extreme_eigenvalues import hessian_extremes


class HeadCurvature(NamedTuple):
    """Extreme eigenvalues of the Hessian of the mean loss in one head's weights.

    Attributes:
        smallest: least eigenvalue; NaN where it did not converge.
        largest: largest eigenvalue.
        smallest_low: lower end of the interval that holds the least eigenvalue.
        smallest_high: its upper end.
        largest_low: the same of the largest.
        largest_high: its upper end.
    """

    smallest: Float[np.ndarray, "L H"]
    largest: Float[np.ndarray, "L H"]
    smallest_low: Float[np.ndarray, "L H"]
    smallest_high: Float[np.ndarray, "L H"]
    largest_low: Float[np.ndarray, "L H"]
    largest_high: Float[np.ndarray, "L H"]


def head_curvature(
    model: TrainedTransformer,
    batch: JudgedBatch,
    *,
    max_steps: int = 120,
    progress: Callable[[int, int], None] = lambda done, all_: None,
) -> HeadCurvature:
    r"""Extreme Hessian eigenvalues of each head's block (W_Q, W_K, W_V, W_O).

    The block of a head holds its own matrices; a key/value group that several heads share belongs
    to each of them. Shared layers are one block, which every layer reports.

    Args:
        model: the model.
        batch: sequences and their loss.
        max_steps: largest dimension of a Krylov space.
        progress: told how many blocks of how many are done.

    Returns:
        Eigenvalues with their intervals: those of `hessian_extremes`, wrong with probability
        1e-6 each.
    """
    whole = whole_model(model)
    data = tuple(jnp.asarray(part) for part in batch[1:])
    tokens, present, targets, counted = data
    compared = batch.kind in COMPARED
    unchanged = last_rows(whole, tokens, present) if compared else None
    stored, heads = max(model.stored_layer) + 1, model.heads_per_layer
    found = np.full((6, stored, heads), np.nan)
    for index in range(stored):
        # What lies before the first use of a layer does not move with its weights.
        first = model.stored_layer.index(index)
        rows = last_rows(whole.part(0, first), tokens, present)
        tail = whole.part(first)
        for head in range(heads):
            judged = (rows, present, targets, counted, unchanged)
            found[:, index, head] = _extremes(tail, head, judged, max_steps)
            progress(index * heads + head + 1, stored * heads)
    return HeadCurvature(*found[:, list(model.stored_layer)])


def _extremes(
    tail: WholeModel, head: int, judged: tuple[Array | None, ...], max_steps: int
) -> np.ndarray:
    """Smallest, largest and the ends of their intervals of a head of the first layer."""
    attention = tail.layers[0].attention
    group = attention.group[head]
    block = (
        attention.W_Q[head],
        attention.W_K[group],
        attention.W_V[group],
        attention.W_O[head],
    )
    # Which head moves is data, so that all heads of a layer share one compiled program.
    chosen = (
        jnp.arange(attention.W_Q.shape[0]) == head,
        jnp.arange(attention.W_K.shape[0]) == group,
    )
    # The signs at both ends are what is asked: narrower enclosures would double the products.
    solved = hessian_extremes(
        _block_loss, block, tail, chosen, *judged, width=1.0, max_steps=max_steps
    )
    if not solved.converged:
        return np.full(6, np.nan)
    low, high = np.asarray(solved.certificate["enclosure"])[:, 0]
    values = solved.unwrap()
    return np.array([values.smallest[0], values.largest[0], *low, *high])


def _block_loss(
    block: tuple[Array, ...],
    tail: WholeModel,
    chosen: tuple[Array, Array],
    rows: Array,
    present: Array,
    targets: Array,
    counted: Array,
    unchanged: Array | None,
) -> Array:
    """Mean loss as a function of the weights of the chosen head of the first layer."""
    heads, groups = chosen
    attention = tail.layers[0].attention
    old = (attention.W_Q, attention.W_K, attention.W_V, attention.W_O)
    new = [
        jnp.where(where[:, None, None], own[None], each)
        for each, own, where in zip(old, block, (heads, groups, groups, heads), strict=True)
    ]
    moved = eqx.tree_at(lambda tree: (tree.W_Q, tree.W_K, tree.W_V, tree.W_O), attention, new)
    changed = eqx.tree_at(lambda tree: tree.layers[0].attention, tail, moved)
    hidden = jax.vmap(changed.continued)(rows, present)
    return jnp.mean(sequence_losses(changed.readout, hidden, targets, counted, unchanged))


def mean_loss(
    whole: WholeModel,
    tokens: Array,
    present: Array,
    targets: Array,
    counted: Array,
    unchanged: Array | None = None,
) -> Array:
    """Mean over sequences of the loss per sequence.

    Args:
        whole: the model.
        tokens: [n, T].
        present: which are no padding.
        targets: words to be predicted.
        counted: where.
        unchanged: last rows of the unchanged model, for a loss against its own output.

    Returns:
        The loss in nats.
    """
    hidden = jax.vmap(whole.hidden)(tokens, present)
    return jnp.mean(sequence_losses(whole.readout, hidden, targets, counted, unchanged))


@eqx.filter_jit
def last_rows(
    whole: WholeModel, tokens: Int[Array, "n T"], present: Bool[Array, "n T"]
) -> Float[Array, "n T d"]:
    """Hidden rows that leave the last layer.

    Args:
        whole: the model.
        tokens: sequences.
        present: which tokens are no padding.

    Returns:
        One row per token.
    """
    return jax.vmap(whole.hidden)(tokens, present)
