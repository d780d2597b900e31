r"""The user's batch: sequences of tokens from a text, from a file of tokens, or our own text."""

import zlib
from collections.abc import Mapping
from importlib import resources
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile

import numpy as np

from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas.core.errors import UserError
from attlas.transformers.tokenizer import Tokenizer

_LARGEST = 2**28
_UNKNOWN = 0.2
_DAMAGED = (OSError, EOFError, BadZipFile, zlib.error)


class TokenBatch(NamedTuple):
    """Sequences of tokens, and what became of the texts that were longer than a sequence.

    Attributes:
        sequences: vectors of at least two tokens.
        longer: a clause that counts those texts; empty where there was none.
    """

    sequences: list[np.ndarray]
    longer: str


def text_batch(
    tokenizer: Tokenizer, text: str, *, length: int, most: int, source: str = "the text"
) -> TokenBatch:
    """Sequences of at most `length` tokens, one after the other from each line of a text.

    Args:
        text: one document per line.
        length: largest number of tokens of a sequence.
        source: name of the text in an error message.

    Returns:
        The sequences; a line that is longer continues in the next one.

    Raises:
        UserError: if the model has no tokenizer, the text is empty, or the tokenizer does not
            know it.
    """
    if tokenizer.encode is None:
        raise UserError(
            "the model's folder holds no tokenizer that is read: give --tokens FILE, or choose "
            "--level weights"
        )
    sequences: list[np.ndarray] = []
    longer = 0
    for line in text.splitlines():
        if len(sequences) >= most:
            break
        tokens = np.array(tokenizer.encode(line.strip()) if line.strip() else [], np.int32)
        sequences.extend(tokens[k : k + length] for k in range(0, tokens.size - 1, length))
        longer += tokens.size > length
    sequences = [sequence for sequence in sequences[:most] if sequence.size > 1]
    if not sequences:
        raise UserError("the text holds no sequence of two tokens: give a longer one")
    if tokenizer.unknown is not None:
        share = float(np.mean(np.concatenate(sequences) == tokenizer.unknown))
        if share > _UNKNOWN:
            raise UserError(
                f"the tokenizer does not know {100 * share:.0f} % of the tokens of {source}: give "
                "--text FILE of the kind the model was trained on, or --tokens FILE, or choose "
                "--level weights"
            )
    clause = f"lines longer than {length} tokens, which continue in the next sequence: {longer}"
    return TokenBatch(sequences, clause if longer else "")


def read_text(file: Path) -> str:
    """A text file in UTF-8.

    Raises:
        UserError: if the file is not UTF-8 text.
    """
    try:
        text = _content(file).decode("utf-8")
    except UnicodeDecodeError:
        raise UserError(f"{file} is not a text in UTF-8: give a readable text file") from None
    if "\0" in text:
        raise UserError(f"{file} is not a text: it holds zero bytes")
    return text


def _content(file: Path) -> bytes:
    """The bytes of a regular file; a pipe is refused, without waiting for it."""
    try:
        content = read_plain_file(file, _LARGEST)
    except Damaged as error:
        raise UserError(f"{printable(str(error))}: give a readable file") from None
    if content is None:
        raise UserError(f"{file} (No such file or directory): give a readable file")
    return content


def default_text() -> str:
    """A dozen short stories of our own, one per line.

    Examples:
        >>> default_text().startswith("Once upon a time")
        True
    """
    return resources.files("attlas.audit").joinpath("default_text.txt").read_text("utf-8")


def stored_batch(config: Mapping[str, Any], *, length: int, most: int) -> list[np.ndarray]:
    """Sequences that a run of attlas stored in its model's configuration; none of other models.

    Raises:
        UserError: if the stored sequences are not numbers.

    Examples:
        >>> config = {"model_type": "attlas_encoder", "sequences": [[1, 2, 3]]}
        >>> [row.tolist() for row in stored_batch(config, length=2, most=8)]
        [[1, 2]]
    """
    rows = config.get("sequences", [])
    if config.get("model_type") not in ("attlas_encoder", "attlas_translator") or not rows:
        return []
    try:
        return [np.array(row[:length], np.int32) for row in rows[:most]]
    except (TypeError, ValueError, OverflowError) as error:
        raise UserError(
            f"config.json holds no sequences of tokens ({error}): give a text"
        ) from None


def token_batch(file: Path, *, length: int, most: int) -> TokenBatch:
    """Sequences from a file of tokens.

    Args:
        file: .npz with `ids`, all tokens one after the other, and `lengths`; .npy of shape
            (n, T); or a text with the numbers of one sequence per line.
        length: largest number of tokens of a sequence.

    Returns:
        The sequences; of a longer one the first `length` tokens.

    Raises:
        UserError: if the file is none of these.
    """
    try:
        if file.suffix == ".npz":
            with np.load(BytesIO(_content(file)), allow_pickle=False) as stored:
                ids, lengths = np.asarray(stored["ids"]), np.asarray(stored["lengths"])
            if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or np.any(lengths < 0):
                raise UserError(f"{file}: lengths are not a vector of whole numbers, none negative")
            if ids.ndim != 1 or int(lengths.sum()) != ids.size:
                raise UserError(f"{file}: lengths sum to {lengths.sum()}, there are {ids.size} ids")
            rows = np.split(ids, np.cumsum(lengths)[:-1])
        elif file.suffix == ".npy":
            rows = list(np.atleast_2d(np.load(BytesIO(_content(file)), allow_pickle=False)))
        else:
            rows = [np.array(line.split(), int) for line in read_text(file).splitlines()]
    except (*_DAMAGED, KeyError, OverflowError, ValueError) as error:
        raise UserError(
            f"{file} holds no tokens ({error}): give .npz with ids and lengths, .npy, or lines of "
            "numbers"
        ) from None
    read = [row for row in rows if row.size > 1][:most]
    if not read or any(row.dtype.kind not in "iu" for row in read):
        raise UserError(f"{file} holds no sequence of two whole numbers: give token numbers")
    longer = sum(row.size > length for row in read)
    clause = f"sequences longer than {length} tokens, which end there: {longer}"
    return TokenBatch([row[:length] for row in read], clause if longer else "")
