r"""Guarantees on models: from their predictions, or from their folders and a text or images.

What reads models is imported where a folder is given: predictions need the certificates alone.
"""

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from attlas._files.plain_file import printable
from attlas.certificates.certify import DELTA, Certification, Files
from attlas.certificates.certify import certify as certify_predictions
from attlas.certificates.columns import Columns, Table
from attlas.certificates.prediction_file import table_predictions
from attlas.certificates.predictions import Predictions
from attlas.certificates.stream import StreamGuarantee, stream_guarantee
from attlas.core.arrays import ArrayInput
from attlas.core.errors import UserError

Lines = str | os.PathLike[str] | Sequence[str]
"""The path of a text file, or its lines."""


@overload
def certify(
    losses: Files,
    *,
    text: Lines,
    labels: None = None,
    images: None = None,
    capture: bool | None = None,
    ignore_settings: bool = False,
    delta: float = DELTA,
    at_most: float | None = None,
) -> tuple[StreamGuarantee, ...]: ...


@overload
def certify(
    losses: Any,
    *,
    text: Lines | None = None,
    labels: Lines | None = None,
    images: str | os.PathLike[str] | None = None,
    capture: bool | None = None,
    ignore_settings: bool = False,
    delta: float = DELTA,
    at_most: float | None = None,
    **options: Any,
) -> Certification: ...


def certify(
    losses: Any,
    *,
    text: Lines | None = None,
    labels: Lines | None = None,
    images: str | os.PathLike[str] | None = None,
    capture: bool | None = None,
    ignore_settings: bool = False,
    delta: float = DELTA,
    at_most: float | None = None,
    **options: Any,
) -> Certification | tuple[StreamGuarantee, ...]:
    r"""How often models are wrong on new examples, at most, with a guarantee.

    Folders of models answer a text or images first: classifiers with `labels`, vision models with
    `images`, whose sub-folders may bear the names of the classes, language models with `text`
    alone, whose bits per token are certified.

    Args:
        losses: numbers in [0, 1], of shape [n], 1 for an error: of one model, or by name of several
            on the same examples; or paths of files of predictions, or of folders of models.
        text: path of a text, a document per line, or its lines; for folders of models.
        labels: path of the right classes, one per line, or these; for `text` or `images`.
        images: folder of images, for folders of vision models.
        capture: whether PyTorch runs a language model; by default where attlas cannot read it.
        ignore_settings: whether PyTorch runs a folder whose settings nobody knows.
        delta: probability that any certificate fails.
        at_most: the risk, or the bits per token, that a model shall have at most.
        options: further ones of `attlas.certificates.certify.certify`, such as `baseline`,
            `sequential` and `groups`.

    Returns:
        The certificates; of a text without labels one of each language model, in their order.

    Raises:
        UserError: if losses are outside [0, 1] or not of one set, folders and files are mixed, an
            option does not fit, or a model cannot answer.

    Examples:
        >>> result = certify([0] * 970 + [1] * 30, at_most=0.05)
        >>> print(f"{result.models[0].bound.bound:.4f} {result.passes}")
        0.0405 True
    """
    if text is None and images is None:
        _require_unused(labels, capture, ignore_settings)
        return certify_predictions(losses, delta=delta, at_most=at_most, **options)
    _require(text, images, labels, capture, options)
    folders = _folders(losses)
    lines, right = (None if value is None else _lines(value) for value in (text, labels))
    if lines is not None and right is None:
        return stream_guarantees(folders, lines, delta, at_most, capture, ignore_settings)
    tables = [answered_table(folder, lines, images, right, ignore_settings) for folder in folders]
    several = _predictions(folders, tables)
    return certify_predictions(several, delta=delta, at_most=at_most, **options)


