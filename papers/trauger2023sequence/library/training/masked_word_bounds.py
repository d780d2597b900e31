r"""Bounds of Theorem 5.1 of trauger2023sequence on trained models of masked words."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from attlas.bounds.comparison.compare import compare_bounds
from attlas.bounds.comparison.comparison import Entry
from attlas.bounds.comparison.network_cover import THRESHOLD
from attlas.bounds.comparison.transformer_weights import Head, TransformerWeights
from attlas.bounds.covering.dudley import dudley_chain, dudley_integral
from attlas.bounds.generalisation.generalisation_gap import generalisation_gap
from attlas.bounds.generalisation.trauger2023_masked import trauger2023_masked
from trauger2023sequence.library.data.masked_words import MaskedWords
from trauger2023sequence.library.measures.crossing import last_crossing
from trauger2023sequence.library.training.masked_words import MaskedWordModel, WordInputs

COVERS = ("1,1 corrected", "1,1 sharp", "2,1 sharp", "log T sharp", "mixed sharp", "parameters")
"""Entries of `compare_bounds` for losses covered through the scores of all words."""
FROM_ONE_SCORE = ("printed order", "contraction")
"""The complexity of one score times 2 sqrt(K), the paper's order, or 2 K, a bound."""


def masked_word_weights(models: MaskedWordModel, member: int) -> TransformerWeights:
    """The weights of one trained model, in double precision.

    Examples:
        >>> from trauger2023sequence.library.models.transformer import Layer, Transformer
        >>> layer = Layer(jnp.ones((1, 4, 4)), jnp.ones((1, 4, 2)), jnp.ones((1, 2, 4)))
        >>> one = MaskedWordModel(Transformer((layer,)), jnp.ones((5, 4)))
        >>> models = jax.tree.map(lambda a: jnp.stack([a, a]), one)
        >>> masked_word_weights(models, 0).readout.shape
        (5, 4)
    """
    layers = []
    for layer in models.transformer.layers:
        arrays = (layer.query_key, layer.value, layer.output)
        kernels = [np.asarray(a[member], float) for a in arrays]
        layers.append(tuple(Head(*triple) for triple in zip(*kernels, strict=True)))
    return TransformerWeights(tuple(layers), np.asarray(models.readout[member], float))


def masked_tokens(inputs: WordInputs, data: MaskedWords) -> Float[np.ndarray, "n T d"]:
    """What the network reads, masks in their places, in double precision.

    Examples:
        >>> from trauger2023sequence.library.training.masked_words import make_word_inputs
        >>> data = MaskedWords(np.array([[0, 1]]), np.array([1]), np.array([1]))
        >>> masked_tokens(make_word_inputs(jax.random.key(0), 2, 2, 4), data).shape
        (1, 2, 4)
    """
    words, places = (np.asarray(a, float) for a in (inputs.words, inputs.positions))
    numbers = data.words.copy()
    numbers[np.arange(len(numbers)), data.positions] = -1  # the mask is the last word
    return (words[numbers] + places[None]) / 2


