r"""The user's batch: sequences of tokens from a text, from a file of tokens, or our own text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from attlas._files.budget import TEXT, TOKENS, archived_array, first_rows, text_lines
from attlas._files.plain_file import Damaged, printable, read_plain_file
from attlas.core.errors import UserError
from attlas.transformers.tokenizer import Tokenizer

_LONGEST_LINE = 2**20
_UNKNOWN = 0.2


class TokenBatch(NamedTuple):
    """Sequences of tokens, and what became of the texts that were longer than a sequence.

    Attributes:
        sequences: vectors of at least two tokens.
        longer: a clause that counts those texts; empty where there was none.
    """

    sequences: list[np.ndarray]
    longer: str


def text_batch(
    tokenizer: Tokenizer,
    lines: Iterable[str],
    *,
    length: int,
    most: int,
    source: str = "the text",
) -> TokenBatch:
    """Sequences of at most `length` tokens, one after the other from each line of a text.

    Args:
        lines: one document each; no more are asked for than `most` sequences need.
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
            "the model's folder holds no tokenizer that is read: put its tokenizer.json there, "
            "give --tokens FILE, or choose --level weights"
        )
    sequences: list[np.ndarray] = []
    longer = 0
    for line in lines:
        tokens = np.array(tokenizer.encode(line.strip()) if line.strip() else [], np.int32)
        sequences.extend(tokens[k : k + length] for k in range(0, tokens.size - 1, length))
        longer += tokens.size > length
        if len(sequences) >= most:
            break
    sequences = [sequence for sequence in sequences[:most] if sequence.size > 1]
    if not sequences:
        raise UserError("the text holds no sequence of two tokens: give a longer one")
    require_known(
        tokenizer,
        sequences,
        source,
        "give --text FILE of the kind the model was trained on, or --tokens FILE, or choose "
        "--level weights",
    )
    clause = f"lines longer than {length} tokens, which continue in the next sequence: {longer}"
    return TokenBatch(sequences, clause if longer else "")


def require_known(
    tokenizer: Tokenizer, sequences: Sequence[np.ndarray], source: str, remedy: str
) -> None:
    """Refuse a text of which the tokenizer does not know much.

    Args:
        sequences: vectors of token numbers that it made of the text.
        source: name of the text, for the message.
        remedy: the advice at the end of the message.

    Raises:
        UserError: if more than a fifth of the tokens are unknown.

    Examples:
        >>> require_known(Tokenizer((), (), None, None, 3), [np.array([3, 5])], "a", "give b")
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: the tokenizer does not know 50 % of the tokens of a: give b
    """
    if tokenizer.unknown is None or not sequences:
        return
    share = float(np.mean(np.concatenate(sequences) == tokenizer.unknown))
    if share > _UNKNOWN:
        raise UserError(
            f"the tokenizer does not know {100 * share:.0f} % of the tokens of {source}: {remedy}"
        )


def line_sequences(
    tokenizer: Tokenizer, lines: Sequence[str], *, length: int, places: Sequence[int] | None = None
) -> TokenBatch:
    """One sequence for each line, which is one example.

    Of a line that is longer, the first tokens are read, and the special token at its end, as
    tokenizers of the transformers library truncate.

    Args:
        length: largest number of tokens of a sequence.
        places: numbers of the lines in their file, from 0, for a message; those of `lines` if None.

    Raises:
        UserError: if the model has no tokenizer, it does not know the lines, or a line has no
            tokens.
    """
    if tokenizer.encode is None:
        raise UserError("the model's folder holds no tokenizer that is read, which lines need")
    sequences, longer = [], 0
    for place, line in zip(places or range(len(lines)), lines, strict=True):
        tokens = tokenizer.encode(line.strip()) if line.strip() else []
        if not tokens:
            raise UserError(
                f"line {place + 1} of the text has no tokens: take it and its label out"
            )
        if len(tokens) > length:
            longer += 1
            end = tokens[-1:] if tokens[-1] in tokenizer.special else []
            tokens = [*tokens[: length - len(end)], *end]
        sequences.append(np.array(tokens, np.int32))
    require_known(
        tokenizer,
        sequences,
        "the lines",
        "give lines of the kind the model was trained on, or its own tokenizer",
    )
    clause = f"lines longer than {length} tokens, which end there: {longer}"
    return TokenBatch(sequences, clause if longer else "")


def lines_of_text(file: Path) -> Iterator[str]:
    """The lines of a text file in UTF-8, read as they are asked for; long ones come in parts.

    Raises:
        UserError: if the file is not UTF-8 text.
    """
    try:
        yield from text_lines(file, TEXT)
    except Damaged as damage:
        raise UserError(f"{printable(str(damage))}: give a readable text file") from None


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
            f"config.json holds no sequences of tokens ({printable(str(error))[:200]}): give a text"
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
        rows = list(islice((row for row in _rows(file, length, most) if row.size > 1), most))
    except (Damaged, OverflowError, ValueError) as error:
        raise UserError(
            f"{file} holds no tokens ({printable(str(error))[:400]}): give .npz with ids and "
            "lengths, .npy, or lines of numbers"
        ) from None
    if not rows or any(row.ndim != 1 or row.dtype.kind not in "iu" for row in rows):
        raise UserError(f"{file} holds no sequence of two whole numbers: give token numbers")
    longer = sum(row.size > length for row in rows)
    clause = f"sequences longer than {length} tokens, which end there: {longer}"
    return TokenBatch([row[:length] for row in rows], clause if longer else "")


def _rows(file: Path, length: int, most: int) -> Iterator[np.ndarray]:
    """The sequences of a file, of longer ones at least `length` + 1 tokens."""
    if file.suffix == ".npz":
        content = read_plain_file(file, TOKENS.bytes)
        if content is None:
            raise Damaged("No such file or directory")
        ids, lengths = archived_array(content, "ids"), archived_array(content, "lengths")
        if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or np.any(lengths < 0):
            raise Damaged("lengths are not a vector of whole numbers, none negative")
        if lengths.max(initial=0) > ids.size:
            raise Damaged(f"a length is {lengths.max()}, there are {ids.size} ids")
        if ids.ndim != 1 or int(lengths.sum()) != ids.size:
            raise Damaged(f"lengths sum to {lengths.sum()}, there are {ids.size} ids")
        ends = np.cumsum(lengths)
        for k in np.flatnonzero(lengths > 1)[:most]:
            yield ids[ends[k] - lengths[k] : ends[k]]
    elif file.suffix == ".npy":
        yield from np.atleast_2d(first_rows(file, most))
    else:
        for line in text_lines(file, TOKENS, _LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise Damaged(f"a line has {_LONGEST_LINE} characters or more")
            yield np.array(line.split(None, length + 1)[: length + 1], int)
