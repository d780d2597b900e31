"""Samples of masked words from English sentences or generated ones, and what frequency tells."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from attlas.data.generated_sentences import generated_sentences
from attlas.data.portuguese_english import load_portuguese_english
from trauger2023sequence.library.data.masked_words import MaskedSplit, make_masked_words


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
