r"""What a reader of an audit has to know first, in sentences."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attlas.audit.deep_level.stable_step import THRESHOLD
from attlas.audit.deep_level.tangent_drift import LAZY
from attlas.audit.sequence_loss import COMPARED, JudgedBatch
from attlas.audit.weights_level.head_certificates import enumerates_offsets
from attlas.display.numbers import plain_number
from attlas.transformers.trained_transformer import TrainedTransformer

Facts = Mapping[str, int | float | str]

_LOSSES = {
    "next token": "The loss is the cross-entropy of the next token, in nats.",
    "masked token": "The loss is the cross-entropy of hidden tokens, in nats.",
    "outputs": "The loss is the divergence from the unchanged model's own output, in nats: no "
    "token is hidden or predicted.",
    "hidden states": "The file holds no LM head: the loss is the squared distance of the last "
    "hidden states from those of the unchanged model, in squared lengths of these, a mean over "
    "tokens.",
}
_PROTOCOL = (
    "Sinks: sequences cut to their first {sink_tokens} tokens ({sink_sequences} are as long), as "
    "they are, with shuffled tokens and with one token repeated (seed {seed}); a share counts "
    "heads and sequences whose first token receives more than {sink_threshold} of the weight. "
    "Certificates and attacks at tokens: as many as {probes} of these. Attention SVMs: in the "
    "space of {svm_space}; compare a margin only with the random margin beside it. "
    "Intervals: level {level}, {draws} bootstrap draws of the {sequences} sequences."
)


def notes_of(
    model: TrainedTransformer,
    tokens: Sequence[np.ndarray] | None,
    batch: JudgedBatch | None,
    facts: Facts,
    source: str,
    context: int,
    protocol: Mapping[str, Any],
) -> tuple[str, ...]:
    """The notes of an audit.

    Args:
        tokens: sequences that were read; None at level weights.
        batch: those of them that have a loss, likewise.
        source: name of the sequences; may be empty.
        context: relative positions of the certificates.
        protocol: protocol of sinks, certificates and intervals; empty at level weights.
    """
    notes = [] if tokens is None else [_read(tokens, source)]
    if protocol:
        notes.append(_PROTOCOL.format(**protocol))
    notes.append(
        "The sum over heads was compared with every layer's own matrices before anything was "
        "measured: the head layout is right."
    )
    if max(model.stored_layer) + 1 < model.layers:
        notes.append(
            f"{model.layers} layers share {max(model.stored_layer) + 1}: weights are counted once, "
            "attention is measured in every layer."
        )
    attention = model.block(0).attention
    if attention.rotary is not None:
        notes.append("Positions rotate queries and keys: spectra of products are at offset 0.")
    if attention.relative is not None:
        notes.append(
            "Positions add to the logits: certificates count it, spectra of products leave it out, "
            "and attention SVMs are not solved."
        )
    if not enumerates_offsets(attention, context):
        notes.append(
            f"Heads of size {attention.W_Q.shape[-1]} at {context} relative positions are too many "
            "products: in certificates the norm of W_Q times that of W_K, never smaller, stands "
            "for the largest norm over relative positions."
        )
    if model.vocabulary == 0:
        notes.append(
            "The model reads images, levels data and deep read sequences of tokens: this is an "
            "audit of its weights."
        )
    if batch is not None:
        notes.extend(_judged(model, batch, facts))
    return (*notes, *model.notes)


def _read(tokens: Sequence[np.ndarray], source: str) -> str:
    """What was read."""
    lengths = sorted({len(sequence) for sequence in tokens})
    sizes = f"{lengths[0]} to {lengths[-1]}" if lengths[1:] else f"{lengths[0]}"
    said = f"Read: {len(tokens)} sequences of {sizes} tokens"
    return f"{said}, {source}." if source else f"{said}."


def _judged(model: TrainedTransformer, batch: JudgedBatch, facts: Facts) -> Iterator[str]:
    """What needs a loss."""
    yield _LOSSES[batch.kind]
    head = model.readout.lm_head
    if batch.kind == "outputs" and head is not None and head.W.shape[1] == 1:
        yield "The model has one logit z: it is read as two classes, with logits z and 0."
    if "selection_rows" in facts:
        yield (
            f"Local optimality is a share of {facts['selection_rows']} rows per head, of "
            f"{facts['selection_sequences']} sequences, at which the loss is taken."
        )
    if "curvature_products" in facts:
        yield (
            f"Hessian eigenvalues are those of the mean loss over the "
            f"{facts['curvature_sequences']} shortest sequences of the ablations "
            f"({facts['curvature_tokens']} tokens), from at most {facts['curvature_products']} "
            "products per head; each interval fails with probability 1e-6."
        )
    if "step_times_sharpness" in facts:
        yield step_note(facts)
        if batch.kind in COMPARED:
            yield OTHER_LOSS
    if "lazy" in facts:
        yield _lazy(facts)


def _number(facts: Facts, name: str, digits: int = 3) -> str:
    return plain_number(float(facts[name]), digits)


ALL_WEIGHTS = "all weights (biases that are 0 throughout count as absent)"
OTHER_LOSS = "That sharpness is of the loss above, which is not the one of the training."


def step_note(facts: Facts, weights: str = ALL_WEIGHTS, examples: str = "sequences") -> str:
    """Step size times sharpness against the threshold of the optimiser.

    Args:
        weights: those in which the loss is differentiated, prose.
        examples: sequences, texts or images, whichever the loss is a mean of.
    """
    momentum = _number(facts, "momentum")
    how = f"heavy-ball momentum {momentum}" if facts["momentum"] else "no momentum"
    about = (
        f"the threshold {THRESHOLD} = {_number(facts, 'threshold')} of gradient descent "
        f"({facts['optimizer']}) with {how}"
    )
    rate, low, high = (float(facts[f"{fact}"]) for fact in _OF_STEP)
    if np.isnan(low):
        return f"The sharpness did not converge: nothing is said about {about}."
    where = "on neither side for certain of"
    if rate * high < float(facts["threshold"]):
        where = "below"
    elif rate * low > float(facts["threshold"]):
        where = "above"
    return (
        f"Step size {_number(facts, 'learning_rate')} times the sharpness "
        f"{_number(facts, 'sharpness')} of {facts['sharpness_sequences']} {examples}, in "
        f"{weights}, is {_number(facts, 'step_times_sharpness')} "
        f"[{plain_number(rate * low)}, {plain_number(rate * high)}], {where} {about}."
    )


_OF_STEP = ("learning_rate", "sharpness_low", "sharpness_high")


def _lazy(facts: Facts) -> str:
    """Whether training was lazy, and by which rule."""
    before, after, linear = (
        _number(facts, f"loss_{at}", 6) for at in ("before", "after", "linear")
    )
    rule = (
        f"training counts as lazy where the linearised model shows {plain_number(1 - LAZY)} to "
        f"{plain_number(1 + LAZY)} of the change (loss {before} before, {after} after, {linear} "
        f"linearised; drift of the tangent kernel {_number(facts, 'drift')})."
    )
    if facts["lazy"] == "not told":
        return f"Whether training was lazy is unknown: the loss did not change; {rule}"
    verb = "was" if facts["lazy"] == "yes" else "was not"
    return (
        f"Training {verb} lazy between the two checkpoints: the model that is linearised at the "
        f"first shows {_number(facts, 'explained')} of the change of the loss; {rule}"
    )
