import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.splits import Split
from attlas.data.word_pieces import encode_words, train_word_pieces
from julistiono2024optimizing.library.training.decisive_tokens import decisive_sentences

TEXTS = ["A good film.<br />Very good!", "A bad film, very bad."]


def _split(*texts):
    return Split(np.array(texts, dtype=object), np.ones(len(texts), np.int8))


def test_pieces_are_the_same_every_time():
    one, *others = (train_word_pieces(TEXTS * 5, 100).get_vocab() for _ in range(4))
    assert all(one == other for other in others)
    assert one["[PAD]"] == 0
    assert "br" not in one


def test_texts_are_cut_and_padded():
    pieces = train_word_pieces(TEXTS, 200)
    found = encode_words(pieces, _split("good good good good", "Bad"), 3)
    good, bad = pieces.token_to_id("good"), pieces.token_to_id("bad")
    assert found.tokens.tolist() == [[good, good, good], [bad, 0, 0]]
    assert found.mask.sum(axis=1).tolist() == [3, 1]


def test_what_has_no_piece_is_refused():
    pieces = train_word_pieces(TEXTS, 100)
    with pytest.raises(UserError, match="text 1 has no word"):
        encode_words(pieces, _split("good", "<br />"), 3)
    with pytest.raises(UserError, match="no text to train"):
        train_word_pieces([], 60)


def test_sentences_come_in_balanced_pairs():
    found = decisive_sentences()
    assert len(found) == 12
    for good, bad in zip(found[::2], found[1::2], strict=True):
        assert (good.label, bad.label) == (1, 0)
        assert good.text[: good.start] == bad.text[: bad.start]
        assert good.text[good.end :] == bad.text[bad.end :]


def test_a_quarter_of_the_pieces_are_the_most_frequent_letters():
    """Of two letters as frequent the first in the alphabet; d is only seen at the beginning."""
    texts = ["abc abc abc ab", "ab a c", "d d d", "bee e"]
    counts = {letter: "".join(texts).count(letter) for letter in "abcde"}
    assert counts == {"a": 6, "b": 6, "c": 4, "d": 3, "e": 3}
    pieces = train_word_pieces(texts, 19).get_vocab()
    assert {piece for piece in pieces if len(piece) == 1} == set("abcd")
    assert {piece for piece in pieces if piece[:2] == "##" and len(piece) == 3} == {"##b", "##c"}
    assert {piece for piece in train_word_pieces(texts, 3).get_vocab() if len(piece) == 1} == {"a"}
