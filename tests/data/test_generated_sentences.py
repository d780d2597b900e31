import pytest

from attlas.core.errors import UserError
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


def test_nothing_is_refused():
    with pytest.raises(UserError, match="give at least 1"):
        generated_sentences(0, 0)
