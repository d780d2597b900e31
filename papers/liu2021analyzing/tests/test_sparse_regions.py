"""Counts of regions against the known maxima and against each other."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from liu2021analyzing.library.bounds.liu2021_regions import (
    liu2021_central_regions_maximum,
    liu2021_regions,
)
from liu2021analyzing.library.training.sparse_regions import (
    marked_words,
    masked_regions,
    softmax_regions,
    trained_regions,
)


def test_random_networks_attain_the_maxima_of_the_inputs_they_see():
    found = masked_regions(np.random.default_rng(0), 5, 3, 2, seed=0)
    for s0 in (1, 2, 3):
        assert np.all(found[:, s0 - 1, 0] == liu2021_regions(5, s0))
        assert np.all(found[:, s0 - 1, 1] == liu2021_central_regions_maximum(5, s0))
    assert np.all(found[..., 2] <= found[..., 0])


def test_cold_softmax_has_one_input_and_as_many_regions_as_units():
    found = softmax_regions(np.random.default_rng(0), 4, 3, 3, [1e-3, 1e3], points=5000)
    np.testing.assert_allclose(found.support, np.tile([1.0, 3.0], (3, 1)), rtol=1e-2)
    assert np.all(found.met[:, 0] <= 5)
    assert np.all(found.met <= liu2021_regions(4, 3))


def test_sharper_logits_concentrate_and_training_learns():
    training = {"step_size": 0.3, "steps": 300}
    states = [(0, 1.0), (1, 1.0), (1, 5.0)]
    found = trained_regions(np.random.default_rng(0), 4, 3, 32, training, states, 2, 1000)
    assert found.support[2] < found.support[1]
    assert found.loss[1] < found.loss[0]
    assert np.all(found.met <= found.exact)


def test_marks_and_labels():
    x, y = marked_words(np.random.default_rng(1), 200, 3)
    assert x.shape == (200, 3, 3)
    assert set(y.tolist()) == {-1.0, 1.0}
    assert set(x[:, 1].argmax(axis=1).tolist()) == {0, 1, 2}
    assert (np.abs(x[:, 0]) == 1).all()
    assert (np.abs(x[:, 2]) <= 1).all()
    with pytest.raises(UserError, match="n = 0"):
        marked_words(np.random.default_rng(1), 0, 3)
