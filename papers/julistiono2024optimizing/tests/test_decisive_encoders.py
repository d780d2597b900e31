"""Attention, accuracies and weights of encoders on digits whose decisive row is known."""

import jax
import numpy as np
import optax
import pytest

from attlas.core.solution import Result
from julistiono2024optimizing.library.training import decisive_encoders
from julistiono2024optimizing.library.training.decisive_encoders import train_decisive_encoders
from julistiono2024optimizing.library.training.decisive_tokens import digit_rows

SHAPE = {
    "vocabulary": 8, "length": 8, "width": 4, "blocks": 1, "heads": 1, "hidden": 4,
    "dtype": np.dtype("float32"),
}  # fmt: skip
EDGES = np.array([-6.0, -3.0, 1.0])


def trained():
    keys = jax.random.split(jax.random.key(0), 2)
    return train_decisive_encoders(
        digit_rows(), SHAPE, optax.sgd(0.01), keys, 50, 2, 0.995, EDGES, quick_compile=True
    )


@pytest.fixture(scope="module")
def found():
    return trained()


@pytest.mark.thorough
def test_attention_on_the_decisive_row_is_that_of_its_place(found):
    # Shares of a row add up to one; float32 sums of eight numbers.
    assert np.allclose(found.by_place.sum(axis=1), 1, atol=16 * np.finfo("f4").eps)
    assert np.allclose(found.decisive.mean(axis=1), found.by_place[:, 5], rtol=1e-5)
    np.testing.assert_array_equal(found.uniform, 1 / 8)


def test_the_selected_epoch_is_the_best_on_validation(found):
    assert np.array_equal(found.curves["validation"].argmax(axis=1), found.selected_epoch)
    test, members = found.curves["test"], np.arange(2)
    np.testing.assert_array_equal(found.accuracy[0], test[members, found.selected_epoch])
    np.testing.assert_array_equal(found.accuracy[2], test.max(axis=1))
    assert found.epochs.tolist() == [2, 2]


def test_all_weights_are_counted_before_and_after(found):
    for counts in (found.weights, found.weights_start):
        np.testing.assert_array_equal(counts.sum(axis=2), np.full((3, 2), 16))
    assert found.weights_near_zero.shape == found.weights_start_near_zero.shape == (3, 2)


def test_members_that_diverged_have_no_numbers(monkeypatch):
    train = decisive_encoders.train_classifiers

    def diverging(*given, **options):
        path = train(*given, **options)
        object.__setattr__(path, "result", np.array([0, Result.NOT_FINITE.value]))
        return path

    monkeypatch.setattr(decisive_encoders, "train_classifiers", diverging)
    broken = trained()
    assert broken.diverged.tolist() == [False, True]
    for values in (broken.accuracy.T, broken.decisive, broken.by_place):
        assert np.isnan(values[1]).all()
        assert np.isfinite(values[0]).all()
