r"""Reviews as sequences of whole words, zero-padded to one length, as liu2021analyzing reads IMDB.

Reviews generated from a small grammar are a stand-in for IMDB; `ReviewWords.source` names which of
the two was read.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attlas.core.errors import UserError
from attlas.data.imdb import load_imdb
from attlas.data.splits import Split, Splits
from attlas.data.token_sequences import TokenSequences
from attlas.data.word_pieces import PADDING, UNKNOWN
from attlas.data.word_ranking import words_by_frequency

LENGTH = 130
"""Words of a review in section 6 of liu2021analyzing."""

_WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)?")

_SUBJECTS = [
    "film",
    "movie",
    "story",
    "plot",
    "cast",
    "ending",
    "script",
    "music",
    "photography",
    "dialogue",
    "actor",
]
_GOOD = [
    "wonderful",
    "great",
    "excellent",
    "moving",
    "clever",
    "charming",
    "funny",
    "superb",
    "honest",
    "gripping",
]
_BAD = [
    "terrible",
    "dull",
    "awful",
    "clumsy",
    "boring",
    "weak",
    "silly",
    "tedious",
    "shallow",
    "annoying",
]
_NEUTRAL = (
    "the {} was shot in the summer of that year",
    "my brother and i saw it on a rainy evening",
    "it runs for about two hours and the {} takes up most of them",
    "the {} was made by the people who did the earlier one",
    "a man comes back to the town where he was born and meets his old friends",
    "there is a long scene on a train and another one in a hospital",
)
_OPINIONS = (
    "the {} is {}",
    "i thought that the {} was {}",
    "for me this was a {1} {0}",
    "everyone in the room found the {} really {}",
)


class ReviewWords(NamedTuple):
    """Reviews as word numbers.

    Attributes:
        words: the vocabulary; number 0 is padding, number 1 stands for every other word.
        source: one line that says what was read, and that it is a stand-in where it is.
    """

    train: TokenSequences
    validation: TokenSequences
    test: TokenSequences
    words: tuple[str, ...]
    source: str


def load_review_words(
    folder: Path | None = None,
    sizes: tuple[int, int, int] = (10_000, 2_500, 25_000),
    vocabulary: int = 10_000,
    length: int = LENGTH,
    seed: int = 0,
    stand_in: bool = False,
) -> ReviewWords:
    """IMDB, or its generated stand-in, as word numbers.

    Args:
        folder: data folder; `ATTLAS_DATA` or the cache when None.
        sizes: training, validation and test reviews; the vocabulary comes from the first alone.
        vocabulary: most words, padding and unknown included.
        length: words p kept of each review.
        stand_in: read generated reviews in place of IMDB.

    Raises:
        UserError: if a set is to be empty or larger than what there is.

    Examples:
        >>> found = load_review_words(sizes=(20, 5, 5), stand_in=True)
        >>> found.train.tokens.shape, found.source
        ((20, 130), 'generated reviews, a stand-in for IMDB')
    """
    if min(sizes) < 1:
        raise UserError(f"sizes {sizes}: each of the three sets needs at least one review")
    splits = generated_reviews(sizes, seed) if stand_in else load_imdb(folder, seed, sizes[1])
    cut = []
    for name, size, split in zip(Splits._fields, sizes, splits, strict=True):
        if size > split.labels.size:
            raise UserError(
                f"{size} {name} reviews requested, {split.labels.size} available: request fewer"
            )
        # The official test reviews come sorted by label.
        order = np.random.default_rng([seed, size]).permutation(split.labels.size)[:size]
        cut.append(Split(split.inputs[order], split.labels[order]))
    words = frequent_words(cut[0].inputs.tolist(), vocabulary)
    source = "generated reviews, a stand-in for IMDB" if stand_in else "IMDB"
    train, validation, test = (number_words(words, part, length) for part in cut)
    return ReviewWords(train, validation, test, words, source)


def frequent_words(texts: Sequence[str], vocabulary: int) -> tuple[str, ...]:
    """The most frequent words, ties in the order of the alphabet.

    Args:
        vocabulary: most words, padding and unknown included; at least 3.

    Returns:
        The words; padding and unknown stand first, under names that are not words.

    Raises:
        UserError: if there is no text, or no room for a word.

    Examples:
        >>> frequent_words(["A film", "a bad film!"], 4)
        ('[PAD]', '[UNK]', 'a', 'film')
    """
    if not len(texts):
        raise UserError("no text to take a vocabulary from: give at least one")
    if vocabulary < 3:
        raise UserError(f"a vocabulary of {vocabulary} has no room for words: choose at least 3")
    ordered = words_by_frequency(word for text in texts for word in split_words(text))
    return ("[PAD]", "[UNK]", *ordered[: vocabulary - 2])


def number_words(words: Sequence[str], split: Split, length: int = LENGTH) -> TokenSequences:
    """Texts cut to their first words, as numbers, padded with zeros.

    Args:
        words: the vocabulary, see `frequent_words`.
        split: texts and labels 0 or 1.
        length: number of words p kept of each text.

    Returns:
        Integer tokens [n, p].

    Raises:
        UserError: if a text has no word, a label is neither 0 nor 1 or missing, or length < 1.

    Examples:
        >>> split = Split(np.array(["A new film."], dtype=object), np.array([1]))
        >>> number_words(("[PAD]", "[UNK]", "a", "film"), split, 5).tokens.tolist()
        [[2, 1, 3, 0, 0]]
    """
    unknown = [label for label in np.unique(split.labels).tolist() if label not in (0, 1)]
    if unknown:
        raise UserError(
            f"label {unknown[0]} is unknown: label reviews 0 (negative) or 1 (positive)"
        )
    if length < 1 or len(split.inputs) != len(split.labels):
        raise UserError(
            f"length = {length}, {len(split.inputs)} texts, {len(split.labels)} labels: choose a "
            "length of at least 1 and give one label per text"
        )
    numbers = {word: number for number, word in enumerate(words)}
    tokens = np.full((len(split.inputs), length), PADDING, np.int32)
    for row, text in enumerate(split.inputs):
        if not isinstance(text, str):
            raise UserError(f"text {row} is {text!r}: give a string")
        ids = [numbers.get(word, UNKNOWN) for word in split_words(text)[:length]]
        if not ids:
            raise UserError(f"text {row} has no word: leave it out")
        tokens[row, : len(ids)] = ids
    return TokenSequences(tokens, tokens != PADDING, np.asarray(split.labels, float))


def split_words(text: str) -> list[str]:
    """Lower-case words of a text; line breaks written as HTML marks are none.

    Examples:
        >>> split_words("It's GOOD,<br />isn't it?")
        ["it's", 'good', "isn't", 'it']
    """
    return _WORD.findall(text.replace("<br />", " ").lower())


def generated_reviews(sizes: tuple[int, int, int], seed: int = 0) -> Splits:
    r"""Reviews from a small grammar: a stand-in for IMDB, not human text.

    A review has 4 to 14 sentences. Two of five state an opinion; four of five opinions agree
    with the label, and one of six is negated, with the opposite word.

    Args:
        sizes: training, validation and test reviews.

    Returns:
        Splits with texts in object arrays and labels int8, 1 is positive.

    Examples:
        >>> generated_reviews((3, 1, 1)).train.inputs.shape
        (3,)
    """
    if min(sizes) < 0:
        raise UserError(f"sizes {sizes}: a set cannot have a negative number of reviews")
    draw = np.random.default_rng(seed)
    splits = []
    for size in sizes:
        labels = draw.integers(0, 2, size).astype(np.int8)
        texts = [_generated_review(draw, int(label)) for label in labels]
        splits.append(Split(np.array(texts, dtype=object), labels))
    return Splits(*splits)


def _generated_review(draw: np.random.Generator, label: int) -> str:
    def choose(of: Sequence[str]) -> str:
        return of[int(draw.integers(len(of)))]

    sentences = []
    for number in range(int(draw.integers(4, 15))):
        subject = choose(_SUBJECTS)
        # The first sentence always judges, so that no review is without an opinion.
        if number and draw.random() > 0.4:
            sentences.append(choose(_NEUTRAL).format(subject))
            continue
        positive = (label == 1) == (number == 0 or draw.random() < 0.8)
        negated = draw.random() < 1 / 6
        word = choose(_GOOD if positive != negated else _BAD)
        sentences.append(choose(_OPINIONS).format(subject, f"not {word}" if negated else word))
    return ". ".join(sentences) + "."
