"""One line for each model, optimiser and generator that the conformance suite tries."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from attlas.data import gaussian_mixtures, token_selection, tokenized_mixture
from attlas.models.factored_multi_head import FactoredMultiHead
from attlas.models.multi_head import Decoder, MultiHead
from attlas.models.single_head import SingleHead
from attlas.optim.mirror_descent import mirror_descent


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


def _factored_multi_head(key, dtype):
    shapes = [(2, 3, 2), (2, 3, 2), (2, 3, 2), (2, 4, 2), (4, 3)]
    *factors, X = _normal(key, shapes, dtype)
    return FactoredMultiHead(*factors), (X,)


def _parameters(key, dtype):
    return {
        "v": jax.random.normal(key, (3,), dtype),
        "W": jnp.zeros((3, 3), dtype),
    }


MODELS = (
    Case("single_head", _model),
    *(Case(f"multi_head {decoder}", _multi_head(decoder)) for decoder in Decoder),
    Case("factored_multi_head", _factored_multi_head),
)

OPTIMISERS = (
    Case("mirror_descent", lambda: mirror_descent(0.1, 3.0)),
    Case("mirror_descent normalised", lambda: mirror_descent(0.1, 1.5, normalized=True)),
    Case(
        "mirror_descent, p per leaf",
        lambda: mirror_descent(0.1, {"v": 2.0, "W": 3.0}, normalized=True),
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
