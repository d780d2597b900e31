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
    "next word": "The loss is the cross-entropy of the next word, in nats.",
    "masked word": "The loss is the cross-entropy of hidden words, in nats.",
    "own output": "The loss is the divergence from the unchanged model's own output, in nats: no "
    "word is hidden or predicted.",
    "own rows": "The file holds no output layer: the loss is the squared distance of the last "
    "hidden rows from those of the unchanged model, in squared lengths of these, a mean over "
    "tokens.",
}
_PROTOCOL = (
    "Sinks: sequences cut to their first {sink_tokens} tokens ({sink_sequences} are as long), as "
    "they are, with shuffled words and with one word repeated (seed {seed}); a share counts heads "
    "and sequences whose first token receives more than {sink_threshold} of the weight. "
    "Certificates and attacks at tokens: as many as {probes} of these. Attention SVMs: in the "
    "space of {svm_space}; a margin compares with its null, not with one in another space. "
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
        model: the model.
        tokens: sequences that were read; None at level weights.
        batch: those of them that have a loss, likewise.
        facts: numbers of the whole model.
        source: what the sequences are; empty where nobody says.
        context: relative positions of the certificates.
        protocol: how sinks, certificates and intervals were made; empty at level weights.

    Returns:
        One sentence or two each.
    """
    notes = [] if tokens is None else [_read(tokens, source)]
    if protocol:
        notes.append(_PROTOCOL.format(**protocol))
    notes.append(
        "The sum over heads was compared with every layer's own matrices before anything was "
        "measured: no head is cut wrongly."
    )
    if max(model.stored_layer) + 1 < model.layers:
        notes.append(
            f"{model.layers} layers share {max(model.stored_layer) + 1}: weights are counted once, "
            "attention is measured in every layer."
        )
    attention = model.block(0).attention
    if attention.rotary is not None:
        notes.append("Positions rotate queries and keys: spectra of products are at offset 0.")
    if not enumerates_offsets(attention, context):
        notes.append(
            f"Heads of size {attention.W_Q.shape[-1]} at {context} relative positions are too many "
            "products: in certificates the norm of W_Q times that of W_K, never smaller, stands "
            "for the largest norm over relative positions."
        )
    if model.vocabulary == 0:
        notes.append(
            "The model reads images, levels data and deep read sequences of words: this is an "
            "audit of its weights."
        )
    if batch is not None:
        notes.extend(_judged(model, batch, facts))
    return tuple(notes)


def _read(tokens: Sequence[np.ndarray], source: str) -> str:
    """What was read."""
    lengths = sorted({len(each) for each in tokens})
    sizes = f"{lengths[0]} to {lengths[-1]}" if lengths[1:] else f"{lengths[0]}"
    said = f"Read: {len(tokens)} sequences of {sizes} tokens"
    return f"{said}, {source}." if source else f"{said}."


def _judged(model: TrainedTransformer, batch: JudgedBatch, facts: Facts) -> Iterator[str]:
    """What needs a loss."""
    yield _LOSSES[batch.kind]
    words = model.readout.words
    if batch.kind == "own output" and words is not None and words.W.shape[1] == 1:
        yield "The model has one logit z: it is read as two classes, with logits z and 0."
    if "selection_rows" in facts:
        yield (
            f"Local optimality is a share of {facts['selection_rows']} rows per head, of "
            f"{facts['selection_sequences']} sequences, at which the loss is taken."
        )
    if "curvature_products" in facts:
        yield (
            f"Hessian eigenvalues are those of the mean loss over the "
            f"{facts['curvature_sequences']} shortest sequences of the removals "
            f"({facts['curvature_tokens']} tokens), from at most {facts['curvature_products']} "
            "products per head; each interval fails with probability 1e-6."
        )
    if "step_times_sharpness" in facts:
        yield _stepped(facts)
        if batch.kind in COMPARED:
            yield "That sharpness is of the loss above, which is not the one of the training."
    if "lazy" in facts:
        yield _lazy(facts)


def _shown(facts: Facts, name: str, digits: int = 3) -> str:
    return plain_number(float(facts[name]), digits)


def _stepped(facts: Facts) -> str:
    """Step size times sharpness against the threshold of the optimiser."""
    momentum = _shown(facts, "momentum")
    how = f"heavy-ball momentum {momentum}" if facts["momentum"] else "no momentum"
    about = (
        f"the threshold {THRESHOLD} = {_shown(facts, 'threshold')} of gradient descent "
        f"({facts['optimizer']}) with {how}"
    )
    rate, low, high = (float(facts[f"{each}"]) for each in _OF_STEP)
    if np.isnan(low):
        return f"The sharpness did not converge: nothing is said about {about}."
    where = "on neither side for certain of"
    if rate * high < float(facts["threshold"]):
        where = "below"
    elif rate * low > float(facts["threshold"]):
        where = "above"
    return (
        f"Step size {_shown(facts, 'learning_rate')} times sharpness "
        f"{_shown(facts, 'sharpness')} is {_shown(facts, 'step_times_sharpness')} "
        f"[{plain_number(rate * low)}, {plain_number(rate * high)}], {where} {about}."
    )


_OF_STEP = ("learning_rate", "sharpness_low", "sharpness_high")


def _lazy(facts: Facts) -> str:
    """Whether training was lazy, and by which rule."""
    before, after, linear = (_shown(facts, f"loss_{at}", 6) for at in ("before", "after", "linear"))
    rule = (
        f"lazy is called what shows {plain_number(1 - LAZY)} to {plain_number(1 + LAZY)} of it "
        f"(loss {before} before, {after} after, {linear} linearised; drift of the tangent kernel "
        f"{_shown(facts, 'drift')})."
    )
    if facts["lazy"] == "not told":
        return f"Whether training was lazy is not told: the loss did not change; {rule}"
    verb = "was" if facts["lazy"] == "yes" else "was not"
    return (
        f"Training {verb} lazy between the two checkpoints: the model that is linearised at the "
        f"first shows {_shown(facts, 'explained')} of the change of the loss, and {rule}"
    )