def one_score_gaps(
    weights: TransformerWeights,
    X: Float[np.ndarray, "n T d"],
    samples: Float[np.ndarray, " m"],
    K: int,
    delta: float,
) -> Float[np.ndarray, "m 2"]:
    r"""Gaps from the complexity of the largest score, by `FROM_ONE_SCORE`.

    Args:
        weights: weight matrices of the model; the readout has one row per word.

    Examples:
        >>> eye = np.eye(4) / 10
        >>> weights = TransformerWeights(((Head(eye, eye, eye),),), np.ones((3, 4)) / 10)
        >>> result = one_score_gaps(weights, np.ones((5, 2, 4)) / 4, np.array([1e4]), 3, 0.05)
        >>> result.shape, bool(result[0, 0] < result[0, 1])
        ((1, 2), True)
    """
    row = weights.readout[np.linalg.norm(weights.readout, axis=1).argmax()]
    entries = compare_bounds(weights._replace(readout=row), X, int(samples[-1]), delta).entries
    digits = {entry.name: entry.log10_samples for entry in entries}
    radius = float(np.linalg.norm(row))
    # Covers of the (1,1) norm do not depend on m: their entropy, D / eps^2, serves all sizes.
    printed, sharp = (
        10.0 ** digits[f"1,1 {version}"] * radius**2 / THRESHOLD[version]
        for version in ("corrected", "sharp")
    )

    def gaps_at(m: Array) -> Array:
        first = jnp.minimum(dudley_integral(0.0, printed, m, radius), radius)
        second = dudley_chain(lambda epsilon: sharp / epsilon**2, m, radius)
        complexities = (
            trauger2023_masked(first, K, constants="printed"),
            trauger2023_masked(second, K, constants="sharp"),
        )
        return jnp.stack([generalisation_gap(R, m, delta, 2 * math.log(K)) for R in complexities])

    return np.asarray(jax.jit(jax.vmap(gaps_at))(samples))


def masked_word_bounds(
    models: MaskedWordModel,
    best: int,
    X: Float[np.ndarray, "n T d"],
    samples: Float[np.ndarray, " m"],
    K: int,
    delta: float,
) -> xr.Dataset:
    r"""Every bound on the gap of one model, and the samples that each needs to be non-vacuous.

    Losses are cut off at 2 ln K, the vacuous bound.

    Args:
        best: the model whose bounds are computed at all sample sizes.
        samples: m, increasing; the training samples are added last.

    Returns:
        `bound` of the best model along samples and cover, and `score_bound` by `FROM_ONE_SCORE`;
        `needed`, the samples from which on a bound is non-vacuous, for each model and cover, and
        `score_needed` for the best.

    Examples:
        >>> from trauger2023sequence.library.models.transformer import Layer, Transformer
        >>> layer = Layer(*(jnp.ones((1, 4, 4)) / 50 for _ in range(3)))
        >>> one = MaskedWordModel(Transformer((layer,)), jnp.ones((3, 4)) / 50)
        >>> models, X = jax.tree.map(lambda a: a[None], one), np.ones((5, 2, 4)) / 4
        >>> result = masked_word_bounds(models, 0, X, np.array([1e4, 1e6]), 3, 0.05)
        >>> dict(result.sizes)
        {'samples': 3, 'cover': 6, 'score': 2, 'model': 1}
    """
    members = range(len(models.readout))
    weights = [masked_word_weights(models, member) for member in members]
    entries_of_model = [_entries(model_weights, X, len(X), K, delta) for model_weights in weights]
    gaps = [[e.gap for e in _entries(weights[best], X, int(m), K, delta)] for m in samples]
    gaps.append([entry.gap for entry in entries_of_model[best]])
    sizes = np.append(samples, len(X))
    score = one_score_gaps(weights[best], X, sizes, K, delta)
    needed = np.array(
        [[entry.samples_until_nonvacuous for entry in row] for row in entries_of_model]
    )
    # The comparison solves it for its entries; the others cross between two sizes tried.
    crossing = last_crossing(np.log(samples), np.log(score[:-1].T / (2 * math.log(K))))
    return xr.Dataset(
        {
            "bound": (("samples", "cover"), np.array(gaps)),
            "score_bound": (("samples", "score"), score),
            "needed": (("model", "cover"), needed),
            "score_needed": ("score", np.exp(crossing)),
        },
        {"samples": sizes, "cover": list(COVERS), "score": list(FROM_ONE_SCORE)},
    )


def _entries(
    weights: TransformerWeights, X: np.ndarray, m: int, K: int, delta: float
) -> list[Entry]:
    """The entries of `COVERS`."""
    entries = compare_bounds(weights, X, m, delta, loss_range=2 * math.log(K)).entries
    by_name = {entry.name: entry for entry in entries}
    return [by_name[name] for name in COVERS]
