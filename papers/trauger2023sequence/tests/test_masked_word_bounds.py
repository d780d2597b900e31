"""Bounds on trained models of masked words: the entries of the comparison, and the contraction."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.comparison import Comparison, Entry
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from trauger2023sequence.library.data.masked_words import MaskedWords, load_masked_words
from trauger2023sequence.library.models.transformer import Layer, Transformer
from trauger2023sequence.library.training import masked_word_bounds as masked_word_bounds_module
from trauger2023sequence.library.training.masked_word_bounds import (
    COVERS,
    masked_tokens,
    masked_word_bounds,
    masked_word_weights,
    one_score_gaps,
)
from trauger2023sequence.library.training.masked_words import (
    MaskedWordModel,
    MaskedWordSettings,
    make_word_inputs,
    train_masked_words,
)


def test_contraction_is_that_of_the_compared_complexity():
    draw = np.random.default_rng(0)
    kernels = [0.02 * draw.normal(size=(4, 4)) for _ in range(3)]
    weights = TransformerWeights(((Head(*kernels),),), 0.1 * draw.normal(size=(3, 4)))
    X, m = draw.normal(size=(5, 2, 4)) / 4, 10**7
    found = one_score_gaps(weights, X, np.array([float(m)]), 3, 0.05)[0]
    row = weights.readout[np.linalg.norm(weights.readout, axis=1).argmax()]
    table = {
        e.name: e.rademacher
        for e in compare_bounds(weights._replace(readout=row), X, m, 0.05).entries
    }
    tail = 3 * 2 * np.log(3) * np.sqrt(np.log(2 / 0.05) / (2 * m))
    assert table["1,1 sharp"] < 0.99 * table["trivial"]  # not the cut-off value
    assert found[0] == pytest.approx(2 * 2 * np.sqrt(3) * table["1,1 corrected"] + tail, rel=2e-3)
    # the threshold by which the entropy is reported has four digits
    assert found[1] == pytest.approx(2 * 2 * 3 * table["1,1 sharp"] + tail, rel=2e-3)
    # The error probability enters the last term alone, which it makes ten times larger.
    likely = one_score_gaps(weights, X, np.array([float(m)]), 3, 2 * 0.025**100)[0]
    np.testing.assert_allclose(likely - found, 9 * tail, rtol=1e-9)


def test_masks_stand_in_their_places():
    inputs = make_word_inputs(jax.random.key(0), 5, 3, 4)
    words, places = np.asarray(inputs.words, float), np.asarray(inputs.positions, float)
    data = MaskedWords(np.array([[0, 5, 2], [4, 1, 5]]), np.array([2, 0]), np.array([2, 4]))
    found = masked_tokens(inputs, data)
    for row, numbers in enumerate([[0, 5, 6], [6, 1, 5]]):
        for t, number in enumerate(numbers):
            np.testing.assert_allclose(found[row, t], 0.5 * (words[number] + places[t]))
    assert data.words.tolist() == [[0, 5, 2], [4, 1, 5]]


def test_bounds_are_laid_out_by_model_size_and_cover_and_cross_the_vacuous_loss(monkeypatch):
    """Bounds from one score fall like a root of m through 2 ln K at known sizes."""
    K, sizes, crossings = 7, np.array([1e2, 1e4, 1e6, 1e8]), np.array([3e3, 5e6])

    def compared(weights, X, m, delta, loss_range):
        assert loss_range == pytest.approx(np.log(K * K), rel=1e-14)
        first, zeros = weights.readout[0, 0], [0.0] * 5
        rows = [
            Entry(name, 0.0, first + k / m, 0.0, True, "", *zeros, "", lambda k=k: first * k, str)
            for k, name in enumerate([*COVERS, "trivial"])
        ]
        return Comparison(tuple(rows[::-1]), m, delta, 1.0)

    def scored(weights, X, samples, K, delta):
        assert weights.readout[0, 0] == 20.0
        return 2 * np.log(K) * np.sqrt(crossings / samples[:, None])

    monkeypatch.setattr(masked_word_bounds_module, "compare_bounds", compared)
    monkeypatch.setattr(masked_word_bounds_module, "one_score_gaps", scored)
    one = Layer(jnp.ones((1, 4, 4)), jnp.ones((1, 4, 2)), jnp.ones((1, 2, 4)))
    members = [MaskedWordModel(Transformer((one,)), w * jnp.ones((K, 4))) for w in (10, 20, 30)]
    models = jax.tree.map(lambda *parts: jnp.stack(parts), *members)
    found = masked_word_bounds(models, 1, np.ones((11, 2, 4)), sizes, K, 0.05)
    m, k = np.append(sizes, 11), np.arange(6)
    np.testing.assert_array_equal(found.samples, m)
    np.testing.assert_allclose(found.bound, 20 + k / m[:, None], rtol=1e-14)
    np.testing.assert_allclose(
        found.score_bound, scored(masked_word_weights(models, 1), 0, m, K, 0)
    )
    np.testing.assert_allclose(found.needed, np.outer([10.0, 20.0, 30.0], k))
    np.testing.assert_allclose(found.score_needed, crossings, rtol=1e-12)


@pytest.mark.thorough
def test_bounds_are_the_entries_of_the_comparison_and_fall_with_samples():
    K, m = 10, 60
    data = load_masked_words("generated", K, 6, m, 20)
    inputs = make_word_inputs(jax.random.key(0), K, 6, 8)
    settings = MaskedWordSettings(d=8, heads=1, k=4, steps=5, batch=8)
    decay = jnp.array([0.0, 0.1], "float32")
    models = train_masked_words(jax.random.key(1), data.train, inputs, decay, settings)
    X = masked_tokens(inputs, data.train)
    assert np.linalg.norm(X, axis=-1).max() <= 1 + 1e-6
    found = masked_word_bounds(models, 1, X, np.array([1e5, 1e15]), K, 0.05)
    assert found.samples.values.tolist() == [1e5, 1e15, m]
    entries = compare_bounds(
        masked_word_weights(models, 1), X, m, 0.05, loss_range=2 * np.log(K)
    ).entries
    gaps = {entry.name: entry.gap for entry in entries}
    for cover in COVERS:
        assert float(found.bound.sel(cover=cover, samples=m)) == pytest.approx(gaps[cover])
    assert np.all(found.bound.sel(samples=1e5) >= found.bound.sel(samples=1e15))
    assert np.all(found.score_bound.sel(samples=1e5) >= found.score_bound.sel(samples=1e15))
    needed = found.needed.isel(model=0)
    # each is found to a step of a search
    mixed, sharp, log_T = (
        float(needed.sel(cover=name)) for name in ("mixed sharp", "1,1 sharp", "log T sharp")
    )
    assert mixed <= 1.1 * min(sharp, log_T)
    assert needed.sel(cover="1,1 corrected") > sharp
