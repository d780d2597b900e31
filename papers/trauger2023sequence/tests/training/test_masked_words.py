from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas._jax.device_arrays import generator
from attlas.core.errors import UserError
from trauger2023sequence.library.data.masked_words import MaskedWords
from trauger2023sequence.library.models.transformer import masked_word_readout
from trauger2023sequence.library.training.masked_words import (
    MaskedWordSettings,
    _start,
    make_word_inputs,
    masked_word_losses,
    train_masked_words,
)

K, T, D = 4, 3, 8
SETTINGS = MaskedWordSettings(d=D, heads=1, k=8, steps=400, batch=16, rate=0.02)


@pytest.fixture(scope="module")
def copies():
    """The masked word, always the last, is the first one."""
    draw = np.random.default_rng(0)
    words = draw.integers(0, K, (64, T)).astype(np.int32)
    words[:, 2] = words[:, 0]
    return MaskedWords(words, np.full(64, 2, np.int32), words[:, 2])


@pytest.fixture(scope="module")
def trained(copies):
    inputs = make_word_inputs(jax.random.key(0), K, T, D, "float64")
    decay = jnp.array([0.0, 2.0])
    return inputs, train_masked_words(jax.random.key(1), copies, inputs, decay, SETTINGS)


@pytest.mark.thorough
def test_a_word_that_another_tells_is_learnt(copies, trained):
    inputs, models = trained
    loss, right = masked_word_losses(models, inputs, copies, 10.0)
    assert float(right[0].mean()) == 1.0
    assert float(loss[0].mean()) < 0.1 * np.log(K)


def test_decay_makes_weights_smaller_and_losses_larger(copies, trained):
    inputs, models = trained
    size = np.linalg.norm(np.asarray(models.readout), axis=(1, 2))
    loss = np.asarray(masked_word_losses(models, inputs, copies, 10.0)[0]).mean(axis=1)
    assert size[1] < size[0]
    assert loss[1] > loss[0]


@pytest.mark.thorough
def test_losses_are_clipped_cross_entropies_of_the_library_readout(copies, trained):
    inputs, models = trained
    member = jax.tree.map(lambda a: a[0], models)
    scores = masked_word_readout(
        member.transformer, member.readout, inputs.mask(jnp.asarray(2)),
        inputs(jnp.asarray(copies.words[5])), 2,
    )  # fmt: skip
    plain = jax.nn.logsumexp(scores) - scores[copies.targets[5]]
    ceiling = 0.5 * float(plain)
    full = float(masked_word_losses(models, inputs, copies, 10.0)[0][0, 5])
    cut = float(masked_word_losses(models, inputs, copies, ceiling)[0][0, 5])
    assert full == pytest.approx(float(plain), rel=1e-9, abs=1e-12)
    assert cut == pytest.approx(ceiling, rel=1e-12)


def test_the_word_behind_the_mask_is_not_read(copies, trained):
    inputs, models = trained
    other = copies.words.copy()
    other[:, 2] = 0
    hidden = MaskedWords(other, copies.positions, copies.targets)
    losses = [masked_word_losses(models, inputs, part, 10.0)[0] for part in (copies, hidden)]
    np.testing.assert_array_equal(*losses)


def plain_scores(inputs, layers, readout, words, position):
    """Section 5 with loops over layers and heads, weights of tokens averaged."""

    def on_ball(rows):
        return rows / jnp.sqrt(jnp.maximum(1.0, jnp.sum(rows**2, axis=1)))[:, None]

    X = (inputs.words[words] + inputs.positions) / 2
    X = X.at[position].set((inputs.words[-1] + inputs.positions[position]) / 2)
    for query_key, value, output in layers:
        total = jnp.zeros_like(X)
        for W, V, C in zip(query_key, value, output, strict=True):
            mixed = jax.nn.softmax(X @ W @ X.T, axis=1) @ X @ V
            total = total + jnp.maximum(on_ball(mixed), 0) @ C
        X = on_ball(total)
    return readout @ X[position]


WORDS = MaskedWords(
    np.array([[0, 5, 2], [4, 1, 5], [3, 3, 0], [5, 2, 1]], np.int32),
    np.array([2, 0, 1, 1], np.int32),
    np.array([2, 4, 3, 2], np.int32),
)
SMALL = MaskedWordSettings(d=4, heads=2, k=3, layers=2, steps=2, batch=3, rate=0.05)


