"""Marked words: every word can be the one, and noise decides nothing."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.data.marked_words import marked_words


def test_marks_and_labels():
    x, y = marked_words(np.random.default_rng(1), 200, 3)
    assert x.shape == (200, 3, 3)
    assert set(y.tolist()) == {-1.0, 1.0}
    assert set(x[:, 1].argmax(axis=1).tolist()) == {0, 1, 2}
    assert (np.abs(x[:, 0]) == 1).all()
    assert (np.abs(x[:, 2]) <= 1).all()
    with pytest.raises(UserError, match="n = 0"):
        marked_words(np.random.default_rng(1), 0, 3)
