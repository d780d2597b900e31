"""What a reader of an audit by capture should know first."""

from collections.abc import Sequence

import numpy as np

from attlas.audit.captured.captured_ablation import CapturedLoss
from attlas.audit.captured.captured_answers import SCALE, CapturedAnswers
from attlas.audit.notes import OTHER_LOSS, Facts, step_note
from attlas.capture.captured_heads import CapturedHeads
from attlas.capture.captured_model import CapturedModel
from attlas.display.numbers import plain_number

_LOSSES = {
    "next token": "The loss is the cross-entropy of the next token, in nats.",
    "masked token": "The loss is the cross-entropy of hidden tokens, in nats.",
    "sequence to sequence": "The decoder repeats the text that the encoder reads: the loss is the "
    "cross-entropy of its next token, in nats.",
    "outputs": "The loss is the divergence from the unchanged model's own output, in nats.",
    "hidden states": "The model has no LM head: the loss is the squared distance of the last "
    "hidden states from those of the unchanged model, in squared lengths of these, a mean over "
    "tokens.",
}


def captured_notes(
    model: CapturedModel,
    layers: list[CapturedHeads | None],
    tokens: list[np.ndarray] | None,
    loss: CapturedLoss | None,
    facts: Facts,
    source: str,
) -> list[str]:
    """The notes of an audit by capture.

    Args:
        layers: attentions in the order of the run; None for one without plain maps.
        tokens: sequences or images that were read; None at level weights.
        loss: losses that judge a change; None at level weights.
        facts: numbers that the audit found, by name.
        source: name of what was read; may be empty.
    """
    notes = []
    if tokens is not None:
        said = f"Read: {_read(model, tokens)}"
        notes.append(f"{said}, {source}." if source else f"{said}.")
        if model.reads_images:
            notes.append(
                "Tokens of an image are its patches, row by row, behind those that the model adds, "
                "which count as special: the first token is its class token, where it has one. In "
                "place of tokens, patches were shuffled or repeated."
            )
    precision = "float64" if model.wide else str(model.dtype).removeprefix("torch.")
    notes.append(
        f"The model ran in PyTorch ({precision}, eager attention) and its attention was captured; "
        "layers are its attentions in the order in which they ran: "
        + ", ".join("?" if layer is None else layer.name for layer in layers[:_NAMED])
        + (f" and {len(layers) - _NAMED} more." if len(layers) > _NAMED else ".")
    )
    notes.append(
        "The columns of queries, keys and values are those whose outputs the attention used, and "
        "the sum over heads was compared with what the output projection returned."
    )
    lacking = {
        "has no plain map of all tokens": [layer is None for layer in layers],
        "has queries or keys that are no rotated linear map of what it reads": [
            layer is not None and (layer.query is None or layer.key is None) for layer in layers
        ],
        "adds positions or other terms to its logits": [
            layer is not None and (layer.biased or not np.isfinite(layer.scale)) for layer in layers
        ],
        "changes its context before an output projection reads it": [
            layer is not None and layer.W_O is None for layer in layers
        ],
    }
    for what, where in lacking.items():
        if any(where):
            numbers = [str(index) for index, there in enumerate(where) if there]
            notes.append(
                f"Layer {', '.join(numbers[:_NAMED])} {what}: quantities that need it are omitted."
            )
    notes.append(
        "Attacks, attention SVMs, depths and the curvature of heads are not part of a capture."
    )
    return notes if loss is None else [*notes, *_judged(model, loss, facts)]


def _judged(model: CapturedModel, loss: CapturedLoss, facts: Facts) -> list[str]:
    """What needs a loss."""
    notes = [_of_answers(loss) if isinstance(loss, CapturedAnswers) else _of_loss(model)]
    if "step_times_sharpness" in facts:
        notes.append(step_note(facts, "all weights that require a gradient", loss.examples))
        notes += [OTHER_LOSS] if loss.compares else []
    return notes


def guessing_caution(loss: CapturedAnswers, right: int, low: float) -> str:
    """That a model may answer no better than a guess; empty where it answers better.

    Args:
        right: number of examples that the unchanged model answers right.
        low: lower end of an interval of their share.
    """
    if low > loss.guessing:
        return ""
    number, guess = len(loss.right), plain_number(loss.guessing)
    if loss.documents is None:
        way, check = "naming the most frequent class", "labels are those of config.json"
    else:
        way, check = "drawing a document", "pooling is that of its training"
    return (
        f"The model answers {right} of {number} {loss.examples} right, and {way} is right in a "
        f"share of {guess}, which the test cannot tell apart: what is said to do is about a model "
        f"that may only guess. See first whether its {check}, and whether its tokenizer is its own."
    )


def _read(model: CapturedModel, tokens: Sequence[np.ndarray]) -> str:
    if model.reads_images:
        channels, height, width = tokens[0].shape
        return f"{len(tokens)} images of {height} times {width} points in {channels} channels"
    lengths = sorted({len(sequence) for sequence in tokens})
    sizes = f"{lengths[0]} to {lengths[-1]}" if lengths[1:] else f"{lengths[0]}"
    return f"{len(tokens)} sequences of {sizes} tokens"


def _of_loss(model: CapturedModel) -> str:
    if model.reads_images and model.kind == "hidden states":
        return _LOSSES[model.kind].replace("LM head", "head")
    return _LOSSES[model.kind]


def _of_answers(loss: CapturedAnswers) -> str:
    """The loss of right answers, and of how many examples."""
    number = len(loss.right)
    if loss.documents is None:
        classes = len(np.unique(loss.right))
        return (
            f"The loss is the cross-entropy of the labels, in nats, on {number} {loss.examples} of "
            f"{classes} {'class' if classes == 1 else 'classes'}; the accuracy is the share whose "
            "label alone has the largest logit."
        )
    pooling = {
        "mean": "means of the last hidden states",
        "max": "largest values of the last hidden states",
        "cls": "last hidden states of the first token",
        "lasttoken": "last hidden states of the last token",
    }[loss.model.pooling]
    return (
        f"Retrieval: {number} queries look for their own among {len(loss.documents)} documents, by "
        f"the cosine of embeddings ({pooling}). The loss is the cross-entropy of the right "
        f"document, with {SCALE:g} times the cosines as logits, in nats; accuracy@1 is the share "
        "of queries whose own document comes first. More documents make it harder: compare only "
        "at the same number."
    )


_NAMED = 12
"""Layers up to which a note names all."""
