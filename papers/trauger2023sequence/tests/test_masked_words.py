import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.generated_sentences import generated_sentences
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
