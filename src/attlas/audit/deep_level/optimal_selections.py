r"""The share of locally optimal selections: does a head select the tokens that lower the loss?

Row i of a head puts out a mean of what its tokens give, $\sum_jP_{ij}u_j$ with
$u_j=(W_V'x_j+b_V)W_O$. To first order the loss falls by $\gamma_{ij}$ per weight on token j.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from attlas.audit.data_level.normalised_tokens import normalised_tokens
from attlas.audit.data_level.probes import head_tokens, spread_rows
from attlas.audit.data_level.selected_tokens import (
    locally_optimal,
    selected_tokens,
    support_of,
)
from attlas.audit.sequence_loss import COMPARED, JudgedBatch, sequence_losses
from attlas.transformers.canonical import Layer
from attlas.transformers.folding import folded_attention
from attlas.transformers.forward import attention_input, head_outputs
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.whole_model import WholeModel, whole_model

_LENGTH = 64
"""Tokens of a sequence that are read, as by the SVMs of level data."""


class OptimalSelections(NamedTuple):
    """Shares per sequence; NaN where no SVM of a head's selections is certified.

    Attributes:
        share: of the rows whose selected token has a higher score than its support tokens.
        null: mean of 1 / (1 + number of support tokens), the share of scores in random order.
        rows: whose selections were compared, of all sequences.
    """

    share: Float[np.ndarray, "n L H"]
    null: Float[np.ndarray, "n L H"]
    rows: int


def optimal_selections(
    model: TrainedTransformer, batch: JudgedBatch, *, sequences: int = 4, rows: int = 4
) -> OptimalSelections | None:
    r"""Share of the selections of each head that are locally optimal.

    $$\gamma_{ij}=-\Big\langle\frac{\partial L}{\partial o_i},u_j\Big\rangle,\qquad
    \gamma_{is(i)}>\gamma_{ij}\ \text{for every support token }j$$

    with the output o_i of the attention at row i and the selected token s(i).

    Args:
        sequences: number of sequences, the longest, of which the first 64 tokens are taken.
        rows: largest number of rows per sequence, at equal distances among those at which the loss
            is taken.

    Returns:
        The shares; None where they are not defined: the loss compares the model with itself, and
        so has no slope, or no row sees two tokens.

    Source: section 1.1 of julistiono2024optimizing, with the loss's slope for the scores.
    """
    probes = [] if batch.kind in COMPARED else _probes(batch, sequences, rows)
    if not probes:
        return None
    weights = whole_model(model)
    share, null = np.empty((2, len(probes), model.layers, model.heads_per_layer))
    for place, (member, picked) in enumerate(probes):
        length = min(int(batch.present[member].sum()), _LENGTH)
        data = (part[member, :length] for part in (batch.tokens, batch.targets, batch.counted))
        passed = _sloped(weights, *(jnp.asarray(array) for array in data))
        entering, slopes = (np.asarray(array, np.float64) for array in passed)
        for index in range(model.layers):
            arguments = entering[index], slopes[index], picked
            share[place, index], null[place, index] = _of_layer(model, weights, index, *arguments)
    return OptimalSelections(share, null, sum(picked.size for _, picked in probes))


def _probes(
    batch: JudgedBatch, sequences: int, rows: int
) -> list[tuple[int, Int[np.ndarray, " n"]]]:
    """Sequences, the longest first, with rows at which the loss is taken; never the first row."""
    lengths = np.minimum(batch.present.sum(axis=1), _LENGTH)
    counted = [1 + np.flatnonzero(row[1:_LENGTH]) for row in batch.counted]
    order = [int(k) for k in np.argsort(-lengths, kind="stable") if counted[k].size]
    return [(k, spread_rows(counted[k], rows)) for k in order[:sequences]]


@eqx.filter_jit
def _sloped(
    weights: WholeModel, tokens: Array, targets: Array, counted: Array
) -> tuple[Float[Array, "L T d"], Float[Array, "L T out"]]:
    """Rows that enter each layer, and the loss's slope in what its attention adds."""

    def loss(added: Array) -> tuple[Array, Array]:
        *entering, last = weights.depths(tokens, added=added)
        judged = sequence_losses(weights.readout, last[None], targets[None], counted[None])
        return judged[0], jnp.stack(entering)

    out = weights.layers[0].attention.W_O
    nothing = jnp.zeros((len(weights.order), tokens.size, out.shape[2]), out.dtype)
    slopes, entering = jax.grad(loss, has_aux=True)(nothing)
    return entering, slopes


def _of_layer(
    model: TrainedTransformer,
    weights: WholeModel,
    index: int,
    entering: Float[np.ndarray, "T d"],
    slopes: Float[np.ndarray, "T out"],
    picked: Int[np.ndarray, " n"],
) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, " H"]]:
    """Share and null of the heads of a layer on one sequence, in float64."""
    layer = weights.layers[weights.order[index]]
    if layer.attention.relative is not None:  # no matrix alone selects
        nothing = np.full(len(layer.attention.group), np.nan)
        return nothing, nothing
    before = weights.layers[weights.order[index - 1]] if index else None
    norm, projection = model.input_norm(index, layer, before)
    with jax.enable_x64(True):
        wide, norm, projection = jax.tree.map(_widened, (layer, norm, projection))
        read = attention_input(wide, jnp.asarray(entering))
        tokens = np.asarray(normalised_tokens(read, norm, projection))
        folded = folded_attention(wide.attention, norm, projection)
        selected = selected_tokens(head_tokens(folded, tokens, picked))
        scores = _scores(wide, read, slopes[picked])
    solved = np.isfinite(selected.margin) & (selected.margin > 0)
    share = locally_optimal(selected, scores).mean(axis=1)
    null = (1 / (1 + support_of(selected).sum(axis=2))).mean(axis=1)
    return np.where(solved, share, np.nan), np.where(solved, null, np.nan)


def _widened(leaf: Array) -> Array:
    return jnp.asarray(np.asarray(leaf), np.float64)


def _scores(
    layer: Layer, read: Float[Array, "T d"], slopes: Float[np.ndarray, "n out"]
) -> Float[np.ndarray, "H n T"]:
    """Scores gamma of every token for the chosen rows."""
    size, heads = read.shape[0], len(layer.attention.group)
    alone = jnp.broadcast_to(jnp.eye(size), (heads, size, size))
    return -np.einsum("id,hjd->hij", slopes, np.asarray(head_outputs(layer.attention, alone, read)))
