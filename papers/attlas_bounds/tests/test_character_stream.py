"""Streams of characters: what is kept of a text, other texts for the held-out stream, refusals."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas_bounds.library.training.character_stream import (
    ALPHABET,
    load_character_stream,
    to_letters,
)


def spelt(stream):
    return "".join(ALPHABET[k] for k in stream)


def test_letters_in_lower_case_and_single_spaces():
    assert spelt(to_letters(["A  b-C\n", "é?", "d"], 99)) == "a b c d "
    assert spelt(to_letters(["abc", "def"], 5)) == "abc d"


def test_streams_are_as_long_as_asked_and_begin_alike():
    long, short = (load_character_stream("generated", n, 300, 3) for n in (5000, 700))
    assert (len(long.train), len(long.held_out)) == (5000, 300)
    np.testing.assert_array_equal(long.train[:700], short.train)
    assert spelt(long.train[:200]) not in spelt(long.held_out)


def test_what_is_refused():
    for text, n in (("generated", 0), ("novels", 10)):
        with pytest.raises(UserError):
            load_character_stream(text, n, 10, 0)


def test_reviews_fill_both_streams(data_dir):
    found = load_character_stream("imdb", 2000, 1000, 0, data_dir)
    assert (len(found.train), len(found.held_out), found.source) == (2000, 1000, "IMDB reviews")
    assert (
        3.9
        < -sum(p * np.log2(p) for p in np.bincount(found.train, minlength=27) / 2000 if p > 0)
        < 4.3
    )
