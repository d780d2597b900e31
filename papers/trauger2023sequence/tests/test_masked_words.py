import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.generated_sentences import generated_sentences
from attlas.data.splits import split_groups
from trauger2023sequence.library.data import masked_words as masked_words_module
from trauger2023sequence.library.data.masked_words import (
    frequency_baseline,
    frequent_words,
    load_masked_words,
    make_masked_words,
    mask_words,
    split_words,
)


@pytest.mark.thorough
def test_the_masked_word_is_known_and_stands_in_its_place():
    split = make_masked_words(generated_sentences(200, 0), 20, 8, 100, 40)
    for part in split[:2]:
        rows = np.arange(len(part.targets))
        np.testing.assert_array_equal(part.words[rows, part.positions], part.targets)
        assert part.targets.max() < 20
        assert part.words.max() == 20  # some words are outside the vocabulary


@pytest.mark.thorough
def test_no_window_is_in_both_sets_or_twice():
    split = make_masked_words(generated_sentences(300, 1, 12), 20, 6, 120, 60)
    train, test = (set(map(tuple, part.words.tolist())) for part in split[:2])
    assert len(train) == 120
    assert len(test) == 60
    assert not train & test


def test_positions_are_uniform_over_known_words():
    found = [mask_words(["a b c"], ("a", "b"), 3, seed).positions[0] for seed in range(60)]
    count = np.bincount(found, minlength=3)
    assert count[2] == 0
    # sixty fair coins have a deviation of 3.9
    assert abs(count[0] - 30) < 4 * 3.9


TRIPLES = [f"{a} {b} {c}" for a in "abc" for b in "bac" for c in "cab"]


@pytest.mark.parametrize(("texts", "train", "test"), [(23, 14, 9), (3, 2, 1), (9, 9, 0)])
def test_texts_are_dealt_out_in_the_ratio_of_the_samples(texts, train, test):
    """Every text is one window: the samples are all that there are."""
    sentences = TRIPLES[:texts]
    held, remaining = split_groups(np.arange(texts), (max(1, test),), 5)
    if test == 0:  # one text at least is not for training
        with pytest.raises(UserError, match="8 training and 1 test samples"):
            make_masked_words(sentences, 2, 3, train, test, seed=5)
        train = 8
    split = make_masked_words(sentences, 2, 3, train, test, seed=5)
    vocabulary = frequent_words([sentences[k] for k in remaining], 2)
    assert split.vocabulary == vocabulary
    first = mask_words([sentences[k] for k in remaining], vocabulary, 3, 5)
    second = mask_words([sentences[k] for k in held], vocabulary, 3, 6)
    for mine, theirs in zip(split.train, first, strict=True):
        np.testing.assert_array_equal(mine, theirs[:train])
    for mine, theirs in zip(split.test, second, strict=True):
        np.testing.assert_array_equal(mine, theirs[:test])


def test_a_window_of_the_training_texts_is_no_test_sample():
    split = make_masked_words([f"a b c {triple}" for triple in TRIPLES[6:18]], 3, 3, 8, 2, seed=1)
    train, test = (set(map(tuple, part.words.tolist())) for part in split[:2])
    assert tuple(split.vocabulary.index(letter) for letter in "abc") in train
    assert not train & test
    assert len(test) == 2


def test_short_texts_are_left_out_and_windows_do_not_overlap():
    found = mask_words(["a b", "b a c d a x a", "x y z", "a c d"], ("d", "a"), 3, seed=7)
    assert found.words.tolist() == [[2, 1, 2], [0, 1, 2], [1, 2, 0]]
    chance = np.random.default_rng(7).random((3, 3))
    expected = [1, 0 if chance[1, 0] > chance[1, 1] else 1, 0 if chance[2, 0] > chance[2, 2] else 2]
    assert found.positions.tolist() == expected
    assert found.targets.tolist() == [row[k] for row, k in zip(found.words, expected, strict=True)]


@pytest.mark.parametrize(("T", "words"), [(5, 16), (20, 20)])
def test_twice_as_many_sentences_as_samples_are_generated(T, words, monkeypatch):
    asked = []

    def sentences(*arguments):
        asked.append(arguments)
        return [" ".join([*TRIPLES[k:], *TRIPLES[:k]][:7]) for k in range(27)]

    monkeypatch.setattr(masked_words_module, "generated_sentences", sentences)
    found = load_masked_words("generated", 2, T, train=7, test=4, seed=3)
    assert asked == [(22, 3, words)]
    expected = make_masked_words(sentences(), 2, T, 7, 4, 3)
    for mine, theirs in zip(
        (*found.train, *found.test), (*expected.train, *expected.test), strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


def test_words_and_vocabulary():
    assert split_words("Don’t STOP, 3 times_two") == ["don’t", "stop", "times", "two"]
    assert frequent_words(["b b a", "a c"], 3) == ("a", "b", "c")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: frequent_words(["a b"], 3), "K = 3 words of 2"),
        (lambda: mask_words(["a b"], ("a",), 3, 0), "lower T"),
        (lambda: make_masked_words(["a b", "b a", "a a"], 2, 2, 5, 1), "give more texts"),
    ],
)
def test_what_the_texts_cannot_give_is_refused(call, message):
    with pytest.raises(UserError, match=message):
        call()


@pytest.mark.thorough
def test_generated_samples_are_those_of_the_sentences_of_the_seed():
    found = load_masked_words("generated", 20, 8, 100, 40, seed=3)
    wanted = make_masked_words(generated_sentences(280, 3, 16), 20, 8, 100, 40, 3)
    for own, other in zip((*found.train, *found.test), (*wanted.train, *wanted.test), strict=True):
        np.testing.assert_array_equal(own, other)


def test_frequency_alone_has_the_entropy_of_the_targets_and_the_mode():
    train = np.repeat(np.arange(3), [7, 1, 2])
    loss, accuracy = frequency_baseline(train, np.array([0, 0, 1, 2]), 3)
    wanted = -np.mean(np.log(np.array([8, 8, 2, 3]) / 13))
    assert loss == pytest.approx(wanted)
    assert accuracy == 0.5
