"""Captions are short, whole sentences, and nothing is lost."""

import re

import pytest

from attlas.experiments.find import find_experiments
from attlas.site.short_caption import MOST_WORDS, split_caption

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


def test_no_template_begins_with_a_sentence_that_is_too_long():
    """What stands between braces counts as five words; loops and conditions as what they hold."""
    captions = [
        (experiment.name, re.sub(r"{{.*?}}", "A b c d e", re.sub(r"(?s){%.*?%}", "", text)))
        for experiment in find_experiments()
        for text in experiment.captions.values()
    ]
    assert captions
    assert [name for name, text in captions if text and not split_caption(text)[0]] == []
