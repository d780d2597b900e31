"""More good calls for `fuzz_public_calls`: what counts, what compares records, what trains many."""

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from public_calls import GRAM, HEADS, KEY, LABELLED, SELECTION, SQUARE, Call, D

from attlas.bounds.comparison.compare_inputs import measure_inputs
from attlas.bounds.comparison.transformer_weights import matrix_norms
from attlas.data.token_selection import TokenSelection
from attlas.measures.attention.concentration import streamed_concentration
from attlas.measures.attention.product_spectrum import product_spectrum
from attlas.measures.attention.subspace_overlap import subspace_overlap
from attlas.measures.complexity.rademacher import rademacher_estimate
from attlas.measures.statistics.onset import onset
from attlas.measures.statistics.rank_correlation import rank_correlation
from attlas.measures.statistics.trend import decay_rate, extrapolated_limit
from attlas.models.attention.multi_head import Decoder, MultiHead
from attlas.models.networks.softmax_network import SoftmaxNetwork
from attlas.solvers.token_optimality import is_locally_optimal
from deora2023optimization.library.measures.ntk_margin import ntk_margins
from deora2023optimization.library.measures.repeated_start import (
    sign_excess,
    start_constants,
    uniform_outputs,
)
from deora2023optimization.library.training.digit_heads import logistic_scores
from gu2024exploring.library.measures.sample_comparison import (
    compare_samples,
    lost_samples,
    nearest_distances,
)
from gu2024exploring.library.measures.sample_distance import sliced_wasserstein
from gu2024exploring.library.training.kernel_perturbation import aligned_directions, kernel_changes
from julistiono2024optimizing.library.measures.path_exponents import (
    end_gap,
    entry_times,
    interpolated,
)
from julistiono2024optimizing.library.measures.selection import selected_tokens
from julistiono2024optimizing.library.measures.settling import settling_times
from julistiono2024optimizing.library.measures.svm_shortfall import svm_shortfall
from julistiono2024optimizing.library.solvers.selection_geometry import selection_geometry
from julistiono2024optimizing.library.token_selection.training import train_selection_ensemble
from julistiono2024optimizing.library.training.decisive_encoders import weight_sizes
from liu2021analyzing.library.measures.attention_hessian import attention_risk_hessian
from liu2021analyzing.library.measures.cell_enumeration import enumerate_cells
from liu2021analyzing.library.measures.linear_regions import (
    activation_patterns,
    arrangement,
    count_cells,
    count_linear_regions,
    frozen_regions,
    sampled_cells,
)
from liu2021analyzing.library.measures.point_kinds import at_least_risk
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP
from trauger2023sequence.library.measures.crossing import last_crossing
from trauger2023sequence.library.measures.paired_ratio import paired_ratio
from trauger2023sequence.library.measures.sum_pooling import sum_pooling_suprema
from trauger2023sequence.library.measures.trend_power import trend_power

ATTENTION = {"attention": np.array([[0.2, 0.8], [0.6, 0.4]])}
LINES = {"W": SQUARE[:, :2], "b": SQUARE[:, 2]}
RISING = np.array([1.0, 2.0, 4.0])
BOTH = {"x": np.array([[1.0, 10.0, 100.0]]), "y": np.array([[3.0, 2.0, 1.0]])}
COPIES = np.array([[[3, 1], [1, 0]]])
MARKED = np.array([True, False, True])
ONE = jnp.ones((1, 1))


def _last(U: Any, W: Any) -> MultiHead:
    return MultiHead(U, W, Decoder.LAST)


def _selection(tokens: Any, W: Any) -> tuple[TokenSelection, Any, Any]:
    return TokenSelection(**D), tokens, W


def _geometry(tokens: Any, W: Any) -> Any:
    X = np.array([[[1.0, 0.0], [-1.0, 0.0], [-3.0, 0.0]]])
    data = TokenSelection(X, np.ones(1), np.array([[0.0, 1.0]]), np.array([1.0, 0.0]))
    return selection_geometry(data, tokens, W, 2.0)


