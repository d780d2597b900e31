r"""The loss that a change of a model is judged by, per sequence of the user's batch."""

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.interop.canonical import PatchEmbedding, Readout
from attlas.interop.forward import read_out
from attlas.interop.trained_transformer import TrainedTransformer

LossKind = Literal["next word", "masked word", "own output"]


class JudgedBatch(NamedTuple):
    """Sequences of one batch, padded at the end, and what their loss is.

    Attributes:
        kind: "next word": cross-entropy of the word that follows, in nats; "masked word": of the
            words that were hidden; "own output": Kullback-Leibler divergence from the logits of
            the unchanged model, 0 for itself.
        tokens: what the model reads.
        present: which tokens are no padding.
        targets: the word that is to be predicted at each token.
        counted: at which tokens the loss is taken.
    """

    kind: LossKind
    tokens: Int[np.ndarray, "n T"]
    present: Bool[np.ndarray, "n T"]
    targets: Int[np.ndarray, "n T"]
    counted: Bool[np.ndarray, "n T"]


def judged_batch(
    model: TrainedTransformer,
    sequences: Sequence[ArrayInput],
    *,
    mask_token: int | None = None,
    masked_share: float = 0.15,
    special: Sequence[int] = (),
    seed: int = 0,
) -> JudgedBatch:
    """A batch with the loss that fits the model.

    A causal model predicts the next word. One that sees both sides predicts words that are
    replaced by `mask_token`; without such a token its own output is what counts.

    Args:
        model: the model.
        sequences: vectors of word numbers, of any lengths.
        mask_token: the word that hides another.
        masked_share: share of the words that are hidden, at least one per sequence.
        special: words that are never hidden.
        seed: of the draw of hidden words.

    Returns:
        The batch.

    Raises:
        UserError: if there is no sequence, or a causal sequence of one token.
    """
    if isinstance(model.embedding, PatchEmbedding):
        raise UserError(f"{model.name} reads images: its loss needs labels, which an audit has not")
    if len(sequences) == 0:
        raise UserError("no sequence: give at least one")
    rows = [np.asarray(model.read_tokens(each)) for each in sequences]
    longest = max(row.size for row in rows)
    tokens = np.zeros((len(rows), longest), np.int32)
    present = np.arange(longest)[None] < np.array([row.size for row in rows])[:, None]
    for place, row in enumerate(rows):
        tokens[place, : row.size] = row
    if model.layer(0).attention.causal:
        if min(row.size for row in rows) < 2:
            raise UserError("a sequence of one token has no next word: give at least 2 tokens")
        targets = np.concatenate([tokens[:, 1:], tokens[:, :1]], axis=1)
        counted = present & np.concatenate([present[:, 1:], np.zeros_like(present[:, :1])], axis=1)
        return JudgedBatch("next word", tokens, present, targets, counted)
    if mask_token is None:
        return JudgedBatch("own output", tokens, present, tokens, present)
    score = np.random.default_rng(seed).random(tokens.shape)
    score[~present | np.isin(tokens, list(special))] = np.inf
    # the smallest scores are hidden: a share of each sequence, one word at least
    count = np.maximum(1, np.round(masked_share * np.isfinite(score).sum(axis=1))).astype(int)
    hidden = np.argsort(np.argsort(score, axis=1), axis=1) < count[:, None]
    hidden &= np.isfinite(score)
    return JudgedBatch("masked word", np.where(hidden, mask_token, tokens), present, tokens, hidden)


@eqx.filter_jit
def sequence_losses(
    readout: Readout,
    hidden: Float[Array, "n T d"],
    targets: Int[Array, "n T"],
    counted: Bool[Array, "n T"],
    unchanged: Float[Array, "n T d"] | None = None,
) -> Float[Array, " n"]:
    """Mean loss over the counted tokens of each sequence, in nats.

    Args:
        readout: of the model.
        hidden: rows that leave the last layer.
        targets: words to be predicted.
        counted: where.
        unchanged: the same rows of the unchanged model: the loss is the divergence from them.

    Returns:
        One loss per sequence.
    """

    def one(rows: Array, words: Array, where: Array, reference: Array | None) -> Array:
        logs = jax.nn.log_softmax(read_out(readout, rows), axis=-1)
        if reference is None:
            each = -jnp.take_along_axis(logs, words[:, None], axis=-1)[:, 0]
        else:
            before = jax.nn.log_softmax(read_out(readout, reference), axis=-1)
            each = jnp.sum(jnp.exp(before) * (before - logs), axis=-1)
        weight = where.astype(each.dtype)
        return jnp.sum(each * weight) / jnp.maximum(jnp.sum(weight), 1)

    if unchanged is None:
        alone = partial(one, reference=None)
        return jax.vmap(alone)(hidden, targets, counted)
    return jax.vmap(one)(hidden, targets, counted, unchanged)
