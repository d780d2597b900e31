import re
from collections import Counter

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.splits import Split
from liu2021analyzing.library.reviews import review_words
from liu2021analyzing.library.reviews.review_words import (
    frequent_words,
    generated_reviews,
    load_review_words,
    number_words,
    split_words,
)


def test_words_are_numbered_by_frequency_and_padded():
    found = load_review_words(sizes=(60, 10, 10), vocabulary=40, length=50, stand_in=True)
    assert "stand-in" in found.source
    assert len(found.words) == 40
    texts = generated_reviews((60, 10, 10)).train.inputs
    counts = {w: sum(split_words(t).count(w) for t in texts) for w in found.words[2:]}
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    tokens, mask = np.asarray(found.train.tokens), np.asarray(found.train.mask)
    assert np.array_equal(tokens != 0, mask)
    assert np.all(np.diff(mask.astype(int), axis=1) <= 0)
    assert tokens.max() == 39
    assert {0.0, 1.0} == set(np.asarray(found.train.labels).tolist())


def _drawn_review(draw, label):
    """A review of 4 to 14 sentences, in the order of the draws."""

    def one(of):
        return of[draw.integers(len(of))]

    sentences = []
    for k in range(draw.integers(4, 15)):
        subject = one(review_words._SUBJECTS)
        if k > 0 and draw.random() > 2 / 5:
            sentences.append(one(review_words._NEUTRAL).format(subject))
            continue
        agrees = k == 0 or draw.random() < 4 / 5
        negated = draw.random() < 1 / 6
        good = (label == 1) if agrees else (label == 0)
        word = one((review_words._BAD if good else review_words._GOOD) if negated
                   else (review_words._GOOD if good else review_words._BAD))  # fmt: skip
        opinion = "not " + word if negated else word
        sentences.append(one(review_words._OPINIONS).format(subject, opinion))
    return "".join(sentence + ". " for sentence in sentences)[:-1]


def _drawn_sets(sizes, seed):
    draw, sets = np.random.default_rng(seed), []
    for size in sizes:
        labels = draw.integers(2, size=size)
        sets.append(([_drawn_review(draw, label) for label in labels], labels))
    return sets


def test_generated_reviews_are_those_of_the_stated_draws():
    found = generated_reviews((9, 0, 5), seed=7)
    for own, (texts, labels) in zip(found, _drawn_sets((9, 0, 5), 7), strict=True):
        assert own.inputs.tolist() == texts
        assert own.labels.tolist() == labels.tolist()
        assert own.labels.dtype == np.int8


def test_the_vocabulary_comes_from_the_training_reviews_and_every_review_is_cut():
    sizes, length = (6, 4, 3), 19
    found = load_review_words(None, sizes, 30, length, seed=5, stand_in=True)
    sets = _drawn_sets(sizes, 5)
    texts = [[re.findall("[a-z]+", text.lower()) for text in own] for own, _ in sets]
    counts = Counter(word for text in texts[0] for word in text)
    words = sorted(counts, key=lambda word: (-counts[word], word))[:28]
    assert found.words == ("[PAD]", "[UNK]", *words)
    for own, split, (_, labels), size in zip(found[:3], texts, sets, sizes, strict=True):
        order = np.random.default_rng([5, size]).permutation(size)
        assert np.asarray(own.labels).tolist() == labels[order].tolist()
        for tokens, mask, place in zip(own.tokens, own.mask, order, strict=True):
            numbers = [2 + words.index(w) if w in words else 1 for w in split[place][:length]]
            assert tokens.tolist() == numbers + [0] * (length - len(numbers))
            assert mask.tolist() == [k < len(numbers) for k in range(length)]


def test_imdb_is_read_with_its_validation_size(monkeypatch):
    calls = []

    def load_imdb(*settings):
        calls.append(settings)
        return generated_reviews((6, 6, 6))

    monkeypatch.setattr(review_words, "load_imdb", load_imdb)
    found = load_review_words(None, (5, 4, 3), seed=8)
    assert calls == [(None, 8, 4)]
    assert found.source == "IMDB"
    assert [part.tokens.shape for part in found[:3]] == [(5, 130), (4, 130), (3, 130)]


def test_words_of_equal_frequency_stand_in_the_order_of_the_alphabet():
    texts = ["bad c b", "c a", "b d"]
    assert frequent_words(texts, 5) == ("[PAD]", "[UNK]", "b", "c", "a")
    assert frequent_words(texts, 3) == ("[PAD]", "[UNK]", "b")
    found = number_words(("[PAD]", "[UNK]", "b"), Split(np.array(texts), np.array([1, 0, 1])), 2)
    assert found.tokens.tolist() == [[1, 1], [1, 1], [2, 1]]
    assert np.asarray(found.labels).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.thorough
def test_generated_reviews_can_be_told_apart_but_not_by_one_sentence():
    reviews = generated_reviews((400, 1, 1), seed=3).train
    good = np.array(["wonderful" in text for text in reviews.inputs])
    share = reviews.labels[good].mean()
    assert 0.55 < share < 0.95
    assert 0.4 < reviews.labels.mean() < 0.6
    again = generated_reviews((400, 1, 1), seed=3).train
    assert np.array_equal(reviews.inputs, again.inputs)


@pytest.mark.parametrize(
    ("texts", "labels", "said"),
    [
        (["fine", " ... "], [0, 1], "text 1 has no word"),
        (["fine", "bad"], [0, 2], "label 2 is unknown"),
    ],
)
def test_unusable_reviews_are_refused(texts, labels, said):
    split = Split(np.array(texts, dtype=object), np.array(labels))
    with pytest.raises(UserError, match=said):
        number_words(("[PAD]", "[UNK]", "fine"), split, 4)


def test_unusable_sizes_are_refused():
    with pytest.raises(UserError, match="at least one review"):
        load_review_words(sizes=(5, 0, 5), stand_in=True)
    with pytest.raises(UserError, match="no text"):
        frequent_words([], 10)
    with pytest.raises(UserError, match="no room for words"):
        frequent_words(["a"], 2)


@pytest.mark.thorough
def test_real_reviews(data_dir):
    found = load_review_words(data_dir, sizes=(1000, 200, 200))
    assert found.source == "IMDB"
    assert len(found.words) == 10_000
    # Most reviews are longer than 130 words.
    assert 0.6 < np.mean(np.asarray(found.train.mask)[:, -1]) < 0.85
    assert 0.4 < np.mean(found.test.labels) < 0.6