def _require(
    text: Any, images: Any, labels: Any, capture: bool | None, options: Mapping[str, Any]
) -> None:
    """Check that what models answer fits together."""
    if text is not None and images is not None:
        raise UserError("text and images exclude each other: give one")
    is_stream = text is not None and labels is None
    if is_stream and options:
        raise UserError(f"{min(options)} is for errors, and a text without labels has none")
    if not is_stream and capture is False:
        raise UserError("classifiers are run in PyTorch: leave capture=False out")


def _require_unused(labels: Any, capture: bool | None, ignore_settings: bool) -> None:
    """Check that predictions come without options for models."""
    if labels is not None or capture is not None or ignore_settings:
        raise UserError("labels, capture and ignore_settings are for text or images: give one")


def _predictions(folders: Sequence[Path], tables: Sequence[Table]) -> list[Predictions]:
    """The answers of the models, each by the name of its folder."""
    names = [folder.resolve().name for folder in folders]
    titles = [
        printable(name if names.count(name) == 1 else str(folder))
        for folder, name in zip(folders, names, strict=True)
    ]
    rows = zip(tables, titles, names, strict=True)
    return [table_predictions(table, Columns(), title, name) for table, title, name in rows]


def answered_table(
    folder: Path,
    lines: Sequence[str] | None,
    images: str | os.PathLike[str] | None,
    labels: Sequence[str] | None,
    ignore_settings: bool,
) -> Table:
    """The answers of a classifier, as a file of predictions would have them.

    Args:
        folder: folder of the model.
        lines: lines of a text, or None for images.
        images: folder of images, or None for a text.
        labels: right classes; by the names of the sub-folders of the images when None.

    Raises:
        UserError: if the model gives no classes of them, or the labels are not theirs.
    """
    from attlas.audit.image_folder import class_images
    from attlas.audit.model_answers import class_table, image_table

    if images is None:
        return class_table(folder, lines or (), labels or (), ignore_settings=ignore_settings)
    return image_table(
        folder, class_images(folder, Path(images), labels), ignore_settings=ignore_settings
    )


def stream_guarantees(
    folders: Sequence[Path],
    lines: Sequence[str],
    delta: float,
    at_most: float | None = None,
    capture: bool | None = None,
    ignore_settings: bool = False,
) -> tuple[StreamGuarantee, ...]:
    """The bits per token that language models need for a text, all together but for delta.

    Args:
        folders: folders of the models.
        lines: documents of the text.
        delta: probability that any certificate fails.
        at_most: bits per token that a model shall need at most.
        capture: whether PyTorch runs the models, see `attlas.audit.opened_model.opened`.
        ignore_settings: whether PyTorch runs folders whose settings nobody knows.

    Raises:
        UserError: if a model does not predict the next token, or the text is empty.
    """
    from attlas.audit.model_answers import token_probabilities

    share = math.nextafter(delta / len(folders), 0) if len(folders) > 1 else delta
    several = []
    for folder in folders:
        tokens = token_probabilities(folder, lines, capture, ignore_settings=ignore_settings)
        name = printable(folder.resolve().name)
        numbers = (tokens.probabilities, tokens.vocabulary, tokens.bytes)
        several.append(stream_guarantee(name, *numbers, share, at_most=at_most))
    return tuple(several)


def _folders(losses: ArrayInput | Files) -> list[Path]:
    """Folders of models; a refusal of anything else."""
    several = [losses] if isinstance(losses, str | os.PathLike) else losses
    if not isinstance(several, Sequence) or not several:
        raise UserError("text and images are for folders of models: give the path of one")
    for folder in several:
        if not isinstance(folder, str | os.PathLike) or not Path(folder).is_dir():
            raise UserError(
                f"{printable(str(folder))[:80]} is no folder of a model, which text and images are "
                "for: name one, or leave these out"
            )
    return [Path(folder) for folder in several]


def _lines(value: Lines) -> list[str]:
    from attlas.audit.read_batch import lines_of_text

    if isinstance(value, str | os.PathLike):
        return list(lines_of_text(Path(value)))
    return [str(line) for line in value]
