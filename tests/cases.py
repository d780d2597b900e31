"""One line for each model, optimiser, solver and generator that the conformance suite tries."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from attlas._jax.device_arrays import generator, seed_of
from attlas.data import token_selection, tokenized_mixture
from attlas.data.sparse_majority import MajorityDesign, make_sparse_majority
from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.models.networks.single_layer_transformer import SingleLayerTransformer
from attlas.models.networks.translator import make_translator
from attlas.optim.mirror_descent import mirror_descent
from attlas.solvers.kernel_svm import kernel_svm
from attlas.solvers.linear_margin import linear_margin
from attlas.solvers.lp_svm import lp_svm
from gu2024exploring.library.data import gaussian_mixtures
from julistiono2024optimizing.library.token_selection.single_head import SingleHead
from liu2021analyzing.library.data.translation_pairs import load_translation_pairs
from liu2021analyzing.library.measures.orbit_flatness import orbit_curvature
from liu2021analyzing.library.measures.stationary_points import stationary_points
from liu2021analyzing.library.models.deep_self_attention import make_deep_self_attention
from liu2021analyzing.library.models.fixed_attention import EuclideanAttention, UniformAttention
from liu2021analyzing.library.models.lstm_reader import make_lstm_reader
from liu2021analyzing.library.models.recurrent_attention import make_recurrent_attention
from liu2021analyzing.library.models.self_attention_mlp import make_self_attention_mlp
from liu2021analyzing.library.models.two_layer import (
    AttendedTwoLayer,
    MaskedTwoLayer,
    make_two_layer,
)
from liu2021analyzing.library.models.word_classifier import make_word_classifier
from liu2021analyzing.library.noisy_grid.data import place_in_grid
from liu2021analyzing.library.noisy_grid.grid_cnn import make_attention_cnn, make_grid_cnn
from liu2021analyzing.library.reviews.review_words import load_review_words
from trauger2023sequence.library.models.majority_attention import make_majority_attention
from trauger2023sequence.library.models.transformer import Layer, Transformer


class Case(NamedTuple):
    """A name and what makes the object in a given floating type."""

    name: str
    make: Callable[..., Any]


def _model(key, dtype):
    head, matrix, tokens, query = jax.random.split(key, 4)
    model = SingleHead(
        jax.random.normal(head, (3,), dtype), jax.random.normal(matrix, (3, 3), dtype)
    )
    return model, (
        jax.random.normal(tokens, (4, 3), dtype),
        jax.random.normal(query, (3,), dtype),
    )


def _normal(key, shapes, dtype):
    keys = jax.random.split(key, len(shapes))
    return [jax.random.normal(k, shape, dtype) for k, shape in zip(keys, shapes, strict=True)]


def _multi_head(decoder):
    def make(key, dtype):
        decoders = (2, 4, 3) if decoder is Decoder.FULL else (2, 3)
        U, W, X = _normal(key, [decoders, (2, 3, 3), (4, 3)], dtype)
        return MultiHead(U, W, decoder), (X,)

    return make


def _parameters(key, dtype):
    return {
        "v": jax.random.normal(key, (3,), dtype),
        "W": jnp.zeros((3, 3), dtype),
    }


def _filled(make, *example):
    """A model that is never drawn, only its shapes are, with normal entries: nothing compiles.

    Examples are given by their shape, or as they are where they hold no floating numbers.
    """

    def case(key, dtype):
        draw = generator(key)

        def entries(shape):
            return jax.device_put((draw.standard_normal(shape) / 2).astype(dtype))

        shapes = jax.eval_shape(partial(make, dtype=dtype), key)
        model = jax.tree.map(lambda leaf: entries(leaf.shape), shapes)
        given = (entries(a) if isinstance(a, tuple) else jax.device_put(a) for a in example)
        return model, tuple(given)

    return case


def _around(wrap, p=3):
    """A network of two layers inside another module."""
    return lambda key, dtype: wrap(make_two_layer(key, p, 4, dtype=dtype), dtype)


def _transformer(key, dtype):
    layer = Layer(*(jnp.zeros((2, 3, 3), dtype) for _ in range(3)))
    return Transformer((layer, layer))


def _single_layer(key, dtype):
    return SingleLayerTransformer(
        jnp.zeros(3, dtype), *(jnp.zeros((2, 3, 3), dtype) for _ in range(3))
    )


def _word_classifier(key, dtype):
    network = make_self_attention_mlp(key, 4, 3, 2, 2, 5, dtype=dtype)
    return make_word_classifier(key, 6, 3, network, dtype)


def _majority(key, dtype):
    model = make_majority_attention(key, 4, 2, 3, dtype=jnp.dtype(dtype).name)
    return model, (jax.device_put(generator(key).standard_normal((5, 4)).astype(dtype)),)


_WORDS, _SEEN = np.array([3, 1, 2, 0]), np.array([True, True, True, False])
_CELL = {"cell": 6, "filters": (2, 2), "hidden": 3, "classes": 2}

MODELS = (
    Case("single_head", _model),
    *(Case(f"multi_head {decoder}", _multi_head(decoder)) for decoder in Decoder),
    Case("transformer", _filled(_transformer, (4, 3))),
    Case("single_layer_transformer", _filled(_single_layer, (4, 3), (3,))),
    Case("majority_attention", _majority),
    Case("two_layer", _filled(partial(make_two_layer, p=3, d=4, biases=True), (3,))),
    Case("two_layer, softplus", _filled(partial(make_two_layer, p=3, d=4, sharpness=9.0), (3,))),
    Case(
        "two_layer, attended",
        _filled(
            _around(lambda own, _: AttendedTwoLayer(own, EuclideanAttention(UniformAttention()))),
            (3,),
        ),
    ),
    Case(
        "two_layer, masked",
        _filled(_around(lambda own, dtype: MaskedTwoLayer(own, jnp.zeros(3, dtype), True)), (3,)),
    ),
    Case(
        "self_attention_mlp",
        _filled(partial(make_self_attention_mlp, p=4, t=3, d_q=2, d_v=2, d=5, biases=True), (3, 4)),
    ),
    Case(
        "deep_self_attention",
        _filled(
            partial(make_deep_self_attention, p=4, dimensions=(3, 2), d_q=2, d_v=2, units=3), (3, 4)
        ),
    ),
    Case(
        "recurrent_attention",
        _filled(partial(make_recurrent_attention, t=3, d=4, steps=3), (3, 4), _SEEN),
    ),
    Case(
        "recurrent_attention, network",
        _filled(partial(make_recurrent_attention, t=3, d=4, steps=3, score_units=2), (3, 4)),
    ),
    Case(
        "lstm_reader", _filled(partial(make_lstm_reader, t=3, cell=2, hidden=(4,)), (3, 4), _SEEN)
    ),
    Case("grid_cnn", _filled(partial(make_grid_cnn, **_CELL), (16, 36))),
    Case("grid_cnn, attention", _filled(partial(make_attention_cnn, width=3, **_CELL), (16, 36))),
    Case("word_classifier", _filled(_word_classifier, _WORDS, _SEEN)),
    Case(
        "translator",
        _filled(
            partial(make_translator, vocabularies=(5, 6), width=4, blocks=1, heads=2, hidden=3),
            _WORDS,
            _SEEN,
            _WORDS[:3],
        ),
    ),
)

OPTIMISERS = (
    Case("mirror_descent", lambda: mirror_descent(0.1, 3.0)),
    Case("mirror_descent normalised", lambda: mirror_descent(0.1, 1.5, normalized=True)),
    Case(
        "mirror_descent, p per leaf",
        lambda: mirror_descent(0.1, {"v": 2.0, "W": 3.0}, normalized=True),
    ),
    Case(
        "mirror_descent, scheduled and decayed",
        lambda: mirror_descent(optax.linear_schedule(0.1, 0.2, 5), 3.0, weight_decay=0.1),
    ),
    Case(
        "mirror_descent, injected",
        lambda: optax.inject_hyperparams(mirror_descent)(0.1, 3.0, normalized=True),
    ),
)
PARAMETERS = _parameters


def _mixture_samples(key, dtype):
    with jax.ensure_compile_time_eval():
        mixture = tokenized_mixture.make_tokenized_mixture(
            jax.random.key(0), d=5, M=2, Z_mu=0.1, Z_nu=0.1, Z=0.5, dtype=dtype
        )
    return tokenized_mixture.draw_mixture(key, mixture, 4, 4)


def _gaussian_samples(key, dtype):
    mixture = gaussian_mixtures.make_gaussian_mixture(
        [0.3, 0.7], [[1.0, 0.0], [0.0, 1.0]], [[[1.0, 0.2], [0.2, 0.5]]] * 2, dtype=dtype
    )
    return gaussian_mixtures.draw(key, mixture, 4)


GENERATORS = (
    Case("token_selection", token_selection.make_token_selection),
    Case("separable_selection", token_selection.make_separable_selection),
    Case("infeasible_selection", token_selection.make_infeasible_selection),
    Case("support_selection", token_selection.make_support_selection),
    Case("tokenized_mixture", _mixture_samples),
    Case("gaussian_mixtures", _gaussian_samples),
)


def _reviews(key, dtype):
    return load_review_words(sizes=(4, 1, 1), seed=seed_of(key)[0], stand_in=True).train.tokens


def _pairs(key, dtype):
    found = load_translation_pairs(
        sizes=(4, 1), vocabulary=90, length=20, seed=seed_of(key)[0], stand_in=True
    )
    return found.train.source


# Drawn by NumPy on the host, so that nothing is compiled for their shapes: not to be traced.
HOST_GENERATORS = (
    Case(
        "sparse_majority",
        lambda key, dtype: make_sparse_majority(
            key, 9, MajorityDesign(train=3, validation=2, dimension=4), jnp.dtype(dtype).name
        ),
    ),
    Case(
        "noisy_grid",
        lambda key, dtype: place_in_grid(np.full((3, 2, 2), 0.5, dtype), generator(key)),
    ),
    Case("review_words", _reviews),
    Case("translation_pairs", _pairs),
)


def _well(x):
    return x[0] ** 4 / 4 - x[0] ** 2 / 2 + x[1] ** 2


def _product(first, second):
    return (first[0] * second[0] - 1) ** 2 / 2


_ROWS = [[1.0, 0.5], [0.5, 2.0], [1.5, 1.0]]
_LABELS = [1.0, 1.0, 1.0]


# Each returns a `Solution`, in float64 whatever it is given.
HOST_SOLVERS = (
    Case("kernel_svm", lambda dtype: kernel_svm(np.eye(3, dtype=dtype), _LABELS)),
    Case("lp_svm", lambda dtype: lp_svm(np.asarray(_ROWS, dtype), _LABELS, 3.0)),
    Case("linear_margin", lambda dtype: linear_margin(np.asarray([_ROWS] * 3, dtype), _LABELS)),
)

# Each returns a `Solution` of the same problem twice, by a new call.
SOLVERS = (
    Case(
        "stationary_points",
        lambda dtype: stationary_points(_well, jnp.ones((2, 2), dtype), tolerance=1e-4),
    ),
    Case(
        "orbit_curvature",
        lambda dtype: orbit_curvature(
            _product, jnp.ones(1, dtype), jnp.ones(1, dtype), np.array([1.0, 2.0], dtype)
        ),
    ),
)
