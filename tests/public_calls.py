"""A good call of every public function that takes arrays: what `fuzz_public_calls` spoils."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import attlas as at
from attlas.bounds.comparison.transformer_weights import Head
from attlas.bounds.generalisation.betting_limit import betting_upper_limit
from attlas.bounds.generalisation.improvement_limit import improvement_limit
from attlas.data.token_selection import TokenSelection
from attlas.kernels.multi_head_ntk import ntk_features
from attlas.measures.attention.concentration import top_norm
from attlas.measures.curvature.exact_spectrum import hessian_spectra
from attlas.measures.statistics.loglog_slope import loglog_slope
from attlas.measures.statistics.power_law import power_law
from attlas.measures.statistics.student_interval import student_interval
from attlas.measures.statistics.trend import log_slope
from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.models.networks.softmax_network import SoftmaxNetwork
from attlas.norms.entrywise import entrywise_norm
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.global_margin import global_margin, margin_upper_bound
from attlas.solvers.kernel_svm import kernel_svm_batch
from attlas.solvers.linear_margin import linear_margin
from attlas.solvers.lp_svm import lp_svm_batch
from attlas.solvers.token_optimality import attention_margins, support_tokens
from deora2023optimization.library.measures.margins import (
    decoder_margin,
    homogeneous_margin,
    margins,
    normalised_margin,
)
from deora2023optimization.library.measures.token_attention import relevant_attention
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.library.kernels.regression_flow import descent_loss, regression_flow
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit
from gu2024exploring.library.measures.sample_distance import energy_distance
from julistiono2024optimizing.library.measures.path_exponents import path_exponents
from julistiono2024optimizing.library.solvers.nuclear_svm import nuclear_svm
from julistiono2024optimizing.library.token_selection.ball import descend_in_ball
from julistiono2024optimizing.library.token_selection.training import train_selection
from liu2021analyzing.library.measures.conditional_covariance import (
    conditional_covariance,
    schur_complement,
)
from liu2021analyzing.library.measures.stationary_points import stationary_points
from trauger2023sequence.library.measures.norm_ball_classes import LinearClass

KEY = jax.random.key(0)
SHARES = np.array([0.0, 0.25, 0.5, 1.0])


class Call(NamedTuple):
    """A function of arrays by name, arrays that it accepts, and which are fields of an object."""

    name: str
    function: Callable[..., Any]
    arrays: dict[str, np.ndarray]
    fields: tuple[str, ...] = ()


def _data(seed: int = 0) -> dict[str, np.ndarray]:
    draws = np.random.default_rng(seed)
    n, T, d = 2, 3, 4
    X, z = draws.normal(size=(n, T, d)), draws.normal(size=(n, d))
    return {"X": X, "z": z, "y": np.array([1.0, -1.0]), "v": draws.normal(size=d)}


D = _data()
SELECTED = np.array([0, 2])
SQUARE = np.random.default_rng(1).normal(size=(4, 4)) / 2
GRAM = np.array([[2.0, 0.5], [0.5, 1.0]])


def _bowl(x: Any, a: Any) -> Any:
    return jnp.sum(a) * jnp.sum(x**2) / 2


def _model(U: Any, W: Any) -> MultiHead:
    return MultiHead(U, W, Decoder.LAST)


def _step(learning_rate: Any, p: Any, eps: Any, weight_decay: Any) -> Any:
    rule = at.mirror_descent(learning_rate, p, True, eps, weight_decay=weight_decay)
    w, g = jnp.asarray(SQUARE), jnp.asarray(SQUARE.T)
    return rule.update(g, rule.init(w), w)[0]


def _slope(scales: Any, runs: Any) -> Any:
    return loglog_slope(scales, runs, KEY)[:4]


def _path(time: Any, norm: Any, values: Any) -> Any:
    return path_exponents(time, norm, values, lambda x: 1 / x, (10.0, 50.0))


def _train(X: Any, y: Any, z: Any, v: Any, W0: Any) -> Any:
    settings = {"p": 2.0, "learning_rate": 0.1, "steps": 3, "record_at": (0, 3)}
    return train_selection(TokenSelection(X, y, z, v), W0, **settings)


def _ball(X: Any, y: Any, z: Any, v: Any, W0: Any) -> Any:
    return descend_in_ball(TokenSelection(X, y, z, v), W0, p=2.0, radius=2.0, steps=3)


def _fit(params: Any) -> Any:
    return at.fit(_squares, optax.sgd(0.1), params, steps=2)


def _squares(w: Any, _: Any) -> Any:
    return jnp.sum(w**2)


def _compare(inputs: Any, readout: Any, value: Any) -> Any:
    eighth = np.eye(4) / 8
    weights = at.TransformerWeights(((Head(eighth, value, eighth),),), readout)
    return [entry.gap for entry in at.compare_bounds(weights, inputs, 10**6, 0.05).entries]


def _rademacher(inputs: Any, radius: Any) -> Any:
    settings = {"sign_vectors": 2, "starts": 2, "steps": 2}
    return at.rademacher_complexity(KEY, LinearClass("frobenius", radius), inputs, **settings)


SELECTION = {"X": D["X"], "z": D["z"], "tokens": SELECTED}
LABELLED = {"X": D["X"], "y": D["y"]}
HEADS = {"U": SQUARE[:2], "W": np.stack([SQUARE, SQUARE.T])}
NETWORK = {"W": SQUARE, "a": SQUARE[:2]}
PAIR = {"W": SQUARE, "target": SQUARE.T}
TIME = np.geomspace(1, 100, 30)[None]
EVERYTHING = {**D, "W0": SQUARE}
BATCH = {name: array[None] for name, array in SELECTION.items()}


def _solvers() -> Iterator[Call]:
    """Solvers, and what is asked of their solutions."""
    yield Call("attention_svm", lambda **a: at.attention_svm(**a, p=3.0), SELECTION)
    yield Call("attention_svm_batch", lambda **a: attention_svm_batch(**a, p=2.0), BATCH)
    yield Call("lp_svm", lambda **a: at.lp_svm(**a, p=3.0), {"x": D["z"], "y": D["y"]})
    yield Call(
        "lp_svm_batch",
        lambda **a: lp_svm_batch(**a, p=2.0),
        {"x": D["z"][None], "y": D["y"][None]},
    )
    yield Call("kernel_svm", at.kernel_svm, {"K": GRAM, "y": D["y"]})
    yield Call("kernel_svm_batch", kernel_svm_batch, {"K": GRAM[None], "y": D["y"][None]})
    yield Call("linear_margin", linear_margin, LABELLED)
    yield Call("nuclear_svm", nuclear_svm, SELECTION)
    yield Call("margin_upper_bound", margin_upper_bound, LABELLED)
    yield Call(
        "global_margin",
        lambda **a: global_margin(**a, heads=1, starts=3, steps=2, key=KEY),
        LABELLED,
    )
    yield Call("attention_margins", attention_margins, {**SELECTION, "W": SQUARE})
    yield Call("support_tokens", support_tokens, {**SELECTION, "W": SQUARE})


def _directions() -> Iterator[Call]:
    """Divergences, norms and attention rows."""
    yield Call("bregman", lambda **a: at.bregman(**a, p=3.0), {"w": SQUARE, "v": SQUARE.T})
    numbers = {"learning_rate": 0.1, "p": 3.0, "eps": 0.1, "weight_decay": 0.1}
    yield Call("mirror_descent", _step, {name: np.asarray(x) for name, x in numbers.items()})
    yield Call("entrywise_norm", lambda array: entrywise_norm(array, 3.0), {"array": SQUARE})
    yield Call("direction_divergence", lambda **a: at.direction_divergence(**a, p=3.0), PAIR)
    rows = np.full((2, 4), 0.25)
    yield Call(
        "certify", lambda losses: at.certify(losses).models[0].bound.bound, {"losses": SHARES}
    )
    yield Call(
        "betting_upper_limit", lambda losses: betting_upper_limit(losses, 0.05), {"losses": SHARES}
    )
    yield Call(
        "improvement_limit",
        lambda **a: improvement_limit(**a, delta=0.05),
        {"losses": SHARES, "others": SHARES[::-1].copy()},
    )
    yield Call("concentration", at.concentration, {"weights": rows, "lengths": np.array([4, 4])})
    yield Call("top_norm", lambda **a: top_norm(**a, s0=2), {"weights": rows})


def _models() -> Iterator[Call]:
    """What is measured on a multi-head model."""
    yield Call(
        "margins",
        lambda U, W, **a: margins(_model(U, W), **a),
        {**HEADS, **LABELLED},
        tuple(HEADS),
    )
    yield Call(
        "normalised_margin",
        lambda U, W, **a: normalised_margin(_model(U, W), **a),
        {**HEADS, **LABELLED},
        tuple(HEADS),
    )
    yield Call(
        "decoder_margin",
        lambda U, W, **a: decoder_margin(_model(U, W), **a),
        {**HEADS, **LABELLED},
        tuple(HEADS),
    )
    yield Call(
        "homogeneous_margin",
        lambda U, W, **a: homogeneous_margin(_model(U, W), **a, order=1.0),
        {**HEADS, **LABELLED},
        tuple(HEADS),
    )
    marked = np.array([[True, False, False], [False, True, True]])
    yield Call(
        "relevant_attention",
        lambda U, W, **a: relevant_attention(_model(U, W), **a),
        {**HEADS, "X": D["X"], "relevant": marked},
    )
    yield Call(
        "ntk_gram",
        lambda U, W, **a: at.ntk_gram(_model(U, W), **a),
        {**HEADS, "X": D["X"], "Z": D["X"][:1]},
    )
    yield Call(
        "ntk_features", lambda U, W, **a: ntk_features(_model(U, W), **a), {**HEADS, "X": D["X"]}
    )


def _kernels() -> Iterator[Call]:
    """Kernels of softmax networks and regression with them."""
    samples = {"X": D["z"], "Z": D["z"][:1]}
    yield Call(
        "softmax_ntk",
        lambda W, a, **s: at.softmax_ntk(SoftmaxNetwork(W, a), **s),
        {**NETWORK, **samples},
    )
    yield Call(
        "dense_softmax_ntk",
        lambda W, a, **s: dense_softmax_ntk(SoftmaxNetwork(W, a), **s),
        {**NETWORK, **samples},
    )
    yield Call("softmax_ntk_limit", lambda **a: softmax_ntk_limit(**a, sigma=1.0), samples)
    yield Call(
        "regression_flow",
        lambda **a: regression_flow(**a).train(np.array([1.0])),
        {"kernel": GRAM, "targets": np.ones((2, 1)), "start": np.zeros((2, 1))},
    )
    yield Call(
        "descent_loss",
        descent_loss,
        {"kernel": GRAM, "y": D["y"], "steps": np.array([0.0, 3.0])},
    )


def _statistics() -> Iterator[Call]:
    """Slopes, intervals, covariances and distances."""
    pairs = {"target": D["X"][0][:, :2], "regressors": D["X"][1][:, :2]}
    yield Call("conditional_covariance", conditional_covariance, pairs)
    yield Call(
        "conditional_covariance of fresh samples",
        lambda z1, z2: conditional_covariance(*pairs.values(), (z1, z2)),
        {"z1": D["X"][0][:, 2:], "z2": D["X"][1][:, 2:]},
    )
    yield Call(
        "schur_complement",
        schur_complement,
        {"target": GRAM, "cross": GRAM / 2, "regressors": GRAM},
    )
    yield Call(
        "loglog_slope",
        _slope,
        {"scales": np.array([1.0, 10.0, 100.0]), "runs": np.geomspace(1, 0.01, 6).reshape(3, 2)},
    )
    yield Call("log_slope", log_slope, {"scales": np.geomspace(1, 8, 4), "values": SQUARE**2})
    rows = np.geomspace(1, 0.01, 6).reshape(2, 3)
    yield Call("power_law", power_law, {"scales": np.array([1.0, 10.0, 100.0]), "values": rows})
    yield Call("path_exponents", _path, {"time": TIME, "norm": 2 * TIME, "values": TIME**-2.0})
    yield Call("student_interval", student_interval, {"values": SQUARE})
    yield Call("energy_distance", energy_distance, {"x": SQUARE, "y": SQUARE.T})


def _training() -> Iterator[Call]:
    """Curvature, complexity, bounds and training."""
    yield Call(
        "hessian_extremes",
        lambda parameters: at.hessian_extremes(_bowl, parameters, [1.0, 2.0]),
        {"parameters": D["v"]},
    )
    yield Call(
        "hessian_spectra",
        lambda parameters: hessian_spectra(_bowl, parameters, [1.0, 2.0]),
        {"parameters": D["z"]},
    )
    yield Call(
        "stationary_points",
        lambda starts: stationary_points(_bowl, starts, [1.0, 2.0], max_steps=30),
        {"starts": D["z"]},
    )
    yield Call("rademacher_complexity", _rademacher, {"inputs": D["X"], "radius": np.array(2.0)})
    yield Call("compare_bounds", _compare, {"inputs": D["X"], "readout": D["v"], "value": SQUARE})
    yield Call("fit", _fit, {"params": D["v"]})
    yield Call("train_selection", _train, EVERYTHING, tuple(D))
    yield Call("descend_in_ball", _ball, EVERYTHING, tuple(D))


CALLS = (*_solvers(), *_directions(), *_models(), *_kernels(), *_statistics(), *_training())
"""All of them."""
