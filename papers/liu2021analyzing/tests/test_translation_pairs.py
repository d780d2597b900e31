import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.word_pieces import train_word_pieces
from liu2021analyzing.library.data import translation_pairs
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


def _drawn_sentences(draw):
    """One pair: two phrases, a verb between them and an ending, in this order of the draws."""

    def phrase():
        nouns, adjectives = translation_pairs._NOUNS, translation_pairs._ADJECTIVES
        noun = nouns[draw.integers(10)]
        if draw.random() < 0.4:
            return noun[0], "the " + noun[1]
        masculine, feminine, english = adjectives[draw.integers(6)]
        form = feminine if noun[0].split()[0] == "a" else masculine
        return noun[0] + " " + form, "the " + english + " " + noun[1]

    (agent, who), (object_, what) = phrase(), phrase()
    verb = translation_pairs._VERBS[draw.integers(4)]
    end = translation_pairs._ENDINGS[draw.integers(4)]
    return f"{agent} {verb[0]} {object_}{end[0]}", f"{who} {verb[1]} {what}{end[1]}"


def test_generated_pairs_are_those_of_the_stated_draws():
    draw = np.random.default_rng(4)
    assert generated_pairs(80, seed=4) == [_drawn_sentences(draw) for _ in range(80)]


@pytest.mark.parametrize("sizes", [(7, 5), (20, 2)])
def test_the_sets_are_the_first_short_pairs_of_the_stated_draws(sizes):
    """Four times as many pairs are drawn, whole English sentences held out, pieces learned."""
    length, seed, total = 12, 6, 4 * sum(sizes)
    found = load_translation_pairs(None, sizes, 110, length, seed, stand_in=True)
    draw = np.random.default_rng(seed)
    pairs = [_drawn_sentences(draw) for _ in range(total)]
    english = list(dict.fromkeys(text for _, text in pairs))
    shuffled = [english[k] for k in np.random.default_rng(seed).permutation(len(english))]
    in_order = [pair for text in shuffled for pair in pairs if pair[1] == text]
    most = min(4 * sizes[1], total // 4)
    ends = [k for k in range(most, total) if in_order[k][1] != in_order[k - 1][1]]
    held, train = in_order[:most], in_order[ends[0] :][: 2 * sizes[0]]
    pieces = [train_word_pieces([pair[k] for pair in train], 110) for k in range(2)]
    for own, expected in zip(found.pieces, pieces, strict=True):
        assert own.get_vocab() == expected.get_vocab()
    start = pieces[1].get_vocab_size()
    assert found.vocabularies == (pieces[0].get_vocab_size(), start + 2)
    for own, candidates, size in zip(
        (found.train, found.validation), (train, held), sizes, strict=True
    ):
        ids = [[pieces[k].encode(pair[k]).ids for k in range(2)] for pair in candidates]
        short = [pair for pair in ids if max(map(len, pair)) <= length][:size]
        assert len(short) == size
        for row, (source, target) in enumerate(short):
            expected = source + [0] * (length - len(source))
            assert own.source[row].tolist() == expected
            marked = [start, *target, start + 1]
            assert own.target[row].tolist() == marked + [0] * (length + 2 - len(marked))


def test_sentences_of_just_the_length_are_read_and_empty_ones_are_not():
    pieces = tuple(train_word_pieces(["a b c a b c"], 20) for _ in range(2))
    pairs = [("a b", " "), ("a b c", "a"), ("a b", "b c a"), (" ", "a"), ("b", "c"), ("c", "a")]
    found = translation_pairs._first_short(pieces, pairs, 2, 2, "training")
    expected = number_pairs(pieces, [("b", "c"), ("c", "a")], 2)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    found = translation_pairs._first_short(pieces, pairs, 2, 3, "training")
    assert found.mask.sum(axis=1).tolist() == [3, 2]
    assert found.target_mask.sum(axis=1).tolist() == [3, 5]
    assert (found.mask.shape, found.target_mask.shape) == ((2, 3), (2, 5))


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
