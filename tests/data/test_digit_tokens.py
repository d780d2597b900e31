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
