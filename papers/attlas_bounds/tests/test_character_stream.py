"""Streams of characters: what is kept of a text, other texts for the held-out stream, refusals."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas_bounds.library.training import character_stream as module
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


def test_no_texts_give_an_empty_stream_and_the_last_text_is_read_in_part():
    assert to_letters([], 5).tolist() == []
    texts = iter(["ab", "cd", "ef", "gh"])
    assert spelt(to_letters(texts, 6)) == "ab cd "
    assert next(texts) == "ef"  # no text is read beyond the number of characters


def test_sentences_are_of_two_seeds_and_enough(monkeypatch):
    asked = []

    def sentences(count, seed):
        asked.append((count, seed))
        return ["x" * 199] * count

    monkeypatch.setattr(module, "generated_sentences", sentences)
    found = load_character_stream("generated", 395, 250, 3)
    assert asked == [(5, 6), (3, 7)]
    assert (len(found.train), len(found.held_out)) == (395, 250)


def test_what_is_refused():
    for text, n in (("generated", 0), ("novels", 10)):
        with pytest.raises(UserError):
            load_character_stream(text, n, 10, 0)


@pytest.mark.thorough
def test_reviews_fill_both_streams(data_dir):
    found = load_character_stream("imdb", 2000, 1000, 0, data_dir)
    assert (len(found.train), len(found.held_out), found.source) == (2000, 1000, "IMDB reviews")
    assert (
        3.9
        < -sum(p * np.log2(p) for p in np.bincount(found.train, minlength=27) / 2000 if p > 0)
        < 4.3
    )
