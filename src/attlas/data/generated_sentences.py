"""Sentences from a small random grammar, which replace real text where there is none.

They are not natural language: some sixty words, number agreement within a clause, a verb that
determines its possible objects, and randomly joined clauses. As in real text, a masked word can
only partly be inferred from its neighbours.
"""

import numpy as np

from attlas.core.errors import UserError
from attlas.core.memory import require_memory

_ARTICLES = (("the", "a", "this", "every"), ("the", "some", "these", "many"))
_ADJECTIVES = ("old", "small", "quiet", "red", "clever", "tired", "new", "heavy")
_PEOPLE = (
    ("farmer", "child", "teacher", "sailor"),
    ("farmers", "children", "teachers", "sailors"),
)
_VERBS = (
    (("reads", "read"), ("book", "letter", "map", "sign")),
    (("eats", "eat"), ("bread", "apple", "soup", "cheese")),
    (("builds", "build"), ("house", "boat", "wall", "bridge")),
    (("hears", "hear"), ("song", "bell", "storm", "bird")),
)
_PLACES = (("in", "garden"), ("at", "river"), ("near", "market"), ("on", "hill"))
_JOINTS = ("and", "while", "because", "but")


def generated_sentences(count: int, seed: int, least: int = 24) -> list[str]:
    """Sentences of joined clauses, with at least `least` words each.

    Raises:
        UserError: if a number is below 1.

    Examples:
        >>> generated_sentences(1, 0, 1)
        ['these quiet farmers build the house']
        >>> min(len(sentence.split()) for sentence in generated_sentences(20, 1, 12)) >= 12
        True
    """
    if count < 1 or least < 1:
        raise UserError(f"{count} sentences of {least} words: give at least 1 of each")
    require_memory(8 * count * least, f"{count} sentences of {least} words", "ask for fewer")
    draw = np.random.default_rng(seed)
    sentences = []
    for _ in range(count):
        words = _clause(draw)
        while len(words) < least:
            words += [str(draw.choice(_JOINTS)), *_clause(draw)]
        sentences.append(" ".join(words))
    return sentences


def _clause(draw: np.random.Generator) -> list[str]:
    """Somebody does something, perhaps somewhere."""

    def pick(words: tuple[str, ...]) -> str:
        return words[int(draw.integers(len(words)))]

    number = int(draw.integers(2))
    forms, things = _VERBS[int(draw.integers(len(_VERBS)))]
    words = [pick(_ARTICLES[number])]
    words += [pick(_ADJECTIVES)] if draw.random() < 0.5 else []
    words += [pick(_PEOPLE[number]), forms[number], "the", pick(things)]
    if draw.random() < 0.3:
        place = _PLACES[int(draw.integers(len(_PLACES)))]
        words += [place[0], "the", place[1]]
    return words
