import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.data.digit_tokens import digit_sequences, load_digit_tokens, row_information
from attlas.data.digits import load_digits
from attlas.data.token_selection import validate
from attlas.data.token_sequences import TokenSequences


@pytest.mark.parametrize("tokens", ["rows", "patches"])
def test_tokens_are_valid_token_selection_data(tokens):
    data = load_digit_tokens(tokens=tokens, count=10)
    validate(data)
    assert np.allclose(np.linalg.norm(data.X, axis=2), 1, rtol=1e-14)
    assert np.allclose(np.linalg.norm(data.z, axis=1), 1, rtol=1e-14)
    assert int(data.y.sum()) == 0


def test_value_head_speaks_for_the_classes():
    data = load_digit_tokens(unit_sphere=False)
    scores = np.asarray(data.X.mean(axis=1) @ data.v)
    assert scores[np.asarray(data.y) > 0].mean() > scores[np.asarray(data.y) < 0].mean()
    assert float(data.X.max()) == 1.0


def test_first_token_can_be_the_query():
    data = load_digit_tokens(query="first", count=4)
    assert np.array_equal(data.z, data.X[:, 0])


def test_bad_requests_are_refused():
    with pytest.raises(UserError, match="query = 'last' is unknown"):
        load_digit_tokens(query="last")
    with pytest.raises(UserError, match="count = 100000 images"):
        load_digit_tokens(count=100_000)


def test_odd_digits_are_labelled_one():
    split = load_digits().test
    assert np.array_equal(digit_sequences(split).labels, split.labels % 2)


def test_row_information_finds_the_planted_token():
    rng = np.random.default_rng(0)
    tokens = rng.normal(size=(400, 3, 2))
    labels = np.repeat([0.0, 1.0], 200)
    tokens[200:, 1] += [3.0, 0.0]
    found = row_information(TokenSequences(tokens, np.ones((400, 3), bool), labels))
    assert np.argmax(found) == 1
    # J estimates 3^2 / 1; its relative deviation is about 2 sqrt(2 / (3^2 100)) = 0.1.
    assert abs(found[1] / 9 - 1) < 0.4


def test_tokens_head_and_queries_are_those_written_out():
    split = load_digits(3, (7, 4)).train
    data = load_digit_tokens((7, 4), count=5, unit_sphere=False, seed=3)
    sphere = load_digit_tokens((7, 4), count=5, seed=3)
    images = {digit: [im for im, k in zip(*split, strict=True) if k == digit] for digit in (7, 4)}
    assert sphere.y.tolist() == data.y.tolist() == [1, -1, 1, -1, 1]
    for i in range(5):
        image = np.asarray(images[(7, 4)[i % 2]][i // 2], float)
        np.testing.assert_allclose(data.X[i], image / 16, rtol=1e-15)
        query = sum(image) / 8 / 16
        np.testing.assert_allclose(data.z[i], query, rtol=1e-14)
        np.testing.assert_allclose(sphere.z[i], query / np.sqrt(query @ query), rtol=1e-14)
        for row, token in zip(image, np.asarray(sphere.X[i]), strict=True):
            wanted = row / np.sqrt(row @ row) if row.any() else np.full(8, 8**-0.5)
            np.testing.assert_allclose(token, wanted, rtol=1e-14)
    means = [np.sum(images[k], axis=(0, 1)) / (8 * len(images[k])) for k in (7, 4)]
    head = means[0] - means[1]
    np.testing.assert_allclose(data.v, head / np.sqrt(head @ head), rtol=1e-12)
    assert np.array_equal(sphere.v, data.v)


def test_a_blank_token_points_nowhere():
    data = load_digit_tokens((0, 1), tokens="patches", count=40)
    plain = load_digit_tokens((0, 1), tokens="patches", count=40, unit_sphere=False)
    blank = ~np.asarray(plain.X).any(axis=2)
    assert blank.any()
    np.testing.assert_allclose(np.asarray(data.X)[blank], 0.5, rtol=1e-15)


def test_as_many_images_as_pairs_and_no_more():
    labels = load_digits(0, (3, 8)).train.labels
    every = load_digit_tokens().X.shape[0]
    assert every == 2 * min((labels == 3).sum(), (labels == 8).sum())
    assert load_digit_tokens(count=every).X.shape[0] == every
    with pytest.raises(UserError, match="choose 1 to"):
        load_digit_tokens(count=every + 1)
    with pytest.raises(UserError, match="count = 0"):
        load_digit_tokens(count=0)


def test_sequences_are_pixels_over_sixteen():
    split = load_digits().test
    found = digit_sequences(split)
    assert np.array_equal(found.tokens, split.inputs / 16)
    assert found.mask.shape == found.tokens.shape[:2]
    assert found.mask.all()


def test_row_information_is_fishers_discriminability():
    """Of classes of 3 and 6 samples, whose covariance is pooled, less their own means."""
    draws = np.random.default_rng(4)
    tokens, labels = draws.normal(size=(9, 2, 3)), np.repeat([1.0, 0.0], [3, 6])
    found = row_information(TokenSequences(tokens, np.ones((9, 2), bool), labels))
    ridge = np.mean([np.var(tokens[:, t, k]) for t in range(2) for k in range(3)]) / 1000
    for t in range(2):
        ones, zeros = tokens[:3, t], tokens[3:, t]
        pooled = (3 * np.cov(ones.T, ddof=0) + 6 * np.cov(zeros.T, ddof=0)) / 9
        gap = ones.mean(axis=0) - zeros.mean(axis=0)
        wanted = gap @ np.linalg.inv(pooled + ridge * np.eye(3)) @ gap
        assert found[t] == pytest.approx(wanted, rel=1e-10)
