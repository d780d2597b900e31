"""Texts as sequences of word pieces, with a vocabulary trained on the training texts."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from attlas.core.errors import UserError, extra_needed, refuse_unreadable
from attlas.core.memory import require_memory
from attlas.core.ranges import require_at_least
from attlas.data.splits import Split
from attlas.data.token_sequences import TokenSequences

PADDING, UNKNOWN = 0, 1


@refuse_unreadable
def train_word_pieces(texts: Sequence[str], vocabulary: int) -> Any:
    """A lower-casing WordPiece tokenizer like BERT's, trained on the given texts.

    Args:
        vocabulary: largest number of pieces, padding and unknown included.

    Returns:
        A `tokenizers.Tokenizer`; piece 0 is padding, piece 1 the unknown token.

    Raises:
        UserError: if there is no text.

    Examples:
        >>> pieces = train_word_pieces(["good good film", "bad film"], 60)
        >>> pieces.encode("good film").tokens
        ['good', 'film']
    """
    require_at_least(1, vocabulary=vocabulary)
    require_memory(vocabulary, f"a vocabulary of {vocabulary} pieces", "ask for fewer")
    with extra_needed("a vocabulary of word pieces", "experiments"):
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    if not len(texts):
        raise UserError("no text to train a vocabulary on: give at least one")

    def make(model: Any) -> Any:
        pieces = Tokenizer(model)
        pieces.normalizer = normalizers.BertNormalizer(lowercase=True)
        pieces.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return pieces

    learner = make(models.WordPiece(unk_token="[UNK]"))
    alphabet, inner = _letters(learner, texts, vocabulary // 4)
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary,
        special_tokens=["[PAD]", "[UNK]", *(f"##{letter}" for letter in inner)],
        initial_alphabet=alphabet,
        limit_alphabet=len(alphabet),
        show_progress=False,
    )
    learner.train_from_iterator((_plain(text) for text in texts), trainer)
    # A fresh tokenizer, for which the inner letters are ordinary pieces again.
    return make(models.WordPiece(vocab=learner.get_vocab(), unk_token="[UNK]"))


def _letters(pieces: Any, texts: Sequence[str], most: int) -> tuple[list[str], list[str]]:
    """The most frequent letters, and those of them that occur inside words, in a fixed order.

    By itself the trainer numbers inner letters in the order of a randomly seeded hash map and
    breaks ties by number: every run would give another vocabulary.
    """
    words: Counter[str] = Counter()
    for text in texts:
        plain = pieces.normalizer.normalize_str(_plain(text))
        words.update(word for word, _ in pieces.pre_tokenizer.pre_tokenize_str(plain))
    letters: Counter[str] = Counter()
    inner = set()
    for word, count in words.items():
        for letter in word:
            letters[letter] += count
        inner.update(word[1:])
    frequent = sorted(letters, key=lambda letter: (-letters[letter], letter))[: max(most, 1)]
    return sorted(frequent), sorted(inner.intersection(frequent))


@refuse_unreadable
def encode_words(pieces: Any, split: Split, length: int) -> TokenSequences:
    """Texts truncated to their first pieces and padded.

    Args:
        split: texts and labels 0 or 1.
        length: number of pieces T per text.

    Raises:
        UserError: if a text has no piece.

    Examples:
        >>> pieces = train_word_pieces(["good good film", "bad film"], 60)
        >>> split = Split(np.array(["bad"], dtype=object), np.array([0]))
        >>> encode_words(pieces, split, 3).mask.tolist()
        [[True, False, False]]
    """
    require_at_least(1, length=length)
    tokens = np.full((len(split.inputs), length), PADDING, np.int32)
    mask = np.zeros(tokens.shape, bool)
    encoded = pieces.encode_batch([_plain(text) for text in split.inputs])
    for row, encoding in enumerate(encoded):
        ids = encoding.ids[:length]
        if not ids:
            raise UserError(f"text {row} has no word: leave it out")
        tokens[row, : len(ids)] = ids
        mask[row, : len(ids)] = True
    return TokenSequences(tokens, mask, np.asarray(split.labels, float))


def _plain(text: str) -> str:
    # Reviews carry line breaks as HTML marks; as words they would only say "long review".
    return text.replace("<br />", " ")
