"""Encoders trained on a task with known decisive tokens: accuracies, attention and weights.

The measurements of section 1.6 of julistiono2024optimizing on an ensemble of one shape.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.core.solution import Result
from attlas.models.networks.encoder import Encoder, make_encoder
from attlas.training.sequence_classifiers import held_out_accuracies, train_classifiers
from julistiono2024optimizing.library.measures.encoder_attention import (
    attention_weights,
    readout_attention,
)
from julistiono2024optimizing.library.measures.weight_sizes import weight_sizes
from julistiono2024optimizing.library.training.decisive_tokens import DecisiveTokens

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
        epochs: largest number of epochs.
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
