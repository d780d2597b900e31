r"""Samples of masked-word prediction: a window of words, a position in it, and the word there.

Section 5 of trauger2023sequence predicts one of K words. Words outside the vocabulary stand in the
windows as one further symbol, which is never the one to predict.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from attlas.core.errors import UserError
from attlas.data.generated_sentences import generated_sentences
from attlas.data.portuguese_english import load_portuguese_english
from attlas.data.splits import split_groups
from attlas.data.word_ranking import words_by_frequency

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


class MaskedWords(NamedTuple):
    """Windows of T words, each with one word to predict.

    Attributes:
        words: numbers 0..K-1 of words of the vocabulary, K for any other; the word to predict
            still stands in its place.
        positions: place of the word to predict.
        targets: number of the word to predict.
    """

    words: Int[np.ndarray, "n T"]
    positions: Int[np.ndarray, " n"]
    targets: Int[np.ndarray, " n"]


class MaskedSplit(NamedTuple):
    """Samples for training and for testing, no text in both.

    Attributes:
        train: samples of the training texts.
        test: samples of the others.
        vocabulary: the K words, the most frequent one of the training texts first.
    """

    train: MaskedWords
    test: MaskedWords
    vocabulary: tuple[str, ...]


def split_words(text: str) -> list[str]:
    """The words of a text in lower case: letters, with apostrophes inside.

    Examples:
        >>> split_words("It's 5 o'clock: go!")
        ["it's", "o'clock", 'go']
    """
    return _WORD.findall(text.lower())


def frequent_words(texts: Sequence[str], K: int) -> tuple[str, ...]:
    """The K most frequent words, equally frequent ones in the order of the alphabet.

    Raises:
        UserError: if the texts have fewer words.

    Examples:
        >>> frequent_words(["b a a", "c b"], 2)
        ('a', 'b')
    """
    ordered = words_by_frequency(word for text in texts for word in split_words(text))
    if len(ordered) < K or K < 2:
        raise UserError(f"K = {K} words of {len(ordered)} in the texts: choose 2 up to that number")
    return ordered[:K]


def mask_words(texts: Sequence[str], vocabulary: Sequence[str], T: int, seed: int) -> MaskedWords:
    """One sample from each run of T words; no window twice, runs without a known word left out.

    Args:
        texts: texts; those of fewer than T words give nothing.
        T: words in a window.
        seed: seed of the positions, uniform over the known words of a window.

    Returns:
        The samples, in the order of the texts.

    Examples:
        >>> result = mask_words(["a b c d e"], ("a", "d"), 2, seed=0)
        >>> result.words.tolist(), result.positions.tolist(), result.targets.tolist()
        ([[0, 2], [2, 1]], [0, 1], [0, 1])
    """
    number = {word: k for k, word in enumerate(vocabulary)}
    unknown = len(number)
    rows: dict[tuple[int, ...], None] = {}
    for text in texts:
        ids = [number.get(word, unknown) for word in split_words(text)]
        windows = (tuple(ids[k : k + T]) for k in range(0, len(ids) - T + 1, T))
        rows |= dict.fromkeys(window for window in windows if min(window) < unknown)
    if not rows:
        raise UserError(f"no text has {T} words with a known one among them: lower T")
    words = np.array(list(rows), np.int32)
    # the largest of random numbers on known words is a uniform choice among them
    chance = np.random.default_rng(seed).random(words.shape)
    positions = np.argmax(np.where(words < unknown, chance, -1.0), axis=1).astype(np.int32)
    return MaskedWords(words, positions, words[np.arange(len(words)), positions])


def make_masked_words(
    texts: Sequence[str], K: int, T: int, train: int, test: int, seed: int = 0
) -> MaskedSplit:
    """Samples for training and testing from texts dealt out at random, equal ones together.

    Args:
        texts: texts, such as sentences.
        K: words to predict.
        T: words in a window.

    Returns:
        The samples. A window of a training sample is not a test sample.

    Raises:
        UserError: if the texts do not give as many samples.

    Examples:
        >>> texts = [f"a b {x} a b {y}" for x in "abcd" for y in "abcd"]
        >>> result = make_masked_words(texts, 3, 6, train=4, test=2)
        >>> result.train.words.shape, result.test.targets.shape, result.vocabulary
        ((4, 6), (2,), ('b', 'a', ...))
    """
    usable = [text for text in dict.fromkeys(texts) if len(split_words(text)) >= T]
    share = test / max(train + test, 1)
    sizes = (max(1, round(share * len(usable))),)
    held, remaining = split_groups(np.arange(len(usable)), sizes, seed)
    vocabulary = frequent_words([usable[k] for k in remaining], K)
    first = mask_words([usable[k] for k in remaining], vocabulary, T, seed)
    seen = set(map(tuple, first.words.tolist()))
    second = mask_words([usable[k] for k in held], vocabulary, T, seed + 1)
    fresh = [row for row, window in enumerate(second.words.tolist()) if tuple(window) not in seen]
    if len(first.targets) < train or len(fresh) < test:
        raise UserError(
            f"{len(first.targets)} training and {len(fresh)} test samples of {T} words: ask for "
            f"fewer than {train} and {test}, or give more texts"
        )
    return MaskedSplit(
        MaskedWords(*(part[:train] for part in first)),
        MaskedWords(*(part[fresh[:test]] for part in second)),
        vocabulary,
    )


def load_masked_words(
    text: str, K: int, T: int, train: int, test: int, seed: int = 0
) -> MaskedSplit:
    """Windows of the English half of the Portuguese-English data, or of generated sentences.

    Equal sentences stay together, in training or in test.

    Args:
        text: "pt_en" or "generated".
        T: words in a window.

    Examples:
        >>> result = load_masked_words("generated", 20, 8, train=30, test=10)
        >>> result.train.words.shape, result.test.words.shape
        ((30, 8), (10, 8))
    """
    if text == "pt_en":
        corpora = load_portuguese_english().values()
        texts = [english for pairs in corpora for _, english in pairs]
    else:
        texts = generated_sentences(2 * (train + test), seed, max(T, 16))
    return make_masked_words(texts, K, T, train, test, seed)


class FrequencyBaseline(NamedTuple):
    """A prediction that sees no other word.

    Attributes:
        loss: cross-entropy of the smoothed frequencies of the training targets.
        accuracy: accuracy of always predicting the most frequent word.
    """

    loss: float
    accuracy: float


def frequency_baseline(
    train: Int[np.ndarray, " n"], test: Int[np.ndarray, " m"], K: int
) -> FrequencyBaseline:
    r"""Test loss $-\frac1m\sum_i\ln\frac{n_{y_i}+1}{n+K}$ of the training frequencies.

    Args:
        train: targets, below K.

    Examples:
        >>> loss, accuracy = frequency_baseline(np.array([0, 0]), np.array([0, 1]), 2)
        >>> f"{loss:.4f}", accuracy  # (ln 4/3 + ln 4) / 2
        ('0.8370', 0.5)
    """
    share = np.bincount(train, minlength=K) + 1.0
    loss = -np.mean(np.log(share / share.sum())[test])
    return FrequencyBaseline(float(loss), float(np.mean(test == share.argmax())))
