"""Texts as one stream of letters and spaces, and other texts as a held-out stream."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int8

from attlas.core.errors import UserError
from attlas.data.generated_sentences import generated_sentences
from attlas.data.imdb import load_imdb

ALPHABET = " abcdefghijklmnopqrstuvwxyz"
"""Alphabet, fixed before any text is read. A run of other characters is one space."""
_NUMBER = np.zeros(256, np.int8)
_NUMBER[[ord(letter) for letter in ALPHABET]] = np.arange(len(ALPHABET))
_SENTENCE = 130
"""Characters per generated sentence, which has 146 in the mean."""


class CharacterStream(NamedTuple):
    """Numbers of the characters in `ALPHABET`.

    Attributes:
        train: one stream.
        held_out: a stream of other texts.
        source: one line that says what was read.
    """

    train: Int8[np.ndarray, " n"]
    held_out: Int8[np.ndarray, " m"]
    source: str


def to_letters(texts: Iterable[str], count: int) -> Int8[np.ndarray, " n"]:
    """The first characters of texts in a row, in lower case, one space after each text.

    No space stands at the beginning, nor two together.

    Args:
        texts: texts, in the order of the stream.

    Returns:
        Numbers in `ALPHABET`; fewer where the texts end.

    Examples:
        >>> "".join(ALPHABET[k] for k in to_letters(["It's 5 o'clock", "OK"], 99))
        'it s o clock ok '
    """
    blocks, length = [], 0
    for text in texts:
        plain = text.lower().encode("ascii", "replace") + b" "
        letters = _NUMBER[np.frombuffer(plain, np.uint8)]
        single = letters[np.append(letters[:1] != 0, (letters[1:] != 0) | (letters[:-1] != 0))]
        blocks.append(single)
        length += len(single)
        if length >= count:
            break
    return np.concatenate(blocks)[:count] if blocks else np.zeros(0, np.int8)


def load_character_stream(
    text: str, train: int, held_out: int, seed: int, folder: Path | None = None
) -> CharacterStream:
    """Characters of film reviews, or of sentences from a small grammar as a stand-in.

    Args:
        text: "imdb" or "generated".
        train: characters of the stream.
        held_out: characters of the other texts.
        folder: data folder; `ATTLAS_DATA` or the cache when None.

    Raises:
        UserError: if a stream is to be empty, the text is unknown, or it is too short.

    Examples:
        >>> found = load_character_stream("generated", 40, 20, 0)
        >>> len(found.train), len(found.held_out), found.source
        (40, 20, 'generated sentences, a stand-in for film reviews')
    """
    if min(train, held_out) < 1:
        raise UserError(f"{train} and {held_out} characters: give at least 1 of each")
    if text == "generated":
        texts = [
            generated_sentences(count // _SENTENCE + 2, letters)
            for count, letters in ((train, 2 * seed), (held_out, 2 * seed + 1))
        ]
        source = "generated sentences, a stand-in for film reviews"
    elif text == "imdb":
        reviews = load_imdb(folder, seed)
        texts, source = [reviews.train.inputs, reviews.validation.inputs], "IMDB reviews"
    else:
        raise UserError(f"text = {text!r} is unknown: choose 'imdb' or 'generated'")
    streams = [
        to_letters(letters, count) for letters, count in zip(texts, (train, held_out), strict=True)
    ]
    for letters, count in zip(streams, (train, held_out), strict=True):
        if len(letters) < count:
            raise UserError(
                f"the text has {len(letters)} characters, {count} were requested: request fewer"
            )
    return CharacterStream(streams[0], streams[1], source)