def _spectrum(left: Any, right: Any) -> Any:
    found = product_spectrum(left, right)
    return found.singular, found.error


def _shortfall(X: Any, z: Any, W: Any) -> Any:
    """What is certified, and what needs no certificate."""
    found = svm_shortfall(X, z, W)
    solved = found.certified
    return found.shortfall[solved], found.apart[solved], found.svm_spread[solved], found.spread


def _ensemble(W0: Any) -> Any:
    two = TokenSelection(**{name: np.stack([array, array]) for name, array in D.items()})
    settings = {"p": 2.0, "learning_rate": 0.1, "steps": 3, "record_at": (0, 3)}
    return train_selection_ensemble(two, W0, **settings)


def _attention() -> Iterator[Call]:
    """What is read from attention weights and from the matrices of heads."""
    rows = {"weights": np.full((2, 4), 0.25), "lengths": np.array([4, 4])}
    yield Call(
        "streamed_concentration",
        lambda weights, lengths: streamed_concentration([(weights, lengths)]),
        rows,
    )
    yield Call("selected_tokens", selected_tokens, ATTENTION)
    yield Call("product_spectrum", _spectrum, {"left": SQUARE[:, :2], "right": SQUARE[:, 2:]})
    yield Call("subspace_overlap", subspace_overlap, {"bases": D["X"].swapaxes(1, 2)})
    path = {"W": np.stack([SQUARE, 2 * SQUARE])}
    yield Call("svm_shortfall", _shortfall, {"X": D["X"], "z": D["z"], **path})
    yield Call("matrix_norms", matrix_norms, {"M": SQUARE})
    yield Call("measure_inputs", lambda inputs: measure_inputs(inputs, 4, None), {"inputs": D["X"]})


def _selections() -> Iterator[Call]:
    """What is asked of a selection, and many trainings at once."""
    asked = {"tokens": SELECTION["tokens"], "W": SQUARE}
    W = np.array([[0.0, 0.5], [0.0, 0.0]])
    yield Call("selection_geometry", _geometry, {"tokens": np.array([0]), "W": W})
    yield Call(
        "is_locally_optimal", lambda tokens, W: is_locally_optimal(*_selection(tokens, W)), asked
    )
    yield Call("train_selection_ensemble", _ensemble, {"W0": np.stack([SQUARE, SQUARE])})


def _complexity() -> Iterator[Call]:
    """Regions, suprema, margins and curvature."""
    yield Call("enumerate_cells", lambda **a: enumerate_cells(**a).certificate["count"], LINES)
    yield Call("count_cells", count_cells, LINES)
    yield Call("arrangement", arrangement, LINES)
    yield Call("sampled_cells", lambda **a: sampled_cells(**a, key=KEY, lines=4), LINES)
    yield Call("count_linear_regions", count_linear_regions, LINES | {"w2": SQUARE[0]})
    yield Call("activation_patterns", activation_patterns, LINES | {"points": D["X"][0][:, :2]})
    yield Call(
        "frozen_regions",
        lambda W1, **a: frozen_regions(SelfAttentionMLP(ONE, ONE, ONE, W1, jnp.ones(2)), **a),
        {"W1": SQUARE[:2, :2], "attention": GRAM[None], "points": SQUARE[:, :2]},
    )
    signs = {"signs": np.array([[1.0, -1.0], [1.0, 1.0]])}
    yield Call("sum_pooling_suprema", sum_pooling_suprema, signs | {"tokens": D["X"]})
    yield Call(
        "rademacher_estimate",
        lambda suprema: rademacher_estimate(suprema, 2, 5.0),
        {"suprema": RISING},
    )
    own = {name: array[None] for name, array in LABELLED.items()}
    yield Call("ntk_margins", lambda U, W, **a: ntk_margins([_last(U, W)], **a), HEADS | own)
    head = {"U": SQUARE[:1], "W": SQUARE[None]}
    yield Call(
        "start_constants",
        lambda U, W, **a: start_constants([MultiHead(U, W)], **a),
        {"U": SQUARE[None, :3], "W": SQUARE[None], **own, "copies": COPIES},
    )
    yield Call(
        "uniform_outputs",
        lambda U, W, X: uniform_outputs(MultiHead(U, W), X),
        {"U": SQUARE[None, :3], "W": 0 * SQUARE[None], "X": D["X"]},
    )
    yield Call("sign_excess", sign_excess, {"copies": COPIES})
    yield Call(
        "attention_risk_hessian",
        lambda U, W, **a: attention_risk_hessian(_last(U, W), **a),
        head | LABELLED,
    )


