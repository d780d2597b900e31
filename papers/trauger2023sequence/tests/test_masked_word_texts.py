"""Samples by kind of text, and the prediction by frequency alone."""

import numpy as np
import pytest

from attlas.data.generated_sentences import generated_sentences
from trauger2023sequence.library.data.masked_word_texts import frequency_baseline, load_masked_words
from trauger2023sequence.library.data.masked_words import make_masked_words


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
