"""The files that `attlas audit` reads beside a model: a text, tokens, labels, images or pairs."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from attlas.core.errors import UserError

if TYPE_CHECKING:
    from attlas.audit.labelled_batch import Batch
    from attlas.audit.read_batch import TokenBatch
    from attlas.capture.captured_model import CapturedModel
    from attlas.transformers.tokenizer import Tokenizer
    from attlas.transformers.trained_transformer import TrainedTransformer


class Files(NamedTuple):
    """The options that name files, None where one is not given."""

    text: Path | None
    tokens: Path | None
    labels: Path | None
    images: Path | None
    pairs: Path | None

    @property
    def judged(self) -> bool:
        """Whether right answers judge the model, or it reads no text, so that PyTorch runs it."""
        return any((self.labels, self.images, self.pairs))


def require_files(files: Files, level: str | None, capture: bool | None) -> None:
    """Check that the files belong together, before a model is read.

    Raises:
        UserError: if two exclude each other, labels are of nothing, or PyTorch may not run.
    """
    names = ("text", "tokens", "images", "pairs")
    several = [f"--{name}" for name in names if getattr(files, name) is not None]
    if len(several) > 1:
        raise UserError(f"{several[0]} and {several[1]} exclude each other: give one")
    if files.labels is not None and several not in (["--text"], ["--images"]):
        raise UserError("--labels are of the lines of --text, or of --images: give one of them too")
    for name in ("labels", "images", "pairs"):
        if getattr(files, name) is not None and capture is False:
            raise UserError(f"with --{name} the model runs in PyTorch: leave --no-capture out")


def read_files(
    files: Files,
    model: "TrainedTransformer | CapturedModel",
    source: Path,
    tokenizer: "Tokenizer",
    config: Mapping[str, Any],
    sequences: int,
    length: int,
    level: str | None,
) -> "Batch":
    """The user's examples, those stored with the model, the built-in text's, or none.

    Args:
        source: folder of the model.
        config: the parsed config.json of that folder.
        sequences: largest number of examples.
        length: largest number of tokens of each.
    """
    from attlas.audit.labelled_batch import Batch, labelled_text, paired_texts
    from attlas.transformers.pooling import longest_input

    length = min(length, model.context or length)
    if level == "weights":
        return Batch(None)
    if files.images is not None:
        return _images(files.images, files.labels, model, source, config, sequences)
    if model.vocabulary == 0 or config.get("continuous") is True:
        return _without_tokens(files, level)
    if files.pairs is not None:
        limit = min(length, longest_input(source) or length)
        return paired_texts(tokenizer, files.pairs, length=limit, most=sequences)
    if files.labels is not None and files.text is not None:
        return labelled_text(
            tokenizer, config, files.text, files.labels, length=length, most=sequences
        )
    return _tokens(files, tokenizer, config, sequences, length, level)


def image_model(
    model: "TrainedTransformer | CapturedModel",
) -> "TrainedTransformer | CapturedModel":
    """The part of a model that reads images; itself where it has no such part."""
    from attlas.transformers.trained_transformer import TrainedTransformer

    return model if isinstance(model, TrainedTransformer) else model.image_tower()


def _images(
    folder: Path,
    labels: Path | None,
    model: "TrainedTransformer | CapturedModel",
    source: Path,
    config: Mapping[str, Any],
    most: int,
) -> "Batch":
    from attlas.audit.image_folder import image_batch
    from attlas.transformers.trained_transformer import TrainedTransformer

    if isinstance(model, TrainedTransformer) or not model.reads_images:
        raise UserError(
            f"--images is for models that read images alone, which {model.name} does not: give "
            "--text or --tokens, or the folder of its vision model"
        )
    return image_batch(source, config, folder, labels, most=most)


def _without_tokens(files: Files, level: str | None) -> "Batch":
    """No batch: the model reads images or sounds, and there are none."""
    from attlas.audit.labelled_batch import Batch

    if level is not None or any(files):
        raise UserError(
            "this model reads images or sounds, but levels data and deep need sequences "
            "of tokens, or --images FOLDER: give one, or choose --level weights"
        )
    typer.echo(
        "level weights: this model reads images or sounds, other levels need sequences of "
        "tokens, or --images FOLDER"
    )
    return Batch(None)


def _tokens(
    files: Files,
    tokenizer: "Tokenizer",
    config: Mapping[str, Any],
    sequences: int,
    length: int,
    level: str | None,
) -> "Batch":
    """Sequences without right answers."""
    from attlas.audit.labelled_batch import Batch
    from attlas.audit.read_batch import (
        default_text,
        lines_of_text,
        stored_batch,
        text_batch,
        token_batch,
    )

    if files.tokens is not None:
        read = token_batch(files.tokens, length=length, most=sequences)
        return _with_source(read, f"tokens of {files.tokens}")
    if files.text is None:
        stored = stored_batch(config, length=length, most=sequences)
        if stored:
            return Batch(stored, "stored with the model")
        if level is None and tokenizer.encode is None:
            typer.echo(
                "level weights: no tokenizer lies beside the model; its tokenizer.json there, or "
                "--tokens FILE, adds level data"
            )
            return Batch(None)
        lines, source = default_text().splitlines(), "the built-in English stories"
    else:
        lines, source = lines_of_text(files.text), str(files.text)
    read = text_batch(tokenizer, lines, length=length, most=sequences, source=source)
    return _with_source(read, f"of {source}")


def _with_source(read: "TokenBatch", source: str) -> "Batch":
    """The sequences and their label, with a remark on texts longer than a sequence."""
    from attlas.audit.labelled_batch import Batch

    return Batch(read.sequences, f"{source}; {read.longer}" if read.longer else source)
