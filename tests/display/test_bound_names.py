"""Names of bounds in words."""

import pytest

from attlas.display.bound_names import WORDS, bound_in_words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("1,1", "entry-sum norm"),
        ("1,1 sharp", "entry-sum norm, sharp"),
        ("samples: (1,inf) corrected", "samples: largest-column norm, corrected"),
        ("Theorem 4.1 sharp", "Theorem 4.1, sharp"),
        ("log T, T = 20", "log of the length, T = 20"),
        ("Theorem 2, printed", "Theorem 2, printed"),
        ("1,100 samples", "1,100 samples"),
    ],
)
def test_a_row_in_words(name, words):
    assert bound_in_words(name) == words


def test_no_code_is_in_the_words_of_another():
    assert not any(code in words for code in WORDS for words in WORDS.values() if "," in code)
