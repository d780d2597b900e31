r"""The user's batch: sequences of tokens from a text, from a file of tokens, or our own text."""

from importlib import resources
from pathlib import Path

import numpy as np

from attlas.core.errors import UserError
from attlas.interop.words import Words

_LARGEST = 2**28
_UNKNOWN = 0.2


def text_batch(words: Words, text: str, *, length: int, most: int) -> list[np.ndarray]:
    """Sequences of at most `length` tokens, one after the other from each line of a text.

    Args:
        words: of the model, with a tokenizer.
        text: one document per line.
        length: largest number of tokens of a sequence.
        most: number of sequences that are kept.

    Returns:
        Vectors of at least two tokens.

    Raises:
        UserError: if the model has no tokenizer, the text is empty, or the tokenizer does not
            know it.
    """
    if words.encode is None:
        raise UserError("the model's folder holds no tokenizer: give --tokens FILE")
    found: list[np.ndarray] = []
    for line in text.splitlines():
        tokens = np.array(words.encode(line.strip()) if line.strip() else [], np.int32)
        found.extend(tokens[k : k + length] for k in range(0, tokens.size - 1, length))
    found = [each for each in found[:most] if each.size > 1]
    if not found:
        raise UserError("the text holds no sequence of two tokens: give a longer one")
    if words.unknown is not None:
        share = float(np.mean(np.concatenate(found) == words.unknown))
        if share > _UNKNOWN:
            raise UserError(
                f"the tokenizer does not know {100 * share:.0f} % of the text's words: give a text "
                "of the model's language, or --tokens FILE"
            )
    return found


def read_text(file: Path) -> str:
    """A text file.

    Args:
        file: in UTF-8.

    Returns:
        Its text.

    Raises:
        UserError: if it is no text.
    """
    try:
        if file.stat().st_size > _LARGEST:
            raise UserError(f"{file} has {file.stat().st_size} bytes: give at most {_LARGEST}")
        text = file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        said = "is no text in UTF-8" if isinstance(error, ValueError) else f"({error.strerror})"
        raise UserError(f"{file} {said}: give a readable text file") from None
    if "\0" in text:
        raise UserError(f"{file} is no text: it holds zero bytes")
    return text


def default_text() -> str:
    """A dozen short stories of our own, one per line.

    Returns:
        The text.

    Examples:
        >>> default_text().startswith("Once upon a time")
        True
    """
    return resources.files("attlas.audit").joinpath("default_text.txt").read_text("utf-8")


def token_batch(file: Path, *, length: int, most: int) -> list[np.ndarray]:
    """Sequences from a file of tokens.

    Args:
        file: .npz with `ids`, all tokens one after the other, and `lengths`; .npy of shape
            (n, T); or a text with the numbers of one sequence per line.
        length: largest number of tokens that are kept of each.
        most: number of sequences that are kept.

    Returns:
        Vectors of whole numbers.

    Raises:
        UserError: if the file is none of these.
    """
    try:
        if file.suffix == ".npz":
            with np.load(file, allow_pickle=False) as stored:
                ids, lengths = np.asarray(stored["ids"]), np.asarray(stored["lengths"])
            if ids.ndim != 1 or lengths.ndim != 1 or int(lengths.sum()) != ids.size:
                raise UserError(f"{file}: lengths sum to {lengths.sum()}, there are {ids.size} ids")
            rows = np.split(ids, np.cumsum(lengths)[:-1])
        elif file.suffix == ".npy":
            rows = list(np.atleast_2d(np.load(file, allow_pickle=False)))
        else:
            rows = [np.array(line.split(), int) for line in read_text(file).splitlines()]
    except (OSError, KeyError, ValueError) as error:
        raise UserError(
            f"{file} holds no tokens ({error}): give .npz with ids and lengths, .npy, or lines of "
            "numbers"
        ) from None
    kept = [row[:length] for row in rows if row.size > 1][:most]
    if not kept or any(row.dtype.kind not in "iu" for row in kept):
        raise UserError(f"{file} holds no sequence of two whole numbers: give token numbers")
    return kept
