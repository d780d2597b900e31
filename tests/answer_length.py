"""How long an answer may be; a formula counts as one word."""

import re

MOST_WORDS = 60


def assert_few_words(answer: str) -> None:
    """Fail where an answer has more words than a reader takes in at once."""
    assert len(re.sub(r"\$[^$]*\$", "x", answer).split()) <= MOST_WORDS, answer
