"""Attention, accuracies and weights of encoders on digits whose decisive row is known."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attlas.core.errors import UserError
from attlas.core.solution import Result
from attlas.data.token_sequences import TokenSequences
from attlas.models.networks.encoder import make_encoder
from julistiono2024optimizing.library.training import decisive_encoders
from julistiono2024optimizing.library.training.decisive_encoders import (
    attention_weights,
    readout_attention,
    train_decisive_encoders,
    weight_sizes,
)
from julistiono2024optimizing.library.training.decisive_tokens import digit_tokens


def test_sizes_are_counted_by_member_and_the_outer_bins_hold_the_rest():
    weights = np.array([[[1e-9, -0.5], [0.05, 3.0]], [[0.2, 0.2], [-0.2, 0.0005]]])
    found = weight_sizes(weights, np.array([-3.0, -1.0, 0.0]))
    assert found.counts.tolist() == [[2, 2], [1, 3]]
    assert found.near_zero.tolist() == [0.25, 0.25]
    # a weight at the threshold is not below it
    assert weight_sizes(weights, np.array([-3.0, 0.0]), 0.2).near_zero.tolist() == [0.5, 0.25]


def test_edges_that_do_not_increase_are_refused():
    with pytest.raises(UserError, match="increase"):
        weight_sizes(np.ones((1, 2)), np.array([0.0, 0.0]))


def encoders(blocks):
    def make(key):
        return make_encoder(key, 5, 4, width=8, blocks=blocks, heads=2, hidden=8)

    return jax.vmap(make)(jax.random.split(jax.random.key(0), 3))


def test_shares_are_those_of_the_last_block_without_the_readout():
    models, rng = encoders(2), np.random.default_rng(0)
    mask = np.array([[True] * 4, [True, True, False, False]])
    data = TokenSequences(rng.integers(0, 5, (2, 4)), mask, np.zeros(2))
    share = readout_attention(models, data)
    assert share.shape == (3, 2, 4)
    assert np.all(share[:, 1, 2:] == 0)  # padding
    second = jax.tree.map(lambda a: a[1], models)
    attention = eqx.filter_jit(lambda model, *given: model.attention(*given)[-1])
    heads = np.asarray(attention(second, jnp.asarray(data.tokens[0]), jnp.asarray(mask[0])))[:, 0]
    mean = heads.mean(axis=0)[1:]
    np.testing.assert_allclose(share[1, 0], mean / mean.sum(), rtol=1e-6)


def test_weights_are_those_of_the_blocks():
    models = encoders(3)
    found = attention_weights(models)
    assert list(found) == ["query", "key", "value"]
    assert np.array_equal(found["key"][2, 1], models.blocks[1].key[2])


SHAPE = {
    "vocabulary": 8, "length": 8, "width": 4, "blocks": 1, "heads": 1, "hidden": 4,
    "dtype": np.dtype("float32"),
}  # fmt: skip
EDGES = np.array([-6.0, -3.0, 1.0])


def trained():
    keys = jax.random.split(jax.random.key(0), 2)
    return train_decisive_encoders(
        digit_tokens(), SHAPE, optax.sgd(0.01), keys, 50, 2, 0.995, EDGES, quick_compile=True
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
