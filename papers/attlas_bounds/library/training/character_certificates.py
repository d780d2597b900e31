"""A small language model of characters, in few bits, certified along the stream it was trained on.

Weights are on a grid within training, so that a model is a list of whole numbers with a prior that
was fixed before the stream. The bound is that of `token_bound`: characters of a text are not
independent, and need not be.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Int8, Key, PRNGKeyArray

from attlas._jax.device_arrays import generator
from attlas.bounds.generalisation.token_bound import token_bound
from attlas.core.errors import UserError
from attlas.training.fit import fit
from attlas_bounds.library.bounds.whole_number_prior import whole_number_bits
from attlas_bounds.library.training.character_stream import ALPHABET
from attlas_bounds.library.training.weight_grid import rounded_weights, straight_through

BLOCK = 1 << 13
"""Characters that are evaluated at once."""


class CharacterAttention(eqx.Module):
    """Characters before a place to logits of the character there.

    Attributes:
        letters: embedding of each of V characters.
        keys: direction that raises the score of a token, by head.
        ages: scores of the places counted back, by head.
        up: matrix from the H averages into the rectified units.
        bias: biases of the rectified units.
        down: matrix from the rectified units to the logits.
        readout: biases of the logits.
    """

    letters: Float[Array, "V d"]
    keys: Float[Array, "H d"]
    ages: Float[Array, "H C"]
    up: Float[Array, "H d h"]
    bias: Float[Array, " h"]
    down: Float[Array, "h V"]
    readout: Float[Array, " V"]

    def __call__(self, before: Int8[Array, " C"]) -> Float[Array, " V"]:
        """Logits of the next character.

        Args:
            before: previous characters, the last one first.
        """
        x = self.letters[before]
        weight = jax.nn.softmax(self.keys @ x.T + self.ages, axis=1)
        hidden = jnp.einsum("hd,hdk->k", weight @ x, self.up) + self.bias
        return jax.nn.relu(hidden) @ self.down + self.readout


def make_character_attention(
    key: PRNGKeyArray, characters: int, width: int, heads: int, context: int, hidden: int
) -> CharacterAttention:
    """An untrained model, whose head h looks mostly at place h counted back.

    Args:
        width: d of a token.
        heads: H, at most the context.
        context: number C of characters that the model sees.
        hidden: h rectified units.

    Raises:
        UserError: for a size below 1, or more heads than places.

    Examples:
        >>> model = make_character_attention(jax.random.key(0), 27, 6, 4, 12, 16)
        >>> sum(a.size for a in jax.tree.leaves(model)), model(jnp.zeros(12, jnp.int8)).shape
        (1093, (27,))
    """
    if min(characters, width, heads, context, hidden) < 1 or heads > context:
        raise UserError(
            f"{characters} characters, width {width}, {heads} heads, context {context}, {hidden} "
            "units: each is at least 1, and there are no more heads than places"
        )
    letters, keys, up, down = jax.random.split(key, 4)
    return CharacterAttention(
        letters=jax.random.normal(letters, (characters, width)),
        keys=0.1 * jax.random.normal(keys, (heads, width)),
        ages=4.0 * jnp.eye(heads, context),
        up=jax.random.normal(up, (heads, width, hidden)) / (heads * width) ** 0.5,
        bias=jnp.zeros(hidden),
        down=jax.random.normal(down, (hidden, characters)) / hidden**0.5,
        readout=jnp.zeros(characters),
    )


class CharacterSize(NamedTuple):
    """Sizes of a model, fixed before any text is read.

    Attributes:
        width: dimension of a token.
        heads: number of attention heads.
        context: number of characters that the model sees.
        hidden: number of rectified units.
    """

    width: int
    heads: int
    context: int
    hidden: int


class CharacterDescent(NamedTuple):
    """Training of a model by Adam.

    Attributes:
        steps: steps of Adam.
        batch: characters per step, drawn with replacement.
        rate: largest learning rate; it rises over the first tenth and falls along a cosine.
        spacing: spacing of the weight grid.
        free: share of the steps before the weights are rounded.
    """

    steps: int
    batch: int
    rate: float
    spacing: float
    free: float = 0.6


@dataclass(frozen=True)
class CharacterCertificate:
    """Bits per character.

    Attributes:
        certified: bound along the stream for the prediction mixed with the uniform law.
        smoothed: bits of the mixed prediction on the stream.
        train: bits of the model on the stream.
        held_out: bits of the model on other texts.
        uniform: bits of the uniform law.
        bits: bits of the model, plus the cost of the choices.
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
        places: positions of the characters that are predicted.
        context: number C of characters that the model sees.

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
        n: number of leading characters that are read.
        descent: schedule and step size of the training.

    Returns:
        The weights before the last rounding.

    Examples:
        >>> stream, size = np.zeros(50, np.int8), CharacterSize(2, 1, 3, 2)
        >>> descent = CharacterDescent(steps=3, batch=4, rate=0.1, spacing=1.0)
        >>> found = train_characters(jax.random.key(0), stream, 50, size, descent)
        >>> found.ages.shape
        (1, 3)
    """
    start_key, order = jax.random.split(key)
    model = make_character_attention(start_key, len(ALPHABET), *size)
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
        n: number of leading characters that the model was trained on.
        held_out: characters of other texts.
        spacing: spacing of the weight grid.
        choices: sizes and starts among which the model may be picked.
        delta: probability that the bound of one of them fails.

    Examples:
        >>> model = make_character_attention(jax.random.key(0), 27, 2, 1, 3, 2)
        >>> nine, zero = np.zeros(9, np.int8), jax.tree.map(jnp.zeros_like, model)
        >>> found = certify_characters(zero, nine, 9, nine, 1.0, 1, 0.1)
        >>> f"{found.train:.3f} {found.uniform:.3f}", found.certified >= found.uniform
        ('4.755 4.755', True)
    """
    on_grid, numbers = rounded_weights(model, spacing)
    stream_probabilities = _certain(on_grid, stream, n)
    held_out_probabilities = _certain(on_grid, held_out, len(held_out))
    bits = whole_number_bits(numbers) + math.ceil(math.log2(choices))
    bound = token_bound(stream_probabilities, len(ALPHABET), bits, delta)
    return CharacterCertificate(
        certified=bound.bound,
        smoothed=bound.empirical,
        train=float(-np.mean(np.log2(stream_probabilities))),
        held_out=float(-np.mean(np.log2(held_out_probabilities))),
        uniform=float(bound.trivial),
        bits=bits,
        parameters=numbers.size,
    )


def _certain(model: CharacterAttention, stream: np.ndarray, n: int) -> Float[np.ndarray, " n"]:
    """Probabilities of the observed characters, at least the smallest normal float."""
    characters = jnp.asarray(stream)
    blocks = [_block(model, characters, jnp.asarray(start)) for start in range(0, n, BLOCK)]
    p = np.concatenate([np.asarray(block, float) for block in blocks])[:n]
    return np.clip(p, np.finfo(np.float32).tiny, 1.0)
