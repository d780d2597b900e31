import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data import generated_sentences as module
from attlas.data.generated_sentences import generated_sentences


def test_seeds_decide_and_lengths_hold():
    first = generated_sentences(30, 5, 12)
    assert first == generated_sentences(30, 5, 12)
    assert first != generated_sentences(30, 6, 12)
    assert all(len(each.split()) >= 12 for each in first)


def test_subject_and_verb_agree():
    plural = {"farmers", "children", "teachers", "sailors"}
    seen = set()
    for each in generated_sentences(200, 0, 1):
        words = each.split()
        (subject,) = plural.intersection(words) or {None}
        singular_verb = any(word in {"reads", "eats", "builds", "hears"} for word in words)
        assert singular_verb == (subject is None)
        seen.add(singular_verb)
    assert seen == {True, False}


def clause_of(draw):
    """Article, half of the time an adjective, person, verb and thing, at times a place."""
    number, verb = draw.integers(2), draw.integers(4)
    words = [module._ARTICLES[number][draw.integers(len(module._ARTICLES[number]))]]
    if draw.random() < 0.5:
        words.append(module._ADJECTIVES[draw.integers(len(module._ADJECTIVES))])
    words.append(module._PEOPLE[number][draw.integers(4)])
    verbs, things = module._VERBS[verb]
    words += [verbs[number], "the", things[draw.integers(4)]]
    if draw.random() < 0.3:
        preposition, place = module._PLACES[draw.integers(4)]
        words += [preposition, "the", place]
    return words


def test_clauses_are_joined_until_there_are_enough_words():
    draw, lengths = np.random.default_rng(8), []
    for sentence in generated_sentences(60, 8, 12):
        words = clause_of(draw)
        while len(words) < 12:
            words.append(str(draw.choice(["and", "while", "because", "but"])))
            words += clause_of(draw)
        assert sentence.split() == words
        lengths.append(len(words))
    assert min(lengths) == 12


def test_nothing_is_refused():
    with pytest.raises(UserError, match="give at least 1"):
        generated_sentences(0, 0)
