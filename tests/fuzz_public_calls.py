"""Every public function that takes arrays, with each of its arrays spoilt in each way.

A program of its own: it runs as a user's process does, without the shape checks of the tests and
in JAX's default precision. A call must end in finite numbers, in what the function documents, or
in a `UserError` of one line. Each call is named before it is made, so that whoever stops one that
hangs knows which it was; the last line is what went wrong, as JSON.

    python tests/fuzz_public_calls.py                      all of it, a few minutes
    python tests/fuzz_public_calls.py ntk_gram lp_svm      these functions
    python tests/fuzz_public_calls.py --brief              types for first arguments only
"""

import json
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

import attlas as at
from attlas.bounds.comparison.transformer_weights import Head
from attlas.core.errors import UserError
from attlas.core.norms.entrywise import entrywise_norm
from attlas.core.solution import Result, Solution
from attlas.data.token_selection import TokenSelection
from attlas.kernels.dense_softmax_ntk import dense_softmax_ntk
from attlas.kernels.multi_head_ntk import ntk_features
from attlas.kernels.regression_flow import descent_loss, regression_flow
from attlas.kernels.softmax_network_limit import softmax_ntk_limit
from attlas.measures.attention.concentration import top_norm
from attlas.measures.attention.direction import correlation_coefficient
from attlas.measures.attention.margins import (
    decoder_margin,
    homogeneous_margin,
    margins,
    normalised_margin,
)
from attlas.measures.attention.token_attention import relevant_attention
from attlas.measures.complexity.norm_ball_classes import LinearClass
from attlas.measures.curvature.exact_spectrum import hessian_spectra
from attlas.measures.curvature.stationary_points import stationary_points
from attlas.measures.statistics.conditional_covariance import (
    conditional_covariance,
    schur_complement,
)
from attlas.measures.statistics.loglog_slope import loglog_slope
from attlas.measures.statistics.path_exponents import path_exponents
from attlas.measures.statistics.sample_distance import energy_distance
from attlas.measures.statistics.student_interval import student_interval
from attlas.measures.statistics.trend import log_slope
from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.models.networks.softmax_network import SoftmaxNetwork
from attlas.solvers.attention_svm import attention_svm_batch
from attlas.solvers.global_margin import global_margin, margin_upper_bound
from attlas.solvers.kernel_svm import kernel_svm_batch
from attlas.solvers.linear_margin import linear_margin
from attlas.solvers.lp_svm import lp_svm_batch
from attlas.solvers.nuclear_svm import nuclear_svm
from attlas.solvers.token_optimality import attention_margins, is_globally_optimal, support_tokens
from attlas.tasks.token_selection.ball import descend_in_ball
from attlas.tasks.token_selection.training import train_selection

SECONDS = 20
BYTES = 12 * 2**30
GOOD = ("as it is", "list", "jax", "float32", "non-contiguous")
KEY = jax.random.key(0)


OVERFLOW = ("1e300", "1e-300")
NOT_FINITE = ("NaN", "infinity", "minus infinity, jax", "all NaN")
DOCUMENTED = {
    "bregman": OVERFLOW,
    "conditional_covariance of fresh samples": OVERFLOW,
    "correlation_coefficient": ("zeros",),
    "decoder_margin": ("zeros", *OVERFLOW),
    "descend_in_ball": ("zeros", *OVERFLOW),
    "descent_loss": OVERFLOW,
    "direction_divergence": ("zeros",),
    "energy_distance": OVERFLOW,
    "entrywise_norm": NOT_FINITE,
    "homogeneous_margin": ("zeros", *OVERFLOW),
    "log_slope": OVERFLOW,
    "margins": OVERFLOW,
    "mirror_descent": OVERFLOW,
    "normalised_margin": OVERFLOW,
    "ntk_features": OVERFLOW,
    "path_exponents": ("all NaN", *OVERFLOW),
    "rademacher_complexity": OVERFLOW,
    "relevant_attention": OVERFLOW,
    "schur_complement": OVERFLOW,
    "student_interval": ("no axis more", *NOT_FINITE),
    "top_norm": (*NOT_FINITE, *OVERFLOW),
}
"""Where numbers may be NaN or infinite: the docstring says so, or squares leave the range."""

