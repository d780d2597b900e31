import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.token_sequences import TokenSequences
from liu2021analyzing.library.data.distinct_words import distinct_words


def test_texts_can_be_read_back():
    draw = np.random.default_rng(0)
    tokens = draw.integers(1, 9, (6, 20))
    mask = np.arange(20)[None, :] < draw.integers(1, 21, 6)[:, None]
    data = TokenSequences(tokens, mask, draw.integers(0, 2, 6).astype(float))
    found = distinct_words(data)
    back = np.take_along_axis(np.asarray(found.words), np.asarray(found.places), axis=1)
    assert np.array_equal(back, np.where(mask, tokens, 0))
    assert found.words.shape == (6, 16)
    for row in range(6):
        numbers, counts = np.unique(back[row], return_counts=True)
        used = np.asarray(found.counts)[row] > 0
        assert np.array_equal(np.asarray(found.words)[row][used], numbers)
        assert np.array_equal(np.asarray(found.counts)[row][used], counts)


def test_other_tokens_are_refused():
    empty = TokenSequences(np.zeros((0, 3), int), np.zeros((0, 3), bool), np.zeros(0))
    with pytest.raises(UserError, match="are not texts"):
        distinct_words(empty)


def test_the_table_is_no_wider_than_a_multiple_that_holds_the_longest_text():
    tokens = np.arange(1, 17)[None, :]
    for length, width in ((7, 8), (8, 16), (15, 16), (16, 16)):
        mask = np.arange(16)[None, :] < length  # padding counts as a word where there is some
        found = distinct_words(TokenSequences(tokens, mask, np.ones(1)))
        assert found.words.shape == (1, width)
