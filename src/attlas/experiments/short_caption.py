"""Captions of at most forty words; what a figure says beyond them stands below it."""

import re

MOST_WORDS = 40
_SENTENCE_END = re.compile(r"(?<=[.?!])\s+(?=[A-Z$'(])")


def split_caption(text: str) -> tuple[str, str]:
    """The first sentences of a caption, of at most `MOST_WORDS` words together, and the remainder.

    No sentence is cut: one that is too long by itself goes to the remainder.

    Examples:
        >>> split_caption("It falls. It rises.")
        ('It falls. It rises.', '')
        >>> split_caption("It falls. " + 41 * "It " + "rises.")[0]
        'It falls.'
    """
    caption: list[str] = []
    sentences = _sentences(text)
    for sentence in sentences:
        if len(" ".join([*caption, sentence]).split()) > MOST_WORDS:
            break
        caption.append(sentence)
    return " ".join(caption), " ".join(sentences[len(caption) :])


def _sentences(text: str) -> list[str]:
    """The sentences of a text; a full stop inside $mathematics$ ends none."""
    formulas: list[str] = []

    def hidden(match: re.Match[str]) -> str:
        formulas.append(match[0])
        return f"${len(formulas) - 1}$"

    safe = re.sub(r"\$[^$]*\$", hidden, " ".join(text.split()))
    pieces = _SENTENCE_END.split(safe) if safe else []
    return [re.sub(r"\$(\d+)\$", lambda m: formulas[int(m[1])], piece) for piece in pieces]
