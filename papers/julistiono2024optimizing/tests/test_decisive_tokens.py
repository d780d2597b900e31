import numpy as np

from attlas.data.splits import Split, Splits
from attlas.data.word_pieces import train_word_pieces
from julistiono2024optimizing.library.training import decisive_tokens
from julistiono2024optimizing.library.training.decisive_tokens import (
    DecisiveSentence,
    decisive_pieces,
    decisive_sentences,
    digit_tokens,
    random_part,
    review_pieces,
)


def test_one_row_of_every_digit_is_decisive():
    found = digit_tokens(dtype=np.float32)
    assert found.decisive.shape == found.probe.mask.shape
    assert np.all(found.decisive.sum(axis=1) == 1)
    assert found.sets.train.tokens.dtype == found.sets.validation.labels.dtype == np.float32


def test_marked_pieces_spell_the_marked_words():
    sentences = decisive_sentences()
    pieces = train_word_pieces([each.text for each in sentences], 110)  # words of several pieces
    probe, decisive = decisive_pieces(pieces, 60)
    assert decisive.sum(axis=1).max() > 1
    assert np.all(decisive <= probe.mask)
    for each, tokens, marked in zip(sentences, probe.tokens, decisive, strict=True):
        spelt = "".join(pieces.id_to_token(k).lstrip("#") for k in tokens[marked == 1].tolist())
        assert spelt == each.text[each.start : each.end].lower()


def test_signs_beside_a_marked_word_do_not_belong_to_it(monkeypatch):
    own = (DecisiveSentence("so-good!", 1, 3, 7),)
    monkeypatch.setattr(decisive_tokens, "decisive_sentences", lambda: own)
    pieces = train_word_pieces(["so - good !"] * 3, 100)
    probe, decisive = decisive_pieces(pieces, 6)
    assert [pieces.id_to_token(k) for k in probe.tokens[0][probe.mask[0]].tolist()] == [
        "so", "-", "good", "!",
    ]  # fmt: skip
    assert decisive.tolist() == [[0, 0, 1, 0, 0, 0]]


def test_reviews_keep_the_wanted_counts(monkeypatch):
    texts = np.array([f"review number {k} is great" for k in range(30)], dtype=object)
    split = Split(texts, np.arange(30) % 2)
    monkeypatch.setattr(decisive_tokens, "load_imdb", lambda: Splits(split, split, split))
    found = review_pieces(80, 30, (7, 0, 4), np.float64)
    assert [len(part.labels) for part in found.sets] == [7, 30, 4]
    assert found.sets.train.tokens.shape == (7, 30)
    assert found.probe.labels.dtype == np.float64
    assert found.decisive.shape == (12, 30)


def test_a_random_part_keeps_inputs_with_their_labels():
    split = Split(np.arange(50) * 2, np.arange(50))
    part = random_part(split, 20, seed=3)
    assert np.array_equal(part.inputs, part.labels * 2)
    assert len(set(part.labels.tolist())) == 20
    assert random_part(split, 0, seed=3) is split
