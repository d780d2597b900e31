"""Captions are short, whole sentences, and nothing is lost.

That the captions of records have a first sentence of so many words is tested on the rendered ones,
in tests/papers/test_every_figure_speaks_for_itself.py: of a template most ways exclude each other.
"""

import pytest

from attlas.experiments.short_caption import MOST_WORDS, split_caption

TEXTS = [
    "",
    "One.",
    "Is it so? Yes, at $n = 3. 5$ it is. " + "It rises. " * 30,
    "word " * 60 + "end. Short.",
    "Corollary 2 holds. $p$ is large. (So is it.) And so on.",
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_caption_is_short_and_both_parts_are_the_text(text):
    caption, remark = split_caption(text)
    assert len(caption.split()) <= MOST_WORDS
    assert f"{caption} {remark}".split() == text.split()
    assert caption.count("$") % 2 == 0
