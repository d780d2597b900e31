r"""Training of masked-word prediction: the network of section 5 of trauger2023sequence.

Inputs are fixed: a word and a position are random directions, x_t = (e_t + p_t) / 2, and the mask
is one more such word; what is trained are the layers and the readout, whose norms the bounds
measure.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.tree_util import Partial
from jaxtyping import Array, Float, Int, PRNGKeyArray

from attlas._jax.device_arrays import generator, on_device
from attlas.bounds.generalisation.trauger2023_masked import clipped_cross_entropy
from attlas.core.errors import UserError
from attlas.training.fit import Ensemble, fit
from trauger2023sequence.library.data.masked_words import MaskedWords
from trauger2023sequence.library.models.transformer import Layer, Transformer, masked_word_readout


class WordInputs(eqx.Module):
    """Fixed directions of K + 1 words, the mask last, and of T positions; rows of length one.

    Attributes:
        words: one row per word of the vocabulary, one for all others, one for the mask.
        positions: one row per position.
    """

    words: Float[Array, "K2 d"]
    positions: Float[Array, "T d"]

    def __call__(self, words: Int[Array, " T"]) -> Float[Array, "T d"]:
        """Tokens of one window, of Euclidean norm at most one."""
        return (self.words[words] + self.positions) / 2

    def mask(self, position: Int[Array, ""]) -> Float[Array, " d"]:
        """The vector that stands for the word at a position."""
        return (self.words[-1] + self.positions[position]) / 2


class MaskedWordModel(eqx.Module):
    """Layers and readout, all of it trained."""

    transformer: Transformer
    readout: Float[Array, "*e K d"]

    def __call__(
        self, inputs: WordInputs, words: Int[Array, " T"], position: Int[Array, ""]
    ) -> Float[Array, " K"]:
        """Scores of all words at a masked position."""
        X = inputs(words)
        return masked_word_readout(
            self.transformer, self.readout, inputs.mask(position), X, position
        )


class MaskedWordSettings(NamedTuple):
    """Settings of network and training.

    Attributes:
        d: dimension of the tokens.
        heads: H.
        k: width of a head's values.
        layers: L.
        steps: steps of Adam.
        batch: samples per step, drawn with replacement.
        rate: learning rate of Adam.
    """

    d: int = 32
    heads: int = 2
    k: int = 16
    layers: int = 1
    steps: int = 600
    batch: int = 64
    rate: float = 0.01


USUAL = MaskedWordSettings()


def make_word_inputs(
    key: PRNGKeyArray, K: int, T: int, d: int, dtype: str = "float32"
) -> WordInputs:
    """Random unit directions for words and positions.

    Examples:
        >>> inputs = make_word_inputs(jax.random.key(0), 5, 3, 8)
        >>> inputs.words.shape, bool(jnp.linalg.norm(inputs(jnp.array([0, 5, 2]))[0]) <= 1)
        ((7, 8), True)
    """
    rows = generator(key).normal(size=(K + 2 + T, d))
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(dtype)
    return WordInputs(jnp.asarray(rows[: K + 2]), jnp.asarray(rows[K + 2 :]))


def train_masked_words(
    key: PRNGKeyArray,
    data: MaskedWords,
    inputs: WordInputs,
    decay: Float[Array, " e"],
    settings: MaskedWordSettings = USUAL,
) -> MaskedWordModel:
    r"""Train one model for each weight decay, from one start on the same batches.

    Args:
        decay: decoupled weight decay of each model.

    Examples:
        >>> data = MaskedWords(np.array([[0, 1]]), np.array([1]), np.array([1]))
        >>> inputs = make_word_inputs(jax.random.key(0), 2, 2, 4)
        >>> settings = MaskedWordSettings(d=4, heads=1, k=2, steps=30, batch=1, rate=0.1)
        >>> result = train_masked_words(jax.random.key(1), data, inputs, jnp.zeros(1), settings)
        >>> float(masked_word_losses(result, inputs, data, 5.0)[0].mean()) < 0.1
        True
    """
    if settings.steps < 1 or settings.batch < 1:
        raise UserError(
            f"steps = {settings.steps}, batch = {settings.batch}: both must be at least 1"
        )
    draw = generator(key)
    start = _start(draw, settings, inputs)
    rows = draw.integers(0, len(data.targets), (settings.steps, settings.batch)).astype(np.int32)
    strength = jnp.asarray(decay, inputs.words.dtype)
    return fit(
        _risk,
        Partial(_decayed_adam, settings.rate, strength),
        start,
        (inputs, _on_device(data)),
        record_at=(settings.steps,),
        batches=jnp.asarray(rows),
        ensemble=Ensemble(optimizer=Partial(_decayed_adam, False, True)),
    ).last


def _decayed_adam(rate: float, decay: Array) -> optax.GradientTransformation:
    """Adam with the decoupled decay rate * decay of every weight."""
    return optax.chain(optax.adam(rate), optax.add_decayed_weights(-rate * decay))


def masked_word_losses(
    models: MaskedWordModel, inputs: WordInputs, data: MaskedWords, ceiling: float
) -> tuple[Float[Array, "e n"], Float[Array, "e n"]]:
    r"""Clipped cross-entropies, and 1 where the true word has the largest score.

    Args:
        ceiling: M, the largest loss.

    Returns:
        Losses and correctness, by model and sample.

    Examples:
        >>> data = MaskedWords(np.array([[0, 1]]), np.array([1]), np.array([1]))
        >>> inputs = make_word_inputs(jax.random.key(0), 2, 2, 4)
        >>> settings = MaskedWordSettings(d=4, heads=1, k=2, steps=1, batch=1)
        >>> result = train_masked_words(jax.random.key(1), data, inputs, jnp.zeros(3), settings)
        >>> [a.shape for a in masked_word_losses(result, inputs, data, 5.0)]
        [(3, 1), (3, 1)]
    """
    return _losses(models, inputs, _on_device(data), jnp.asarray(ceiling, models.readout.dtype))


def _on_device(data: MaskedWords) -> Any:
    return jax.device_put(tuple(np.asarray(part, np.int32) for part in data))


def _start(draw: np.random.Generator, s: MaskedWordSettings, inputs: WordInputs) -> Any:
    """Normal weights of variance one over the inner dimension; attention nearly uniform."""
    dtype, K = inputs.words.dtype, inputs.words.shape[0] - 2

    def normal(size: float, *shape: int) -> Array:
        return on_device((size * draw.normal(size=shape)).astype(dtype))

    layers = tuple(
        Layer(
            normal(s.d**-0.5, s.heads, s.d, s.d),
            normal(s.d**-0.5, s.heads, s.d, s.k),
            normal(s.k**-0.5, s.heads, s.k, s.d),
        )
        for _ in range(s.layers)
    )
    return MaskedWordModel(Transformer(layers), normal(s.d**-0.5, K, s.d))


def _risk(model: MaskedWordModel, data: tuple[WordInputs, Any], batch: Array) -> Array:
    """Mean cross-entropy of some samples."""
    inputs, (words, positions, targets) = data
    scores = jax.vmap(model, in_axes=(None, 0, 0))(inputs, words[batch], positions[batch])
    true = jnp.take_along_axis(scores, targets[batch][:, None], axis=1)[:, 0]
    return jnp.mean(jax.nn.logsumexp(scores, axis=1) - true)


@jax.jit
def _losses(models: Any, inputs: WordInputs, data: Any, ceiling: Array) -> tuple[Array, Array]:
    """By model and sample."""

    def loss_and_accuracy(model: MaskedWordModel, row: Any) -> tuple[Array, Array]:
        words, position, target = row
        scores = model(inputs, words, position)
        right = (jnp.argmax(scores).astype(target.dtype) == target).astype(scores.dtype)
        return clipped_cross_entropy(scores, target, ceiling), right

    rows = jax.vmap(loss_and_accuracy, in_axes=(None, 0))
    return jax.vmap(rows, in_axes=(0, None))(models, data)
