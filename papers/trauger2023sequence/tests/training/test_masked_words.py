import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attlas.core.errors import UserError
from trauger2023sequence.library.data.masked_words import MaskedWords
from trauger2023sequence.library.models.transformer import masked_word_readout
from trauger2023sequence.library.training.masked_words import (
    MaskedWordSettings,
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


def test_nothing_to_train_is_refused(copies):
    inputs = make_word_inputs(jax.random.key(0), K, T, D)
    with pytest.raises(UserError, match="must be at least 1"):
        train_masked_words(
            jax.random.key(1), copies, inputs, jnp.zeros(1), MaskedWordSettings(steps=0)
        )