def _kernels() -> Iterator[Call]:
    """How far a kernel moves."""
    yield Call("aligned_directions", aligned_directions, {"X": D["z"], "W": SQUARE})
    yield Call(
        "kernel_changes",
        lambda W, a, **s: kernel_changes(SoftmaxNetwork(W, a), **s, climb=1),
        {
            "W": SQUARE,
            "a": SQUARE[:2] / 2,
            "X": D["z"],
            "radii": np.array([0.1]),
            "directions": SQUARE[None],
        },
    )
    yield Call(
        "sliced_wasserstein",
        lambda x, y: sliced_wasserstein(jax.random.key(0), x, y, projections=4),
        {"x": SQUARE, "y": SQUARE.T},
    )


def _records() -> Iterator[Call]:
    """Statistics of records: a run that is missing or diverged shows in the result."""
    runs = {"first": RISING, "last": 3 * RISING}
    yield Call("paired_ratio", paired_ratio, runs)
    yield Call("rank_correlation", rank_correlation, {"x": BOTH["y"], "y": RISING})
    yield Call("last_crossing", last_crossing, {"x": RISING, "height": BOTH["y"] - 1.5})
    values = {"values": np.array([[0.0, 1.0], [1.0, 1.0], [1.0, 2.0]])}
    steps = {"steps": np.array([0, 1, 10])}
    yield Call("settling_times", lambda **a: settling_times(**a, level=0.5), steps | values)
    yield Call("onset", onset, {"scales": RISING, "holds": MARKED})
    yield Call("decay_rate", decay_rate, {"steps": RISING, "values": 1 / RISING})
    yield Call("extrapolated_limit", extrapolated_limit, {"values": np.array([3.0, 2.0, 1.5])})
    yield Call(
        "trend_power", lambda growth: trend_power([RISING, RISING], growth), {"growth": RISING}
    )
    edges = {"edges": np.array([-2.0, -1.0, 0.0])}
    yield Call("weight_sizes", weight_sizes, {"weights": SQUARE} | edges)
    yield Call("logistic_scores", logistic_scores, {"outputs": D["z"].T, "y": D["y"]})
    points = {"points": SQUARE, "data": SQUARE.T}
    yield Call("lost_samples", lost_samples, points)
    yield Call("nearest_distances", nearest_distances, points)
    yield Call("compare_samples", lambda **a: compare_samples(KEY, **a), points)
    yield Call("interpolated", interpolated, {"at": RISING, **BOTH})
    time = {"time": BOTH["x"], "values": BOTH["y"]}
    other = {"other_time": 2 * BOTH["x"], "other_values": BOTH["y"]}
    yield Call("end_gap", end_gap, time | other)
    yield Call("entry_times", entry_times, time | {"level": np.array([2.5])})
    yield Call("at_least_risk", at_least_risk, {"values": RISING, "risk": RISING, "among": MARKED})


RECORDS = {call.name for call in _records()}
"""Behind `validate_record_arguments`: NaN and infinity pass, none is made of good numbers."""
MORE_CALLS = (*_attention(), *_selections(), *_complexity(), *_kernels(), *_records())
"""All of them."""