SLOW = (
    "descend_in_ball",
    "fit",
    "global_margin",
    "ntk_features",
    "rademacher_complexity",
    "train_selection",
)
COMPILES = ("jax", "integers", "int8", "float16", "bfloat16", "float32", "zeros", *OVERFLOW)
"""What is accepted, in another type or with another outcome: a compilation for each."""


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


def _calls() -> Iterator[Call]:
    Xzt = {"X": D["X"], "z": D["z"], "tokens": SELECTED}
    labelled = {"X": D["X"], "y": D["y"]}
    heads = {"U": SQUARE[:2], "W": np.stack([SQUARE, SQUARE.T])}
    network = {"W": SQUARE, "a": SQUARE[:2]}
    two = {"W": SQUARE, "target": SQUARE.T}
    time = np.geomspace(1, 100, 30)[None]
    everything = {**D, "W0": SQUARE}
    batch = {name: array[None] for name, array in Xzt.items()}
    yield Call("attention_svm", lambda **a: at.attention_svm(**a, p=3.0), Xzt)
    yield Call("attention_svm_batch", lambda **a: attention_svm_batch(**a, p=2.0), batch)
    yield Call("lp_svm", lambda **a: at.lp_svm(**a, p=3.0), {"x": D["z"], "y": D["y"]})
    yield Call(
        "lp_svm_batch",
        lambda **a: lp_svm_batch(**a, p=2.0),
        {"x": D["z"][None], "y": D["y"][None]},
    )
    yield Call("kernel_svm", at.kernel_svm, {"K": GRAM, "y": D["y"]})
    yield Call("kernel_svm_batch", kernel_svm_batch, {"K": GRAM[None], "y": D["y"][None]})
    yield Call("linear_margin", linear_margin, labelled)
    yield Call("nuclear_svm", nuclear_svm, Xzt)
    yield Call("margin_upper_bound", margin_upper_bound, labelled)
    yield Call(
        "global_margin",
        lambda **a: global_margin(**a, heads=1, starts=3, steps=2, key=KEY),
        labelled,
    )
    yield Call("attention_margins", attention_margins, {**Xzt, "W": SQUARE})
    yield Call("support_tokens", support_tokens, {**Xzt, "W": SQUARE})
    yield Call(
        "is_globally_optimal",
        lambda tokens, **a: is_globally_optimal(TokenSelection(**a), tokens),
        {**D, "tokens": SELECTED},
        tuple(D),
    )
    yield Call("bregman", lambda **a: at.bregman(**a, p=3.0), {"w": SQUARE, "v": SQUARE.T})
    numbers = {"learning_rate": 0.1, "p": 3.0, "eps": 0.1, "weight_decay": 0.1}
    yield Call("mirror_descent", _step, {name: np.asarray(x) for name, x in numbers.items()})
    yield Call("entrywise_norm", lambda array: entrywise_norm(array, 3.0), {"array": SQUARE})
    yield Call("direction_divergence", lambda **a: at.direction_divergence(**a, p=3.0), two)
    yield Call("correlation_coefficient", correlation_coefficient, two)
    rows = np.full((2, 4), 0.25)
    yield Call("concentration", at.concentration, {"weights": rows, "lengths": np.array([4, 4])})
    yield Call("top_norm", lambda **a: top_norm(**a, s0=2), {"weights": rows})
    yield Call(
        "margins",
        lambda U, W, **a: margins(_model(U, W), **a),
        {**heads, **labelled},
        tuple(heads),
    )
    yield Call(
        "normalised_margin",
        lambda U, W, **a: normalised_margin(_model(U, W), **a),
        {**heads, **labelled},
        tuple(heads),
    )
    yield Call(
        "decoder_margin",
        lambda U, W, **a: decoder_margin(_model(U, W), **a),
        {**heads, **labelled},
        tuple(heads),
    )
    yield Call(
        "homogeneous_margin",
        lambda U, W, **a: homogeneous_margin(_model(U, W), **a, order=1.0),
        {**heads, **labelled},
        tuple(heads),
    )
    marked = np.array([[True, False, False], [False, True, True]])
    yield Call(
        "relevant_attention",
        lambda U, W, **a: relevant_attention(_model(U, W), **a),
        {**heads, "X": D["X"], "relevant": marked},
    )
    yield Call(
        "ntk_gram",
        lambda U, W, **a: at.ntk_gram(_model(U, W), **a),
        {**heads, "X": D["X"], "Z": D["X"][:1]},
    )
    yield Call(
        "ntk_features", lambda U, W, **a: ntk_features(_model(U, W), **a), {**heads, "X": D["X"]}
    )
    samples = {"X": D["z"], "Z": D["z"][:1]}
    yield Call(
        "softmax_ntk",
        lambda W, a, **s: at.softmax_ntk(SoftmaxNetwork(W, a), **s),
        {**network, **samples},
    )
    yield Call(
        "dense_softmax_ntk",
        lambda W, a, **s: dense_softmax_ntk(SoftmaxNetwork(W, a), **s),
        {**network, **samples},
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
    pairs = {"target": D["X"][0][:, :2], "given": D["X"][1][:, :2]}
    yield Call("conditional_covariance", conditional_covariance, pairs)
    yield Call(
        "conditional_covariance of fresh samples",
        lambda z1, z2: conditional_covariance(*pairs.values(), (z1, z2)),
        {"z1": D["X"][0][:, 2:], "z2": D["X"][1][:, 2:]},
    )
    yield Call(
        "schur_complement", schur_complement, {"own": GRAM, "cross": GRAM / 2, "given": GRAM}
    )
    yield Call(
        "loglog_slope",
        _slope,
        {"scales": np.array([1.0, 10.0, 100.0]), "runs": np.geomspace(1, 0.01, 6).reshape(3, 2)},
    )
    yield Call("log_slope", log_slope, {"scales": np.geomspace(1, 8, 4), "values": SQUARE**2})
    yield Call("path_exponents", _path, {"time": time, "norm": 2 * time, "values": time**-2.0})
    yield Call("student_interval", student_interval, {"values": SQUARE})
    yield Call("energy_distance", energy_distance, {"x": SQUARE, "y": SQUARE.T})
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
    yield Call("train_selection", _train, everything, tuple(D))
    yield Call("descend_in_ball", _ball, everything, tuple(D))


def _first(array: np.ndarray, value: Any) -> np.ndarray:
    found = array.astype(np.result_type(array.dtype, np.asarray(value).dtype))
    found[(0,) * array.ndim] = value
    return found


def _huge(array: np.ndarray, axis: int) -> np.ndarray:
    """A view of one entry: it takes no memory before somebody copies it."""
    shape = list(array.shape)
    shape[axis] = 10**11
    return np.broadcast_to(array[(0,) * array.ndim], shape)


def _gapped(array: np.ndarray) -> np.ndarray:
    """The same numbers, backwards in memory and with gaps."""
    wide = np.repeat(array, 2, axis=-1) if array.ndim else array
    return np.flip(np.flip(wide[..., ::2].copy(order="F"), 0).copy(order="F"), 0)


def _spoilt(array: np.ndarray) -> Iterator[tuple[str, Any]]:
    """The array, and what a caller may hand over in its place."""
    yield "as it is", array
    yield "list", array.tolist()
    yield "jax", jnp.asarray(array)
    yield "integers", np.rint(4 * array).astype(np.int64) if array.dtype.kind == "f" else array
    yield "int8", np.rint(4 * array).astype(np.int8) if array.dtype.kind == "f" else array
    yield "float16", array.astype(np.float16)
    yield "bfloat16", jnp.asarray(array, jnp.bfloat16)
    yield "float32", array.astype(np.float32)
    yield "complex", array.astype(complex)
    yield "complex, traced no more", jnp.asarray(array, jnp.complex64)
    yield "object", array.astype(object)
    yield "text", np.full(array.shape, "a")
    yield "a word", "word"
    yield "nothing", None
    yield "a set", {1.0, 2.0}
    yield "booleans", array > 0
    yield "NaN", _first(array, np.nan)
    yield "infinity", _first(array, np.inf)
    yield "minus infinity, jax", jnp.asarray(_first(array, -np.inf))
    yield "all NaN", np.full(array.shape, np.nan)
    yield "1e300", 1e300 * np.ones(array.shape)
    yield "1e-300", 1e-300 * np.ones(array.shape)
    yield "zeros", np.zeros(array.shape)
    yield "no axis more", array[None]
    yield "a scalar", 1.0
    yield "empty list", []
    if array.ndim:
        yield "an axis less", array[0]
        yield "non-contiguous", _gapped(array)
        yield "ragged", [[1.0], [1.0, 2.0]]
    for axis in range(array.ndim):
        yield f"axis {axis} of length zero", np.take(array, [], axis)
        yield f"axis {axis} longer", np.concatenate([array, array], axis)
        yield f"axis {axis} huge", _huge(array, axis)


def _finite(found: Any) -> bool:
    """Whether all numbers are, but where a code of `Result` says why they are not."""
    code = getattr(found, "result", None)
    if code is not None and np.any(np.isin(code, (Result.INFEASIBLE, Result.NOT_FINITE))):
        return True
    value = found.value if isinstance(found, Solution) else found
    return all(
        bool(np.all(np.isfinite(np.asarray(leaf, float))))
        for leaf in jax.tree.leaves(value)
        if not callable(leaf)
    )


class _TooLong(BaseException):
    """Raised by the alarm; no function's own handler takes it for an error of its input."""


def _alarm(*_: Any) -> None:
    raise _TooLong


def _outcome(call: Call, arrays: dict[str, Any], good: bool) -> str:
    """Empty where the call ended as it should; a good one is not refused."""
    signal.alarm(SECONDS)
    try:
        found = call.function(**arrays)
        return "" if _finite(found) else "not finite"
    except UserError as error:
        line = str(error)
        return f"refused: {line}" if good else "" if line and "\n" not in line else "several lines"
    except _TooLong:
        return "hang"
    except BaseException as error:  # noqa: BLE001 (whatever else is raised is the finding)
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {place.filename.rpartition('/')[2]}: {error}"[:200]
    finally:
        signal.alarm(0)


def _fails(call: Call, argument: str, fault: str, value: Any) -> str:
    """What is wrong with the outcome of one call."""
    whole = call.arrays[argument].dtype.kind != "f" and fault == "float32"
    good = fault in GOOD and not whole and argument not in call.fields
    found = _outcome(call, {**call.arrays, argument: value}, good)
    known = found == "not finite" and fault in DOCUMENTED.get(call.name, ())
    return "" if known else found


def _skipped(call: Call, argument: str, fault: str) -> bool:
    """What a brief run leaves out: types beyond the first argument, and what is slow."""
    if argument == next(iter(call.arrays)):
        return call.name in SLOW and fault in COMPILES
    longer = fault.endswith("longer") and call.name in SLOW
    return fault in COMPILES or longer or fault in ("as it is", "non-contiguous")


def main(names: list[str]) -> None:
    """Try all calls, or those named, and print what went wrong."""
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
    signal.signal(signal.SIGALRM, _alarm)
    brief, wrong, tried = "--brief" in names, [], 0
    chosen = [name for name in names if name != "--brief"]
    for call in _calls():
        if chosen and call.name not in chosen:
            continue
        for argument, array in call.arrays.items():
            for fault, value in _spoilt(array):
                if brief and _skipped(call, argument, fault):
                    continue
                sys.stdout.write(f"{call.name}: {argument}, {fault}\n")
                sys.stdout.flush()
                tried += 1
                if found := _fails(call, argument, fault, value):
                    wrong.append([call.name, argument, fault, found])
    sys.stdout.write(json.dumps({"tried": tried, "wrong": wrong}) + "\n")


if __name__ == "__main__":
    np.seterr(all="ignore")
    main(sys.argv[1:])
