r"""Portuguese-English sentence pairs as numbers of word pieces, for a translator.

Pairs generated from a small grammar are a stand-in for the corpora; `TranslationPairs.source`
names which of the two was read.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from attlas.core.errors import UserError
from attlas.data.portuguese_english import load_portuguese_english
from attlas.data.splits import split_groups
from attlas.data.word_pieces import PADDING, train_word_pieces

Pairs = Sequence[tuple[str, str]]

_NOUNS = (
    ("o gato", "cat"),
    ("o menino", "boy"),
    ("o livro", "book"),
    ("o carro", "car"),
    ("o barco", "boat"),
    ("a casa", "house"),
    ("a mesa", "table"),
    ("a menina", "girl"),
    ("a cidade", "town"),
    ("a porta", "door"),
)
_ADJECTIVES = (
    ("preto", "preta", "black"),
    ("velho", "velha", "old"),
    ("novo", "nova", "new"),
    ("pequeno", "pequena", "small"),
    ("bonito", "bonita", "pretty"),
    ("vermelho", "vermelha", "red"),
)
_VERBS = (("compra", "buys"), ("procura", "looks for"), ("encontra", "finds"), ("pinta", "paints"))
_ENDINGS = (("", ""), (" hoje", " today"), (" de novo", " again"), (" na praia", " on the beach"))


class SentencePairs(NamedTuple):
    """Sentence pairs of fixed lengths, padded with zeros.

    Attributes:
        source: numbers of the source pieces.
        mask: True where a source piece is.
        target: numbers of the target pieces, between the marks of start and end.
        target_mask: True where a target piece or a mark is.
    """

    source: Int[np.ndarray, "n S"]
    mask: Bool[np.ndarray, "n S"]
    target: Int[np.ndarray, "n T"]
    target_mask: Bool[np.ndarray, "n T"]


class TranslationPairs(NamedTuple):
    """Training and validation pairs.

    Attributes:
        validation: validation pairs; no English sentence stands in both.
        pieces: tokenizers of the two languages; the two numbers after the English pieces mark
            start and end.
        vocabularies: numbers of source pieces, and of target pieces with both marks.
        source: one line that says what was read, and that it is a stand-in where it is.
    """

    train: SentencePairs
    validation: SentencePairs
    pieces: tuple[object, object]
    vocabularies: tuple[int, int]
    source: str


def load_translation_pairs(
    folder: Path | None = None,
    sizes: tuple[int, int] = (30_000, 1_000),
    vocabulary: int = 8_000,
    length: int = 40,
    seed: int = 0,
    stand_in: bool = False,
) -> TranslationPairs:
    """Pairs of all corpora, or generated ones, whose sentences have no more pieces than asked.

    Args:
        folder: data folder; `ATTLAS_DATA` or the cache when None.
        sizes: training and validation pairs.
        vocabulary: most pieces of a language.
        length: most pieces of a sentence; a target has two marks more.
        stand_in: read generated pairs in place of the corpora.

    Returns:
        The two sets; word pieces are learned from the training pairs.

    Raises:
        UserError: if a set is to be empty, the vocabulary has no room for a piece, or fewer pairs
            are short enough than asked.

    Examples:
        >>> found = load_translation_pairs(sizes=(30, 5), vocabulary=90, length=20, stand_in=True)
        >>> found.train.target.shape, found.source
        ((30, 22), 'generated sentences, a stand-in for Portuguese-English pairs')
    """
    if min(sizes) < 1:
        raise UserError(f"sizes {sizes}: both sets need at least one pair")
    if vocabulary < 4 or length < 1:
        raise UserError(
            f"vocabulary = {vocabulary}, length = {length}: choose at least 4 pieces, padding and "
            "unknown included, and a length of at least 1"
        )
    if stand_in:
        pairs: Pairs = generated_pairs(4 * sum(sizes), seed)
        source = "generated sentences, a stand-in for Portuguese-English pairs"
    else:
        corpora = load_portuguese_english(folder)
        pairs = [pair for name in sorted(corpora) for pair in corpora[name]]
        source = "Portuguese-English: " + ", ".join(sorted(corpora))
    first: dict[str, int] = {}
    groups = np.array([first.setdefault(english, len(first)) for _, english in pairs])
    held, train = split_groups(groups, (min(4 * sizes[1], len(pairs) // 4),), seed)
    candidates = [[pairs[i] for i in part] for part in (train[: 2 * sizes[0]], held)]
    pieces = tuple(train_word_pieces([p[k] for p in candidates[0]], vocabulary) for k in range(2))
    names = ("training", "validation")
    sets = [
        _first_short(pieces, sentences, size, length, name)
        for sentences, size, name in zip(candidates, sizes, names, strict=True)
    ]
    counts = (pieces[0].get_vocab_size(), pieces[1].get_vocab_size() + 2)
    return TranslationPairs(sets[0], sets[1], (pieces[0], pieces[1]), counts, source)


def number_pairs(pieces: tuple, pairs: Pairs, length: int) -> SentencePairs:
    """Sentence pairs as numbers of word pieces.

    Args:
        pieces: tokenizers of the two languages, see `train_word_pieces`.
        pairs: source and target sentences.
        length: most pieces of a sentence.

    Returns:
        The pairs, padded to `length` and `length` + 2.

    Raises:
        UserError: if a pair is not two texts, or a sentence has no piece or more than `length`.

    Examples:
        >>> pieces = tuple(train_word_pieces(["a b a b"], 20) for _ in range(2))
        >>> number_pairs(pieces, [("a", "b a")], 3).target_mask.tolist()
        [[True, True, True, True, False]]
    """
    source = np.full((len(pairs), length), PADDING, np.int32)
    target = np.full((len(pairs), length + 2), PADDING, np.int32)
    start = pieces[1].get_vocab_size()
    for row, pair in enumerate(pairs):
        if len(pair) != 2 or not all(isinstance(text, str) for text in pair):
            raise UserError(f"pair {row} is {pair!r}: give two texts")
        source_ids, target_ids = (
            tokenizer.encode(text).ids for tokenizer, text in zip(pieces, pair, strict=True)
        )
        if not source_ids or not target_ids:
            raise UserError(f"pair {row} has an empty sentence: leave it out")
        if max(len(source_ids), len(target_ids)) > length:
            raise UserError(f"pair {row} has over {length} pieces: leave it out or raise length")
        source[row, : len(source_ids)] = source_ids
        target[row, : len(target_ids) + 2] = [start, *target_ids, start + 1]
    return SentencePairs(source, source != PADDING, target, target != PADDING)


def generated_pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Sentences from a toy grammar, with gender and with adjectives after their nouns.

    A stand-in for a corpus: no sentence of it was written by anyone.

    Args:
        count: number of pairs; some may be equal.

    Examples:
        >>> generated_pairs(1)
        [('a cidade compra a mesa', 'the town buys the table')]
    """
    draw = np.random.default_rng(seed)

    def phrase() -> tuple[str, str]:
        noun, english = _NOUNS[int(draw.integers(len(_NOUNS)))]
        if draw.random() < 0.4:
            return noun, f"the {english}"
        adjective = _ADJECTIVES[int(draw.integers(len(_ADJECTIVES)))]
        form = adjective[0 if noun.startswith("o ") else 1]
        return f"{noun} {form}", f"the {adjective[2]} {english}"

    pairs = []
    for _ in range(count):
        who, what = phrase(), phrase()
        verb = _VERBS[int(draw.integers(len(_VERBS)))]
        end = _ENDINGS[int(draw.integers(len(_ENDINGS)))]
        pairs.append(tuple(f"{who[k]} {verb[k]} {what[k]}{end[k]}" for k in range(2)))
    return pairs


def _first_short(pieces: tuple, pairs: Pairs, size: int, length: int, name: str) -> SentencePairs:
    encoded = [tokenizer.encode_batch([p[k] for p in pairs]) for k, tokenizer in enumerate(pieces)]
    lengths = np.array([[len(encoding.ids) for encoding in tokenizer] for tokenizer in encoded])
    short = np.flatnonzero((lengths.max(axis=0) <= length) & (lengths.min(axis=0) > 0))
    if short.size < size:
        raise UserError(f"{size} {name} pairs requested, {short.size} short enough: request fewer")
    return number_pairs(pieces, [pairs[i] for i in short[:size]], length)
