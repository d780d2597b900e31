r"""The loss that a change of a model is judged by, per sequence of the user's batch."""

from collections.abc import Sequence
from functools import partial
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from attlas.audit.padded_sequences import padded_tokens
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError
from attlas.transformers.canonical import PatchEmbedding, Readout
from attlas.transformers.forward import read_out
from attlas.transformers.trained_transformer import TrainedTransformer

LossKind = Literal["next token", "masked token", "outputs", "hidden states"]
COMPARED: tuple[LossKind, ...] = ("outputs", "hidden states")
"""Kinds that compare a changed model with the unchanged one: 0 for that itself."""


_BYTES = 2**27
"""Of the logits that are in memory at once: 64 sequences of 256 of 50,257 tokens have 3.3 GB."""
_SIMILAR = 96
"""Lengths of a group of sequences that are padded together differ by less."""


class JudgedBatch(NamedTuple):
    """Sequences of one batch, padded at the end, and their loss.

    Attributes:
        kind: "next token": cross-entropy of the token that follows, in nats; "masked token": of the
            tokens that were hidden; "outputs": Kullback-Leibler divergence from the output of
            the unchanged model, in nats; one logit is that of the first of two classes; "hidden
            states": squared distance of the last hidden states from those of the unchanged model,
            over their squared length.
        tokens: input of the model.
        present: False for padding.
        targets: token to be predicted at each position.
        counted: True where a token counts for the loss.
    """

    kind: LossKind
    tokens: Int[np.ndarray, "n T"]
    present: Bool[np.ndarray, "n T"]
    targets: Int[np.ndarray, "n T"]
    counted: Bool[np.ndarray, "n T"]

    @property
    def unit(self) -> str:
        """What the loss is counted in, as said after a number."""
        return "squared state lengths" if self.kind == "hidden states" else "nats"


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

    A causal model predicts the next token. One that sees both sides predicts tokens that are
    replaced by `mask_token`. Without such a token, or for a model of classes, its own output is
    what counts, and for a file without an LM head its last hidden states.

    Args:
        sequences: vectors of token numbers, of any lengths.
        mask_token: the token that hides another.
        masked_share: share of the tokens that are hidden, at least one per sequence.
        special: tokens that are never hidden.

    Raises:
        UserError: if there is no sequence, a causal one of one token, one without a token that may
            be hidden, or a mask token outside the vocabulary.
    """
    if isinstance(model.embedding, PatchEmbedding):
        raise UserError(
            f"{model.name} reads images: its loss needs labels, which an audit does not read"
        )
    if len(sequences) == 0:
        raise UserError("no sequence: give at least one")
    rows = [np.asarray(model.read_tokens(sequence)) for sequence in sequences]
    longest = max(row.size for row in rows)
    tokens, present = padded_tokens(rows, longest)
    if model.readout.lm_head is None or model.readout.first_only:
        kind: LossKind = "hidden states" if model.readout.lm_head is None else "outputs"
        return JudgedBatch(kind, tokens, present, tokens, present)
    if model.block(0).attention.causal:
        if min(row.size for row in rows) < 2:
            raise UserError("a sequence of one token has no next token: give at least 2 tokens")
        targets = np.concatenate([tokens[:, 1:], tokens[:, :1]], axis=1)
        counted = present & np.concatenate([present[:, 1:], np.zeros_like(present[:, :1])], axis=1)
        return JudgedBatch("next token", tokens, present, targets, counted)
    if mask_token is None:
        return JudgedBatch("outputs", tokens, present, tokens, present)
    if not 0 <= mask_token < model.vocabulary:
        raise UserError(
            f"mask token {mask_token} is outside the vocabulary 0 to {model.vocabulary - 1}"
        )
    hidden = _hidden_tokens(tokens, present, masked_share, special, seed)
    return JudgedBatch(
        "masked token", np.where(hidden, mask_token, tokens), present, tokens, hidden
    )


def sequences_of(batch: JudgedBatch, members: Int[np.ndarray, " m"]) -> JudgedBatch:
    """Some sequences of a batch, padded to the longest of them alone."""
    length = int(batch.present[members].sum(axis=1).max())
    return JudgedBatch(batch.kind, *(part[members, :length] for part in batch[1:]))


def similar_lengths(batch: JudgedBatch) -> list[Int[np.ndarray, " m"]]:
    """Numbers of sequences in groups of similar lengths, the shortest first: little is padded."""
    group = (batch.present.sum(axis=1) - 1) // _SIMILAR
    return [np.flatnonzero(group == label) for label in np.unique(group)]


def shortest_sequences(batch: JudgedBatch, count: int) -> JudgedBatch:
    """The `count` shortest sequences of a batch, or all; the first of equal ones."""
    return sequences_of(
        batch, np.sort(np.argsort(batch.present.sum(axis=1), kind="stable")[:count])
    )


def _hidden_tokens(
    tokens: Int[np.ndarray, "n T"],
    present: Bool[np.ndarray, "n T"],
    share: float,
    special: Sequence[int],
    seed: int,
) -> Bool[np.ndarray, "n T"]:
    """A share of each sequence's tokens that are not special, at least one."""
    score = np.random.default_rng(seed).random(tokens.shape)
    score[~present | np.isin(tokens, list(special))] = np.inf
    candidates = np.isfinite(score).sum(axis=1)
    if np.any(candidates == 0):
        raise UserError(
            f"sequence {int(np.argmin(candidates))} has only special tokens, of which none is "
            "hidden: leave it out"
        )
    # the smallest scores are hidden
    count = np.clip(np.round(share * candidates), 1, candidates).astype(int)
    return np.argsort(np.argsort(score, axis=1), axis=1) < count[:, None]


