r"""Pairs of normalised layers and networks that differ by an error, for Lemmas E.2 and E.3.

from attlas._jax.compilation import CHEAP_COMPILATION
Half of the pairs are random; the others come close to the constants. In the close ones tokens are
e_3 (whose row is read) and copies of e_2 and -e_2, and keys and query move together along e_1, so
that both ends of the logits of W_QK = q (e_3 e_1' + e_1 e_2') act in the same sense. Networks have
two layers of two heads; in the close ones the first layer copies its tokens (attention so sharp
that each token sees itself), an error in its W_v turns them, and the second is the close layer.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas._jax.compilation import CHEAP_COMPILATION
from attlas.claims.sampling import six_decades
from trauger2023sequence.library.models.transformer import (
    Layer,
    Transformer,
    masked_word_readout,
    pi_norm,
    scalar_readout,
)

TOKENS, WIDTH = 5, 3
# The longest path: two layers of a softmax over 5 tokens, products of 3 x 3 with vectors and
# norms; singular values and exponentials count with their sizes, which `magnitude` carries.
ROUNDINGS = 256


class Weights(NamedTuple):
    """The matrices of the heads of one layer."""

    query_key: Float[Array, "H d d"]
    value: Float[Array, "H d k"]
    output: Float[Array, "H k d"]


def stretched(rows: Array, lipschitz: Array, slope: Array) -> Array:
    """The activation: L_sigma times a leaky ReLU, Lipschitz with L_sigma, 0 at 0."""
    return lipschitz * jnp.where(rows > 0, rows, slope * rows)


def hidden(weights: Weights, rows: Array, lipschitz: Array, slope: Array) -> Array:
    """sigma(Pi_norm(f_h(g))), the rows that W_c of each head sees."""
    logits = jnp.einsum("sd,hde,te->hst", rows, weights.query_key, rows)
    law = jnp.exp(logits - jnp.max(logits, axis=-1, keepdims=True))
    law = law / jnp.sum(law, axis=-1, keepdims=True)
    mixed = jnp.einsum("hst,td,hdk->hsk", law, rows, weights.value)
    return stretched(pi_norm(mixed), lipschitz, slope)


def layer(weights: Weights, rows: Array, lipschitz: Array, slope: Array) -> Array:
    """The layer itself, as the model computes it."""
    return Layer(*weights, activation=lambda x: stretched(x, lipschitz, slope))(rows, rows)


def longest(rows: Array) -> Array:
    """Largest Euclidean norm of a row, over all but the last axis."""
    # the small number keeps the derivative at rows that are 0 finite
    return jnp.sqrt(jnp.max(jnp.sum(rows**2, axis=-1)) + 1e-300)


def spectral(matrices: Array) -> Array:
    """Largest singular values."""
    return jnp.linalg.svd(matrices, compute_uv=False)[..., 0]


def close_rows(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens e_3, +-e_2 and how far each moves along e_1."""
    rows = np.zeros((count, TOKENS, WIDTH))
    rows[:, 0, 2] = 1
    rows[:, 1:, 1] = np.resize([1.0, -1.0], TOKENS - 1)
    move = np.zeros_like(rows)
    move[..., 0] = np.where(rows.sum(-1) > 0, 1.0, -1.0)
    return rows, move * 10.0 ** rng.uniform(-6, -4, (count, 1, 1))


def close_query_key(size: np.ndarray) -> np.ndarray:
    """Q (e_3 e_1' + e_1 e_2')."""
    pattern = np.zeros((WIDTH, WIDTH))
    pattern[2, 0] = pattern[0, 1] = 1
    return size[..., None, None] * pattern


def in_ball(rows: np.ndarray, radius: float | np.ndarray = 1.0) -> np.ndarray:
    """Rows projected on a ball, on the host."""
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.maximum(1, length / radius)


