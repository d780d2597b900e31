"""Encoders trained on a task with known decisive tokens: accuracies, attention and weights.

The measurements of section 1.6 of julistiono2024optimizing on an ensemble of one shape.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.core.argument_validation import validate_record_arguments
from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.data.token_sequences import TokenSequences
from attlas.models.networks.encoder import Encoder, make_encoder
from attlas.training.sequence_classifiers import held_out_accuracies, train_classifiers
from julistiono2024optimizing.library.training.decisive_tokens import DecisiveTokens


class WeightSizes(NamedTuple):
    """Sizes of the weights of e members.

    Attributes:
        counts: weights by log10 |w| between edges; the outer bins hold all that lie beyond.
        near_zero: share of weights below the threshold.
    """

    counts: Int[np.ndarray, "e bins"]
    near_zero: Float[np.ndarray, " e"]


@validate_record_arguments
def weight_sizes(
    weights: Float[Array | np.ndarray, " e *shape"],
    edges: Float[np.ndarray, " edges"],
    threshold: float = 1e-3,
) -> WeightSizes:
    """Distribution of log10 |w|, and the share of |w| below a threshold.

    Args:
        edges: increasing bin edges of log10 |w|.
        threshold: below which a weight counts as nearly zero.

    Examples:
        >>> result = weight_sizes(np.array([[0.0, 1e-4, 0.5, 20.0]]), np.array([-2.0, -1.0, 0.0]))
        >>> result.counts.tolist(), result.near_zero.tolist()
        ([[2, 2]], [0.5])
    """
    if len(edges) < 2 or not np.all(np.diff(edges) > 0):
        raise UserError(f"edges = {edges}: give at least two that increase")
    sizes = np.abs(np.asarray(weights)).reshape(len(weights), -1)
    logarithms = np.log10(np.clip(sizes, 10 ** edges[0], 10 ** edges[-1]))
    counts = np.stack([np.histogram(row, edges)[0] for row in logarithms])
    return WeightSizes(counts, np.mean(sizes < threshold, axis=1))


@eqx.filter_jit
def readout_attention(models: Encoder, data: TokenSequences) -> Float[Array, "e n T"]:
    r"""Share of each token in the attention of the readout, which is a first token of its own.

    Weights of the last block, heads averaged; the readout's own position is left out and the rest
    divided by its sum.

    Args:
        models: encoders along a leading axis of every array.

    Returns:
        One distribution over the tokens for each encoder and sequence.

    Examples:
        >>> from attlas.models.networks.encoder import make_encoder
        >>> make = lambda key: make_encoder(key, 3, 2, width=4, blocks=1, heads=1, hidden=4)
        >>> models = jax.vmap(make)(jax.random.split(jax.random.key(0), 2))
        >>> import numpy as np
        >>> data = TokenSequences(np.ones((5, 2), int), np.ones((5, 2), bool), np.zeros(5))
        >>> share = readout_attention(models, data)
        >>> share.shape, bool(jnp.allclose(share.sum(axis=-1), 1))
        ((2, 5, 2), True)
    """

    def attention_of_member(model: Encoder, tokens: Array, mask: Array) -> Array:
        weights = jnp.mean(model.attention(tokens, mask)[-1][:, 0, 1:], axis=0)
        return weights / jnp.sum(weights)

    members = jax.vmap(attention_of_member, in_axes=(None, 0, 0))
    return eqx.filter_vmap(members, in_axes=(0, None, None))(
        models, jnp.asarray(data.tokens), jnp.asarray(data.mask)
    )


def attention_weights(models: Encoder) -> dict[str, Float[Array, "e L d d"]]:
    """Query, key and value weights of all blocks.

    Args:
        models: encoders along a leading axis of every array.

    Returns:
        Weights by name, blocks along the second axis.

    Examples:
        >>> from attlas.models.networks.encoder import make_encoder
        >>> make = lambda key: make_encoder(key, 3, 2, width=4, blocks=3, heads=1, hidden=8)
        >>> models = jax.vmap(make)(jax.random.split(jax.random.key(0), 2))
        >>> {name: weights.shape for name, weights in attention_weights(models).items()}
        {'query': (2, 3, 4, 4), 'key': (2, 3, 4, 4), 'value': (2, 3, 4, 4)}
    """
    return {
        name: jnp.stack([getattr(block, name) for block in models.blocks], axis=1)
        for name in ("query", "key", "value")
    }


PARTS = ("query", "key", "value")
"""Of the attention: the first axis of counted weights."""


class DecisiveEncoders(NamedTuple):
    """What e encoders learnt; NaN for accuracies and attention of those that diverged.

    Attributes:
        accuracy: test accuracy at the selected, the last and the best epoch.
        decisive: attention of the readout on the decisive tokens of each sequence.
        by_place: its attention on each place, mean over the sequences.
        uniform: share of decisive tokens in each sequence.
        diverged: whether training ended in numbers that are not finite.
        selected_epoch: index of the epoch of best validation accuracy.
        epochs: number of trained epochs.
        curves: loss and held-out accuracies along the epochs, by name.
        weights: query, key and value weights after training, counted by log10 |w|.
        weights_near_zero: share of them that are nearly zero.
        weights_start: weights before training, counted the same way.
        weights_start_near_zero: the share before.
        selected: the encoders at their selected epochs, stacked.
    """

    accuracy: Float[np.ndarray, "3 e"]
    decisive: Float[np.ndarray, "e n"]
    by_place: Float[np.ndarray, "e T"]
    uniform: Float[np.ndarray, " n"]
    diverged: Bool[np.ndarray, " e"]
    selected_epoch: Int[np.ndarray, " e"]
    epochs: Int[np.ndarray, " e"]
    curves: Mapping[str, Float[np.ndarray, "e s"]]
    weights: Int[np.ndarray, "3 e bins"]
    weights_near_zero: Float[np.ndarray, "3 e"]
    weights_start: Int[np.ndarray, "3 e bins"]
    weights_start_near_zero: Float[np.ndarray, "3 e"]
    selected: Encoder


def train_decisive_encoders(
    task: DecisiveTokens,
    shape: Mapping[str, Any],
    optimizer: optax.GradientTransformation,
    keys: Key[Array, " e"],
    batch: int,
    epochs: int,
    stop_accuracy: float,
    edges: Float[np.ndarray, " edges"],
    quick_compile: bool = False,
) -> DecisiveEncoders:
    """Train an ensemble of encoders, then look at attention and weights.

    Args:
        task: sets, and the sequences at which attention is measured.
        shape: arguments of `make_encoder`.
        optimizer: optax transformation on all parameters.
        keys: random keys of starts, batches and dropout, one per member.
        stop_accuracy: training accuracy at which a member stops.
        edges: bin edges of log10 |w|.
        quick_compile: let XLA optimise little, where compiling costs more than training.
    """

    def start(key: Array) -> Encoder:
        return make_encoder(jax.random.fold_in(key, 1), **shape)

    models = jax.jit(jax.vmap(start), compiler_options=CHEAP_COMPILATION)(keys)
    path = train_classifiers(
        models, optimizer, task.sets, keys, batch, epochs, stop_accuracy,
        quick_compile=quick_compile,
    )  # fmt: skip
    diverged = np.asarray(path.result) == Result.NOT_FINITE.value
    share = np.asarray(readout_attention(path.selected, task.probe))
    return DecisiveEncoders(
        np.where(diverged, np.nan, np.stack(held_out_accuracies(path))),
        np.where(diverged[:, None], np.nan, np.sum(share * task.decisive[None], axis=2)),
        np.where(diverged[:, None], np.nan, share.mean(axis=1)),
        np.mean(task.decisive, axis=1, where=task.probe.mask),
        diverged,
        path.selected_at,
        np.sum(np.isfinite(path.test), axis=1),
        {"loss": path.loss, **path.observed},
        *_sizes(path.last, edges),
        *_sizes(models, edges),
        path.selected,
    )


def _sizes(models: Encoder, edges: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    weights = attention_weights(models)
    sizes = [weight_sizes(weights[name], edges) for name in PARTS]
    return np.stack([part.counts for part in sizes]), np.stack([part.near_zero for part in sizes])
