r"""Curvature of the loss in the weights of one head, with enclosures of the extreme eigenvalues."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.audit.sequence_loss import JudgedBatch, sequence_losses
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
    if batch.kind == "own output":
        data = (*data, _last_rows(whole, data[0], data[1]))
    stored, heads = max(model.stored_layer) + 1, model.heads_per_layer
    found = np.full((6, stored, heads), np.nan)
    for index in range(stored):
        for head in range(heads):
            found[:, index, head] = _extremes(whole, index, head, data, max_steps)
            progress(index * heads + head + 1, stored * heads)
    return HeadCurvature(*found[:, list(model.stored_layer)])


def _extremes(
    whole: WholeModel, index: int, head: int, data: tuple[Array, ...], max_steps: int
) -> np.ndarray:
    """Smallest, largest and the ends of their intervals of one block."""
    attention = whole.layers[index].attention
    group = attention.group[head]
    block = (
        attention.W_Q[head],
        attention.W_K[group],
        attention.W_V[group],
        attention.W_O[head],
    )
    # which block moves is data, so that all blocks share one compiled program
    chosen = tuple(
        (
            jnp.zeros(each.attention.W_Q.shape[0]).at[head].set(float(place == index)),
            jnp.zeros(each.attention.W_K.shape[0]).at[group].set(float(place == index)),
        )
        for place, each in enumerate(whole.layers)
    )
    solved = hessian_extremes(_block_loss, block, whole, chosen, *data, max_steps=max_steps)
    if not solved.converged:
        return np.full(6, np.nan)
    low, high = np.asarray(solved.certificate["enclosure"])[:, 0]
    values = solved.unwrap()
    return np.array([values.smallest[0], values.largest[0], *low, *high])


def _block_loss(
    block: tuple[Array, ...],
    whole: WholeModel,
    chosen: tuple[tuple[Array, Array], ...],
    *data: Array,
) -> Array:
    """Mean loss as a function of the weights of the chosen head."""
    layers = []
    for layer, (heads, groups) in zip(whole.layers, chosen, strict=True):
        attention = layer.attention
        old = (attention.W_Q, attention.W_K, attention.W_V, attention.W_O)
        new = [
            jnp.where(where[:, None, None] > 0, own[None], each)
            for each, own, where in zip(old, block, (heads, groups, groups, heads), strict=True)
        ]
        layers.append(
            eqx.tree_at(
                lambda tree: (
                    tree.attention.W_Q,
                    tree.attention.W_K,
                    tree.attention.W_V,
                    tree.attention.W_O,
                ),
                layer,
                new,
            )
        )
    return mean_loss(eqx.tree_at(lambda tree: tree.layers, whole, tuple(layers)), *data)


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
def _last_rows(whole: WholeModel, tokens: Array, present: Array) -> Array:
    return jax.vmap(whole.hidden)(tokens, present)
