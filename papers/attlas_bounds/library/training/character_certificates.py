"""A small language model of characters, in few bits, certified along the stream it was trained on.

Weights are on a grid within training, so that a model is a list of whole numbers with a prior that
was fixed before the stream. The bound is that of `token_bound`: characters of a text are not
independent, and need not be.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Int8, Key

from attlas._jax.generator import generator
from attlas.bounds.generalisation.token_bound import token_bound
from attlas.training.fit import fit
from attlas_bounds.library.bounds.whole_number_prior import whole_number_bits
from attlas_bounds.library.data.character_stream import ALPHABET
from attlas_bounds.library.models.character_attention import (
    CharacterAttention,
    make_character_attention,
)
from attlas_bounds.library.training.weight_grid import rounded_weights, straight_through

BLOCK = 1 << 13
"""Characters that are evaluated at once."""


class CharacterSize(NamedTuple):
    """What is chosen of a model before any text is read.

    Attributes:
        width: of a token.
        heads: of attention.
        context: characters that are seen.
        hidden: rectified units.
    """

    width: int
    heads: int
    context: int
    hidden: int


class CharacterDescent(NamedTuple):
    """How a model is trained.

    Attributes:
        steps: of Adam.
        batch: characters per step, drawn with replacement.
        rate: largest learning rate; it rises over the first tenth and falls along a cosine.
        spacing: of the grid of the weights.
        free: share of the steps before they are rounded.
    """

    steps: int
    batch: int
    rate: float
    spacing: float
    free: float = 0.6


class CharacterCertificate(NamedTuple):
    """Bits per character.

    Attributes:
        certified: bound along the stream, of the prediction mixed with the uniform law.
        smoothed: what that prediction needs on the stream itself.
        train: what the model needs on the stream.
        held_out: what it needs on other texts.
        uniform: what the uniform law needs.
        bits: of the model, with what the choices cost.
        parameters: numbers in the model.
    """

    certified: float
    smoothed: float
    train: float
    held_out: float
    uniform: float
    bits: int
    parameters: int


def windows(
    stream: Int8[Array, " n"], places: Int[Array, " b"], context: int
) -> Int8[Array, "b C"]:
    """The characters before some places, the last one first; spaces before the beginning.

    Args:
        stream: characters.
        places: numbers of those that are predicted.
        context: C.

    Returns:
        The characters.

    Examples:
        >>> windows(jnp.array([5, 6, 7], jnp.int8), jnp.array([0, 2]), 2).tolist()
        [[0, 0], [6, 5]]
    """
    back = places[:, None] - 1 - jnp.arange(context, dtype=places.dtype)[None]
    return jnp.where(back >= 0, stream[jnp.maximum(back, 0)], 0).astype(jnp.int8)


def _nats(model: CharacterAttention, stream: Array, places: Array) -> Array:
    logits = jax.vmap(model)(windows(stream, places, model.ages.shape[1]))
    return optax.softmax_cross_entropy_with_integer_labels(logits, stream[places].astype(int))


def _loss(model: CharacterAttention, stream: Array, batch: tuple[Array, Array]) -> Array:
    places, spacing = batch
    return jnp.mean(_nats(straight_through(model, spacing), stream, places))


@jax.jit
def _block(model: CharacterAttention, stream: Array, start: Array) -> Array:
    """Probabilities of the characters of one block; beyond the end those of the last one."""
    places = jnp.minimum(start + jnp.arange(BLOCK, dtype=start.dtype), stream.shape[0] - 1)
    return jnp.exp(-_nats(model, stream, places))


def train_characters(
    key: Key[Array, ""],
    stream: Int8[np.ndarray, " N"],
    n: int,
    size: CharacterSize,
    descent: CharacterDescent,
) -> CharacterAttention:
    """Train on the beginning of a stream, on a grid towards the end.

    Args:
        key: of start and batches.
        stream: characters.
        n: those of the beginning that are read.
        size: of the model.
        descent: how.

    Returns:
        The weights before the last rounding.

    Examples:
        >>> stream, size = np.zeros(50, np.int8), CharacterSize(2, 1, 3, 2)
        >>> descent = CharacterDescent(steps=3, batch=4, rate=0.1, spacing=1.0)
        >>> found = train_characters(jax.random.key(0), stream, 50, size, descent)
        >>> found.ages.shape
        (1, 3)
    """
    own, order = jax.random.split(key)
    model = make_character_attention(own, len(ALPHABET), *size)
    shape = descent.steps, descent.batch
    places = generator(order).integers(0, n, shape, np.int32)
    rounded = np.arange(descent.steps) >= descent.free * descent.steps
    grid = np.where(rounded, np.float32(descent.spacing), np.float32(0))
    rate = optax.cosine_onecycle_schedule(descent.steps, descent.rate, 0.1)
    path = fit(
        _loss, optax.adam(rate), model, jnp.asarray(stream), record_at=[descent.steps],
        batches=(jnp.asarray(places), jnp.asarray(grid)), keep=False,
    )  # fmt: skip
    return path.last


def certify_characters(
    model: CharacterAttention,
    stream: Int8[np.ndarray, " N"],
    n: int,
    held_out: Int8[np.ndarray, " m"],
    spacing: float,
    choices: int,
    delta: float,
) -> CharacterCertificate:
    """The certificate of one model on a grid.

    Args:
        model: any weights.
        stream: characters.
        n: those of the beginning that it was trained on.
        held_out: those of other texts.
        spacing: of the grid.
        choices: sizes and starts among which the model may be picked.
        delta: probability that the bound of one of them fails.

    Returns:
        The certificate.

    Examples:
        >>> model = make_character_attention(jax.random.key(0), 27, 2, 1, 3, 2)
        >>> nine, zero = np.zeros(9, np.int8), jax.tree.map(jnp.zeros_like, model)
        >>> found = certify_characters(zero, nine, 9, nine, 1.0, 1, 0.1)
        >>> f"{found.train:.3f} {found.uniform:.3f}", found.certified >= found.uniform
        ('4.755 4.755', True)
    """
    on_grid, numbers = rounded_weights(model, spacing)
    own = _certain(on_grid, stream, n)
    other = _certain(on_grid, held_out, len(held_out))
    bits = whole_number_bits(numbers) + math.ceil(math.log2(choices))
    bound = token_bound(own, len(ALPHABET), bits, delta)
    return CharacterCertificate(
        certified=bound.bound,
        smoothed=bound.empirical,
        train=float(-np.mean(np.log2(own))),
        held_out=float(-np.mean(np.log2(other))),
        uniform=float(bound.trivial),
        bits=bits,
        parameters=numbers.size,
    )


def _certain(model: CharacterAttention, stream: np.ndarray, n: int) -> Float[np.ndarray, " n"]:
    """Probabilities of the characters that came; one that underflows is the least float."""
    whole = jnp.asarray(stream)
    blocks = [_block(model, whole, jnp.asarray(start)) for start in range(0, n, BLOCK)]
    p = np.concatenate([np.asarray(block, float) for block in blocks])[:n]
    return np.clip(p, np.finfo(np.float32).tiny, 1.0)
