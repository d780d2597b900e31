"""The words of a corpus, the most frequent one first."""

from collections import Counter
from collections.abc import Iterable


def words_by_frequency(words: Iterable[str]) -> tuple[str, ...]:
    """The distinct words by falling frequency, ties in the order of the alphabet.

    Examples:
        >>> words_by_frequency(["b", "a", "a", "c", "b"])
        ('a', 'b', 'c')
    """
    counts = Counter(words)
    return tuple(sorted(counts, key=lambda word: (-counts[word], word)))