def random_matrices(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Gaussian matrices whose sizes range over two decades from one instance to the next."""
    size = 10.0 ** rng.uniform(-1.2, 0.8, (shape[0], *(1,) * (len(shape) - 1)))
    return size * rng.normal(size=shape)


def with_errors(rng, shapes, least=-4.0):
    """Matrices, and hatted ones off by an error of a size of its own, so that every term leads.

    W_QK, and with it the logits, spans six decades.
    """
    batch = {}
    for name, shape in shapes.items():
        matrix = random_matrices(rng, shape)
        if name == "query_key":
            # The others are bounded by what follows them: a projection, or the claim's magnitude.
            matrix = matrix * six_decades(rng, (shape[0], *(1,) * (len(shape) - 1)), -0.1, 0.1)
        error = 10.0 ** rng.uniform(least, -0.5, (*shape[:-2], 1, 1)) * rng.normal(size=shape)
        batch |= {name: matrix, f"{name}_hat": matrix + error}
    return batch


def put(batch, place, pair):
    """Set one instance of a batch."""
    for name, value in pair.items():
        batch[name][place] = value


def weights_of(instance, hat="", place=None) -> Weights:
    """The weights of a layer, with a hat or without; `place` is its index among several."""
    matrices = [instance[f"{name}{hat}"] for name in Weights._fields]
    return Weights(*(part if place is None else part[place] for part in matrices))


LAYERS, HEADS, WORDS = 2, 2, 4
KINDS = ("output", "value", "query_key")


def _close(rng):
    """One pair that nearly attains alpha_1; second heads are zero."""
    rows, move = (part[0] for part in close_rows(rng, 1))
    step = np.abs(move).max()
    first, second = 60.0 * np.eye(WIDTH), close_query_key(10.0 ** rng.uniform(0.5, 2, 1))[0]
    eye = np.eye(WIDTH)
    # rows e_3, e_2, -e_2 move by +, +, - the step along e_1
    turn = np.zeros((WIDTH, WIDTH))
    turn[1:, 0] = step
    weights = {"query_key": (first, second), "value": (eye, eye), "output": (eye, eye)}
    pair = {}
    for name, layers in weights.items():
        pair[name] = np.zeros((LAYERS, HEADS, WIDTH, WIDTH))
        pair[name][:, 0] = layers
        pair[f"{name}_hat"] = pair[name].copy()
    pair["value_hat"][0, 0] += turn
    readout = np.zeros((WORDS, WIDTH))
    readout[:, 1] = np.where(np.arange(WORDS) == 0, 1.0, -1.0)
    pair |= {"X": rows, "readout": readout, "readout_hat": readout}
    return pair | {"slope": np.ones(()), "lipschitz": np.ones(())}


def _batch(rng, count, longer):
    size = 10.0 ** rng.uniform(-0.5, 0.7 if longer else 0.0, (count, 1, 1))
    X = rng.normal(size=(count, TOKENS, WIDTH))
    X *= size / np.linalg.norm(X, axis=-1, keepdims=True).max(axis=1, keepdims=True)
    batch = {
        "X": X,
        "slope": rng.uniform(0, 1, count),
        "lipschitz": rng.uniform(0.3, 3.0 if longer else 1.0, count),
    }
    shape = (count, LAYERS, HEADS, WIDTH, WIDTH)
    shapes = dict.fromkeys(KINDS, shape) | {"readout": (count, WORDS, WIDTH)}
    batch |= with_errors(rng, shapes, -5.0)
    for place in range(1, count, 2):
        put(batch, place, _close(rng))
    return batch


def one_head(instance):
    """The same networks with their first heads alone."""
    names = [f"{name}{hat}" for name in KINDS for hat in ("", "_hat")]
    return {**instance, **{name: instance[name][:, :1] for name in names}}


def _model(instance, hat):
    def activation(rows: Array) -> Array:
        return stretched(rows, instance["lipschitz"], instance["slope"])

    layers = (weights_of(instance, hat, place) for place in range(LAYERS))
    return Transformer(tuple(Layer(*matrices, activation=activation) for matrices in layers))


def outputs(instance, hat=""):
    """The scalar output, with the first row of the readout."""
    w = instance[f"readout{hat}"][0]
    return scalar_readout(_model(instance, hat), w, instance["X"])


def scores(instance, hat=""):
    """The scores of all words at the first token, which plays the mask."""
    W, X = instance[f"readout{hat}"], instance["X"]
    return masked_word_readout(_model(instance, hat), W, X[0], X, jnp.asarray(0))


def norms(instance, hat=""):
    """Spectral norms by kind, one per layer and head."""
    return {name: spectral(instance[f"{name}{hat}"]) for name in KINDS}


def resolutions(instance):
    r"""The errors that covers would have to meet, in the order of `trauger2023_parts`.

    max_t ||(W - W^)' x_t|| over the rows x_t that the hatted matrix sees.
    """
    X, errors = instance["X"], []
    for place in range(LAYERS):
        true, hat = (weights_of(instance, hat, place) for hat in ("", "_hat"))
        seen = hidden(hat, X, instance["lipschitz"], instance["slope"])
        for head in range(true.value.shape[0]):
            error = Weights(*(a[head] - b[head] for a, b in zip(true, hat, strict=True)))
            errors += [
                longest(seen[head] @ error.output),
                longest(X @ error.value),
                longest(X @ error.query_key),
            ]
        heads = jnp.einsum("htk,hkd->htd", seen, hat.output)
        X = heads.sum(0) / jnp.maximum(1.0, jnp.linalg.norm(heads.sum(0), axis=-1))[:, None]
    error = instance["readout"] - instance["readout_hat"]
    return [longest(error @ X[0][:, None]), *errors]


def _measure(instance):
    """What both networks give and the errors between them, with one head and with all."""
    single = one_head(instance)
    return {
        "moved": jnp.abs(outputs(instance) - outputs(instance, "_hat")),
        "moved_single": jnp.abs(outputs(single) - outputs(single, "_hat")),
        "resolutions": jnp.stack(resolutions(instance)),
        "resolutions_single": jnp.stack(resolutions(single)),
        "scores": scores(instance),
        "scores_hat": scores(instance, "_hat"),
    }


# one program for all claims: networks are what takes long to compile
_measure_all = jax.jit(jax.vmap(_measure), compiler_options=CHEAP_COMPILATION)


def networks(rng, count, longer=True):
    """Pairs of networks with what they give; tokens and L_sigma above 1 where asked.

    X, the weights of both networks, readouts of four words, the activation, the change of the
    output, the scores and the resolutions in the order of the parts.
    """
    batch = _batch(rng, count, longer)
    return {**batch, **_measure_all(batch)}


def magnitude(instance):
    """The size of what cancels in the difference of two outputs."""
    size = jnp.maximum(longest(instance["X"]), 1.0) ** 2
    logits = jnp.max(spectral(instance["query_key"])) * size
    return longest(instance["readout"]) * (1 + logits)
