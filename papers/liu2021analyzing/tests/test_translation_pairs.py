import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.data.translation_pairs import (
    generated_pairs,
    load_translation_pairs,
    number_pairs,
)


def test_pairs_can_be_read_back_and_sets_share_no_english_sentence():
    found = load_translation_pairs(sizes=(60, 20), vocabulary=150, length=16, stand_in=True)
    assert "stand-in" in found.source
    start = found.vocabularies[1] - 2
    sentences = []
    for pairs in (found.train, found.validation):
        assert np.array_equal(pairs.mask, pairs.source > 0)
        assert np.all(pairs.target[:, 0] == start)
        ends = pairs.target_mask.sum(axis=1) - 1
        assert np.all(pairs.target[np.arange(len(ends)), ends] == start + 1)
        ids = [row[1:end].tolist() for row, end in zip(pairs.target, ends, strict=True)]
        sentences.append({found.pieces[1].decode(each) for each in ids})
    assert not sentences[0] & sentences[1]
    assert all(text.startswith("the ") for text in sentences[0])
    assert found.train.source.max() < found.vocabularies[0]


def test_adjectives_follow_the_gender_of_their_noun():
    for portuguese, english in generated_pairs(50, seed=2):
        words = portuguese.split()
        if words[0] == "a" and english.split()[1] == "red":
            assert words[2] == "vermelha"
    assert generated_pairs(5, seed=1) == generated_pairs(5, seed=1)


def test_unusable_pairs_are_refused():
    pieces = load_translation_pairs(sizes=(20, 5), vocabulary=90, stand_in=True).pieces
    with pytest.raises(UserError, match="pair 1 has an empty sentence"):
        number_pairs(pieces, [("o gato", "the cat"), ("o gato", " ")], 9)
    with pytest.raises(UserError, match="pair 0 has over 2 pieces"):
        number_pairs(pieces, [("o gato preto", "the black cat")], 2)
    with pytest.raises(UserError, match="short enough"):
        load_translation_pairs(sizes=(20, 5), length=2, stand_in=True)
    with pytest.raises(UserError, match="at least one pair"):
        load_translation_pairs(sizes=(20, 0), stand_in=True)


def test_real_pairs(data_dir):
    found = load_translation_pairs(data_dir, sizes=(500, 100), vocabulary=500, length=40)
    assert "tatoeba" in found.source
    assert found.train.source.shape == (500, 40)