@eqx.filter_jit
def sequence_losses(
    readout: Readout,
    hidden: Float[Array, "n T d"],
    targets: Int[Array, "n T"],
    counted: Bool[Array, "n T"],
    unchanged: Float[Array, "n T d"] | None = None,
) -> Float[Array, " n"]:
    """Mean loss over the counted tokens of each sequence, in the unit of the batch.

    Args:
        hidden: hidden states that leave the last layer.
        counted: True where a token counts for the loss.
        unchanged: the same hidden states of the unchanged model: the loss is the divergence from
            them, or the distance where the model has no LM head.
    """

    def of_sequence(rows: Array, tokens: Array, where: Array, reference: Array | None) -> Array:
        if readout.lm_head is None:
            assert reference is not None
            return _state_distance(rows, reference, where)
        logits = read_out(readout, rows)
        if reference is None:
            return token_loss(logits, tokens, where)
        # The unchanged model's logits stay where they are, also when the readout moves.
        fixed = read_out(jax.lax.stop_gradient(readout), reference)
        logs, before = (_logarithms(scores) for scores in (logits, fixed))
        divergence = jnp.sum(jnp.exp(before) * (before - logs), axis=-1)
        return divergence if readout.first_only else _mean(divergence, where)

    arguments = (hidden, targets, counted) + (() if unchanged is None else (unchanged,))
    loss = partial(of_sequence, reference=None) if unchanged is None else of_sequence
    together = _together(readout, hidden)
    if together >= len(hidden):
        return jax.vmap(loss)(*arguments)
    return jax.lax.map(lambda rows: loss(*rows), arguments, batch_size=together)


def _together(readout: Readout, hidden: Array) -> int:
    """Sequences whose logits are in memory at once."""
    if readout.lm_head is None:
        return len(hidden)
    logits = eqx.filter_eval_shape(read_out, readout, hidden[0])
    return max(1, _BYTES // (logits.size * logits.dtype.itemsize))


def _logarithms(logits: Array) -> Array:
    """Logarithms of the probabilities; one logit z is that of two classes with logits z and 0."""
    if logits.shape[-1] == 1:  # a softmax of one number is 1 whatever the model does
        logits = jnp.concatenate([logits, jnp.zeros_like(logits)], axis=-1)
    return jax.nn.log_softmax(logits, axis=-1)


def token_loss(
    logits: Float[Array, "T V"], tokens: Int[Array, " T"], where: Bool[Array, " T"]
) -> Float[Array, ""]:
    """Mean cross-entropy of the counted tokens, in nats.

    Examples:
        Equal logits of four tokens cost log 4 each; the token that does not count costs nothing.

        >>> logits, tokens = jnp.array([[0.0] * 4, [9.0, 0.0, 0.0, 0.0]]), jnp.array([2, 1])
        >>> print(f"{token_loss(logits, tokens, jnp.array([True, False])) / jnp.log(4):.6f}")
        1.000000
    """
    target = jnp.take_along_axis(logits, tokens[:, None], axis=-1)[:, 0]
    return _mean(jax.nn.logsumexp(logits, axis=-1) - target, where)


def _state_distance(rows: Array, reference: Array, where: Array) -> Array:
    """Mean over tokens of |h - h_0|^2 / |h_0|^2."""
    square = jnp.sum((rows - reference) ** 2, axis=-1) / jnp.sum(reference**2, axis=-1)
    return _mean(square, where)


def _mean(values: Array, where: Array) -> Array:
    """Mean of the counted values; 0 where none is."""
    weight = where.astype(values.dtype)
    return jnp.sum(values * weight) / jnp.maximum(jnp.sum(weight), 1)
