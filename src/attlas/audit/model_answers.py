"""What a model answers on a text: the probability of each token, or the class of each line."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy import special

from attlas.audit.class_labels import class_names, class_numbers
from attlas.audit.image_folder import ClassImages, read_image
from attlas.audit.opened_model import opened
from attlas.audit.padded_sequences import padded_tokens, padded_width
from attlas.audit.read_batch import line_sequences, require_known
from attlas.core.errors import UserError
from attlas.transformers.forward import read_out
from attlas.transformers.layer_pass import leave_layer
from attlas.transformers.load_model import open_checkpoint
from attlas.transformers.tokenizer import Tokenizer, read_tokenizer
from attlas.transformers.trained_transformer import TrainedTransformer
from attlas.transformers.whole_model import whole_model

if TYPE_CHECKING:
    from attlas.capture.captured_model import CapturedModel

LENGTH = 512
"""Tokens that the model sees at once where its positions set no lower limit."""
_NUMBERS = 2**24
"""Logits that are in memory at once."""
_TOGETHER = 64
"""Sequences that run together at most."""


class TokenProbabilities(NamedTuple):
    """The tokens of a text, in its order.

    Attributes:
        probabilities: of the token that came, given those before it in its line; of a token
            without one before it that of the uniform law.
        vocabulary: number of tokens that there are.
        bytes: length of the text in UTF-8, without the ends of its lines.
    """

    probabilities: Float[np.ndarray, " N"]
    vocabulary: int
    bytes: int


def token_probabilities(
    source: Path,
    lines: Sequence[str],
    capture: bool | None = None,
    *,
    ignore_settings: bool = False,
) -> TokenProbabilities:
    """The probabilities that a causal model gives to the tokens of a text.

    Each line is read by itself. A line longer than the model's context continues in a sequence of
    its own. A special token in front of a line is no text and does not count.

    Args:
        source: folder of the model with its tokenizer.
        lines: documents, one after the other.
        capture: whether PyTorch runs the model, see `opened`.
        ignore_settings: whether PyTorch runs a folder with settings that nobody knows.

    Raises:
        UserError: if the model has no tokenizer or does not predict the next token, or the text is
            empty.
    """
    model, tokenizer, _ = _opened(source, capture, ignore_settings)
    _require_causal(model)
    length = min(LENGTH, model.context or LENGTH)
    sequences, counted = _stream(tokenizer, lines, length)
    if not sequences:
        raise UserError("the text has no line that is not empty: give documents, one a line")
    require_known(tokenizer, sequences, "the text", "give one of the kind the model was trained on")
    parts: list[np.ndarray] = [np.empty(0)] * len(sequences)
    for place, logits in _logits(model, sequences):
        tokens = sequences[place]
        logs = special.log_softmax(logits[: tokens.size - 1], axis=-1)
        given = np.exp(np.take_along_axis(logs, tokens[1:, None], axis=-1)[:, 0])
        first = [1 / model.vocabulary] if counted[place] else []
        parts[place] = np.concatenate([first, np.minimum(given, 1.0)])
    size = sum(len(line.strip().encode()) for line in lines)
    return TokenProbabilities(np.concatenate(parts), model.vocabulary, size)


def class_table(
    source: Path, lines: Sequence[str], labels: Sequence[str], *, ignore_settings: bool = False
) -> dict[str, Any]:
    """The answers of a classifier on a text, as a table of predictions.

    PyTorch runs the model, since attlas by itself reads no heads of classes. Of a line that is
    longer than the model's context the first tokens are read.

    Args:
        source: folder of the model with its tokenizer.
        lines: documents, one example each.
        labels: right answers, by name or number of the class as config.json has them.
        ignore_settings: whether PyTorch runs a folder with settings that nobody knows.

    Returns:
        Columns label, prediction, confidence (probability of the prediction) and id (the line).

    Raises:
        UserError: if the model has no classes, or labels are not theirs or not as many as lines.
    """
    model, tokenizer, config = _opened(source, True, ignore_settings)
    if len(lines) != len(labels):
        raise UserError(f"{len(labels)} labels for {len(lines)} lines of text: give one for each")
    sequences = line_sequences(tokenizer, lines, length=model.context or LENGTH).sequences
    answers: list[Any] = [None] * len(lines)
    for place, logits in _logits(model, sequences):
        if logits.ndim != 1 or logits.size < 2:
            raise UserError(
                f"{model.name} gives no logits of classes: save the classifier with its head, "
                "leave --labels out for a model of the next token, or give its predictions as a "
                "file"
            )
        answers[place] = logits
    logits = np.stack(answers)
    names = class_names(config, logits.shape[1])
    return _class_columns(logits, names, class_numbers(labels, names), list(lines))


def image_table(
    source: Path, images: ClassImages, *, ignore_settings: bool = False
) -> dict[str, Any]:
    """The answers of a vision model on images, as a table of predictions.

    PyTorch runs the model, on a few images at a time.

    Args:
        source: folder of the model.
        images: images of a folder, see `attlas.audit.image_folder.class_images`.
        ignore_settings: whether PyTorch runs a folder with settings that nobody knows.

    Returns:
        Columns label, prediction, confidence (probability of the prediction) and id (the file).

    Raises:
        UserError: if the images have no labels, the model reads no images or gives no classes, or
            an image cannot be read or has another size than the first.
    """
    if images.labels is None:
        raise UserError(
            "the images have no labels: put them into sub-folders whose names are classes of the "
            "model, or give labels, one for each in the order of their paths"
        )
    config = open_checkpoint(source).config
    model = opened(source, True, ignore_settings=ignore_settings)
    if isinstance(model, TrainedTransformer) or not model.reads_images:
        raise UserError(f"{model.name} reads no images: give a text, or the folder of its model")
    logits = np.concatenate(list(_image_logits(model, images)))
    names = class_names(config, logits.shape[1])
    return _class_columns(logits, names, images.labels, [str(file) for file in images.files])


def _image_logits(
    model: "CapturedModel", images: ClassImages
) -> Iterator[Float[np.ndarray, "few C"]]:
    """Logits of a few images after the other."""
    shape = None
    for start in range(0, len(images.files), _TOGETHER):
        several = []
        for file in images.files[start : start + _TOGETHER]:
            image = read_image(file, images.processor)
            shape = shape or image.shape
            if image.shape != shape:
                raise UserError(f"{file} has shape {image.shape}, the first {shape}: resize it")
            several.append(image)
        logits = model.logits(np.stack(several))
        if logits.ndim != 2 or logits.shape[1] < 2:
            raise UserError(
                f"{model.name} gives no logits of classes: save the classifier with its head, or "
                "give its predictions as a file"
            )
        yield logits


def _class_columns(
    logits: Float[np.ndarray, "n C"],
    names: Sequence[str],
    right: Int[np.ndarray, " n"],
    examples: list[str],
) -> dict[str, Any]:
    """Logits of classes as the columns of a file of predictions."""
    best = logits.argmax(axis=1)
    return {
        "id": examples,
        "label": [names[k] for k in right],
        "prediction": [names[k] for k in best],
        "confidence": special.softmax(logits, axis=1).max(axis=1),
    }


def _opened(
    source: Path, capture: bool | None, ignore_settings: bool
) -> "tuple[TrainedTransformer | CapturedModel, Tokenizer, Mapping[str, Any]]":
    config = open_checkpoint(source).config
    tokenizer = read_tokenizer(source, config)
    if tokenizer.encode is None:
        raise UserError(f"{source} has no tokenizer that is read: give predictions as a file")
    model = opened(source, capture, mask=tokenizer.mask, ignore_settings=ignore_settings)
    return model, tokenizer, config


def _require_causal(model: "TrainedTransformer | CapturedModel") -> None:
    if isinstance(model, TrainedTransformer):
        causal = (
            model.vocabulary > 0
            and model.block(0).attention.causal
            and model.readout.lm_head is not None
            and not model.readout.first_only
        )
    else:
        causal = model.kind == "next token"
    if not causal:
        raise UserError(
            f"{model.name} does not predict the next token: give --labels for a classifier"
        )


def _encoded(tokenizer: Tokenizer, line: str) -> list[int]:
    assert tokenizer.encode is not None
    return tokenizer.encode(line.strip()) if line.strip() else []


def _stream(
    tokenizer: Tokenizer, lines: Sequence[str], length: int
) -> tuple[list[np.ndarray], list[bool]]:
    """Sequences of at most `length` tokens, and whether the first token of each is text."""
    sequences, counted = [], []
    for line in lines:
        tokens = np.array(_encoded(tokenizer, line), np.int32)
        for start in range(0, tokens.size, length):
            sequences.append(tokens[start : start + length])
            counted.append(start > 0 or int(tokens[0]) not in tokenizer.special)
    return sequences, counted


def _logits(
    model: "TrainedTransformer | CapturedModel", sequences: Sequence[np.ndarray]
) -> Iterator[tuple[int, np.ndarray]]:
    """The number of each sequence and its logits, in groups that run together."""
    with _threads(model, sequences):
        yield from _grouped_logits(model, sequences)


def _threads(
    model: "TrainedTransformer | CapturedModel", sequences: Sequence[np.ndarray]
) -> AbstractContextManager[Any]:
    """As many threads of PyTorch as run the model in the least time."""
    if isinstance(model, TrainedTransformer):
        return nullcontext()
    from attlas.capture.thread_choice import quickest_threads

    return quickest_threads(model, sequences)


def _grouped_logits(
    model: "TrainedTransformer | CapturedModel", sequences: Sequence[np.ndarray]
) -> Iterator[tuple[int, np.ndarray]]:
    own = isinstance(model, TrainedTransformer)
    run = _own_run(model) if own else lambda tokens, present: model.logits(tokens)
    lengths = np.array(
        [padded_width(row.size, model.context) if own else row.size for row in sequences]
    )
    for length in np.unique(lengths):
        members = np.flatnonzero(lengths == length)
        together = min(_TOGETHER, max(1, _NUMBERS // int(length * max(model.vocabulary, 1))))
        for start in range(0, members.size, together):
            part = members[start : start + together]
            # Always as many rows, so that one program serves all.
            rows = np.resize(part, min(together, members.size)) if own else part
            tokens, present = padded_tokens([sequences[k] for k in rows.tolist()], int(length))
            for place, logits in zip(part, run(tokens, present), strict=False):
                yield int(place), logits


def _own_run(model: TrainedTransformer) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """From tokens and whether they are no padding to logits, by the forward passes of attlas."""
    weights = whole_model(model)

    def run(tokens: np.ndarray, present: np.ndarray) -> np.ndarray:
        x = model.embed_batch(tokens)
        seen = jnp.asarray(present)
        for stored in weights.order:
            x = leave_layer(weights.layers[stored], x, seen)
        return np.asarray(jax.vmap(lambda rows: read_out(weights.readout, rows))(x))

    return run