def test_inputs_are_the_normalised_normal_rows_of_the_key():
    inputs = make_word_inputs(jax.random.key(4), 5, 3, 4, "float64")
    rows = generator(jax.random.key(4)).normal(size=(10, 4))
    rows /= np.sqrt((rows**2).sum(axis=1))[:, None]
    np.testing.assert_allclose(inputs.words, rows[:7], rtol=1e-14)
    np.testing.assert_allclose(inputs.positions, rows[7:], rtol=1e-14)


@pytest.mark.thorough
def test_two_steps_are_those_of_adam_with_the_decay_beside_it():
    """Gradients of the plain loss by autodiff, and Adam's formulas in NumPy."""
    inputs, decay = make_word_inputs(jax.random.key(0), 5, 3, 4, "float64"), [0.0, 0.7]
    models = train_masked_words(jax.random.key(2), WORDS, inputs, jnp.array(decay), SMALL)
    draw = generator(jax.random.key(2))
    start = []
    for _ in range(2):
        for size, shape in ((1 / 2, (2, 4, 4)), (1 / 2, (2, 4, 3)), (3**-0.5, (2, 3, 4))):
            start.append(size * draw.normal(size=shape))
    start.append(0.5 * draw.normal(size=(5, 4)))
    batches = draw.integers(0, 4, (2, 3))

    @jax.jit
    def slopes(weights, words, positions, targets):
        def risk(weights):
            scores = jax.vmap(
                lambda row, position: plain_scores(
                    inputs, [weights[:3], weights[3:6]], weights[6], row, position
                )
            )(words, positions)
            true = scores[jnp.arange(3), targets]
            return jnp.mean(jnp.log(jnp.sum(jnp.exp(scores), axis=1)) - true)

        return jax.grad(risk)(weights)

    for member, strength in enumerate(decay):
        weights, first, second = list(start), [0.0] * 7, [0.0] * 7
        for step, rows in enumerate(batches, 1):
            gradients = slopes(weights, *(part[rows] for part in WORDS))
            for k, g in enumerate(map(np.asarray, gradients)):
                first[k] = 0.9 * first[k] + 0.1 * g
                second[k] = 0.999 * second[k] + 0.001 * g**2
                size = np.sqrt(second[k] / (1 - 0.999**step)) + 1e-8
                move = first[k] / (1 - 0.9**step) / size
                weights[k] = weights[k] - 0.05 * move - 0.05 * strength * weights[k]
        found = [leaf[member] for leaf in jax.tree.leaves(models)]
        # two steps of 0.05 that are quotients of gradients of some hundred roundings
        for mine, theirs in zip(found, weights, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-9)


def test_losses_are_clipped_cross_entropies_of_the_plain_scores():
    inputs = make_word_inputs(jax.random.key(0), 5, 3, 4, "float64")
    members = [_start(np.random.default_rng(seed), SMALL, inputs) for seed in (3, 4)]
    models = jax.tree.map(lambda *parts: 3 * jnp.stack(parts), *members)
    loss, right = masked_word_losses(models, inputs, WORDS, 1.9)
    expected = np.zeros((2, 4, 2))
    for member in range(2):
        leaves = [leaf[member] for leaf in jax.tree.leaves(models)]
        scores_of = jax.jit(partial(plain_scores, inputs, [leaves[:3], leaves[3:6]], leaves[6]))
        for row, (words, position, target) in enumerate(zip(*WORDS, strict=True)):
            scores = np.asarray(scores_of(words, position))
            expected[member, row] = (
                min(1.9, np.log(np.exp(scores).sum()) - scores[target]),
                scores.argmax() == target,
            )
    np.testing.assert_allclose(loss, expected[..., 0], rtol=1e-11)
    np.testing.assert_array_equal(right, expected[..., 1])
    assert 0 < right.mean() < 1
    assert 0 < (loss == 1.9).mean() < 1


def test_nothing_to_train_is_refused(copies):
    inputs = make_word_inputs(jax.random.key(0), K, T, D)
    with pytest.raises(UserError, match="must be at least 1"):
        train_masked_words(
            jax.random.key(1), copies, inputs, jnp.zeros(1), MaskedWordSettings(steps=0)
        )
