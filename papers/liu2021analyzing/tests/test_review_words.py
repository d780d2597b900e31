import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.splits import Split
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
