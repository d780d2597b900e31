"""Checks find repeats, drift and training examples, and leave sound files alone."""

import numpy as np
import pytest

from attlas.certificates.checks import MOST_BLOCKS, checks_of, require_unseen
from attlas.certificates.predictions import predictions_of
from attlas.core.errors import UserError


def test_repeats_are_counted():
    (repeats, _) = checks_of([predictions_of("a", [0, 1, 0], examples=["x", "y", "x"])])
    assert not repeats.holds
    assert "1 of 3 examples" in repeats.text


@pytest.mark.parametrize("size", [500, 3 * MOST_BLOCKS])
def test_drift_is_seen_and_seldom_where_there_is_none(size):
    rng = np.random.default_rng(0)
    chance = np.linspace(0.05, 0.4, size)
    assert not checks_of([predictions_of("a", (rng.random(size) < chance) * 1.0)])[0].holds
    still = [predictions_of("a", (rng.random(size) < 0.2) * 1.0) for _ in range(20)]
    assert sum(not checks_of([model])[0].holds for model in still) <= 2


def test_training_examples_are_refused():
    with pytest.raises(UserError, match=r"1 of 2 test examples are in train.csv, such as 'b'"):
        require_unseen(["a", "b"], ["b", "c"], "train.csv")
