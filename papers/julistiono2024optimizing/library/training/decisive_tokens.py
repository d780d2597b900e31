"""Classification with known decisive tokens: the informative row of a digit, a marked word.

Section 1.6 of julistiono2024optimizing asks whether the attention of a trained classifier goes to
the tokens that decide its class.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.data.digit_tokens import digit_sequences, row_information
from attlas.data.digits import load_digits
from attlas.data.imdb import load_imdb
from attlas.data.splits import Split
from attlas.data.token_sequences import TokenSequences
from attlas.data.word_pieces import encode_words, train_word_pieces
from attlas.training.sequence_classifiers import Sets

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


class DecisiveTokens(NamedTuple):
    """Sets to train on, and sequences whose decisive tokens are known.

    Attributes:
        sets: training, validation and test sequences.
        probe: the sequences at which attention is measured.
        decisive: 1 at their decisive tokens, else 0.
    """

    sets: Sets
    probe: TokenSequences
    decisive: Float[np.ndarray, "n T"]


def digit_tokens(tokens: str = "rows", dtype: Any = np.float32) -> DecisiveTokens:
    """Is the digit odd? The token of most class information is decisive.

    Args:
        tokens: rows (T = 8, d = 8) or patches (T = 16, d = 4).

    Returns:
        Digits; attention is measured at the test images.

    Examples:
        >>> result = digit_tokens()
        >>> result.probe.tokens.shape, np.flatnonzero(result.decisive[0]).tolist()
        ((359, 8, 8), [5])
    """
    sets = Sets(*(_in_precision(digit_sequences(split, tokens), dtype) for split in load_digits()))
    decisive = np.zeros(sets.test.mask.shape)
    decisive[:, np.argmax(row_information(sets.train))] = 1
    return DecisiveTokens(sets, sets.test, decisive)


def review_pieces(
    vocabulary: int, length: int, counts: Sequence[int] = (0, 0, 0), dtype: Any = np.float32
) -> DecisiveTokens:
    """IMDB reviews as word pieces; attention is measured at the marked words of own sentences.

    Args:
        vocabulary: pieces, trained on the training reviews.
        length: number of pieces per review.
        counts: numbers of training, validation and test reviews; 0 for all.
        dtype: floating type of the labels.
    """
    splits = [
        random_part(split, count, seed)
        for seed, (split, count) in enumerate(zip(load_imdb(), counts, strict=True))
    ]
    pieces = train_word_pieces(list(splits[0].inputs), vocabulary)
    sets = Sets(*(_in_precision(encode_words(pieces, split, length), dtype) for split in splits))
    probe, decisive = decisive_pieces(pieces, length)
    return DecisiveTokens(sets, _in_precision(probe, dtype), decisive)


def decisive_pieces(pieces: Any, length: int) -> tuple[TokenSequences, Float[np.ndarray, "n T"]]:
    """The sentences of `decisive_sentences`, and which pieces belong to the marked words.

    Args:
        pieces: vocabulary from `train_word_pieces`.
        length: pieces of each sentence, padding included; enough for the longest.

    Returns:
        The sentences, and 1 at the pieces of the marked words.

    Examples:
        >>> pieces = train_word_pieces([each.text for each in decisive_sentences()], 200)
        >>> probe, decisive = decisive_pieces(pieces, 40)
        >>> [pieces.id_to_token(k) for k in probe.tokens[2][decisive[2] == 1].tolist()]
        ['great']
    """
    sentences = decisive_sentences()
    texts = np.array([sentence.text for sentence in sentences], dtype=object)
    labels = np.array([sentence.label for sentence in sentences])
    probe = encode_words(pieces, Split(texts, labels), length)
    decisive = np.zeros(probe.mask.shape)
    for row, sentence in enumerate(sentences):
        for place, (first, last) in enumerate(pieces.encode(sentence.text).offsets):
            decisive[row, place] = first < sentence.end and last > sentence.start
    return probe, decisive


def random_part(split: Split, count: int, seed: int) -> Split:
    """Some examples, in a random order.

    Args:
        count: number of sequences; 0 keeps all in their order.

    Examples:
        >>> random_part(Split(np.arange(5), np.arange(5)), 2, seed=0).labels.tolist()
        [2, 4]
    """
    if count == 0:
        return split
    rows = np.random.default_rng(seed).permutation(split.labels.size)[:count]
    return Split(split.inputs[rows], split.labels[rows])


def _in_precision(data: TokenSequences, dtype: Any) -> TokenSequences:
    """Labels and continuous tokens in one floating type; token numbers stay integers."""
    continuous = np.issubdtype(data.tokens.dtype, np.floating)
    tokens = np.asarray(data.tokens, dtype if continuous else None)
    return TokenSequences(tokens, data.mask, np.asarray(data.labels, dtype))
