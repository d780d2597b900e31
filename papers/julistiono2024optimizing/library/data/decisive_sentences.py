"""Twelve film sentences of our own, each with the one word that decides its sentiment.

julistiono2024optimizing measures attention on decisive tokens with forty generated sentences that
are not published; these were written for attlas in their place.
"""

from typing import NamedTuple

_MARKED = (
    (1, "The whole cast gave a *wonderful* performance."),
    (0, "The whole cast gave a *terrible* performance."),
    (1, "I thought this film was *great* from start to finish."),
    (0, "I thought this film was *awful* from start to finish."),
    (1, "My sister says the story is *excellent* and I agree."),
    (0, "My sister says the story is *boring* and I agree."),
    (1, "We all *loved* the ending of this movie."),
    (0, "We all *hated* the ending of this movie."),
    (1, "It is the *best* picture that was made that year."),
    (0, "It is the *worst* picture that was made that year."),
    (1, "The director has made a truly *beautiful* little film."),
    (0, "The director has made a truly *stupid* little film."),
)


class DecisiveSentence(NamedTuple):
    """A sentence with its decisive word.

    Attributes:
        label: 1 is positive.
        start: first character of the decisive word.
        end: one past its last character.
    """

    text: str
    label: int
    start: int
    end: int


def decisive_sentences() -> tuple[DecisiveSentence, ...]:
    """The sentences, in pairs that differ in the decisive word alone.

    Returns:
        Six positive and six negative sentences.

    Examples:
        >>> first = decisive_sentences()[0]
        >>> first.text[first.start : first.end]
        'wonderful'
    """
    sentences = []
    for label, marked in _MARKED:
        before, word, after = marked.split("*")
        end = len(before) + len(word)
        sentences.append(DecisiveSentence(before + word + after, label, len(before), end))
    return tuple(sentences)
