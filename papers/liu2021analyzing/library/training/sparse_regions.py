"""Linear regions of networks whose inputs are masked, weighted by softmax, or attended to."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.measures.attention.concentration import concentration
from attlas.training.gradient_descent import gradient_descent
from liu2021analyzing.library.measures.linear_regions import (
    activation_patterns,
    count_linear_regions,
    frozen_regions,
    sampled_cells,
)
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP


def masked_regions(
    rng: np.random.Generator, n1: int, p: int, networks: int, seed: int
) -> Float[np.ndarray, "networks p counted"]:
    """Numbers of regions of random networks of which the first s0 inputs have weight.

    Returns:
        By network and s0 = 1 to p: exact, exact without biases, found by random lines.

    Examples:
        >>> found = masked_regions(np.random.default_rng(0), 3, 2, 1, 0)
        >>> found[0, :, :2].tolist()  # of lines: n1 + 1 and 2; of the plane: 7 and 2 n1
        [[4.0, 2.0], [7.0, 6.0]]
    """
    counts = np.zeros((networks, p, 3))
    for k in range(networks):
        W = rng.standard_normal((n1, p))
        b, w2 = rng.standard_normal((2, n1))
        for s0 in range(1, p + 1):
            leading = W[:, :s0]
            counts[k, s0 - 1] = (
                count_linear_regions(leading, w2, b),
                count_linear_regions(leading, w2),
                sampled_cells(leading, b, key=jax.random.key(1000 * seed + k)),
            )
    return counts


class SoftmaxRegions(NamedTuple):
    """Networks behind fixed softmax weights, by network and temperature.

    Attributes:
        s0: least number of weights that hold 90 % of the norm.
        support: effective number of inputs, one over the sum of squares.
        met: number of regions that uniform points meet.
    """

    s0: Float[np.ndarray, "networks temperatures"]
    support: Float[np.ndarray, "networks temperatures"]
    met: Float[np.ndarray, "networks temperatures"]


def softmax_regions(
    rng: np.random.Generator,
    n1: int,
    p: int,
    networks: int,
    temperatures: Sequence[float],
    points: int,
) -> SoftmaxRegions:
    """Regions that uniform points meet where weights are a softmax: no input has weight zero.

    Args:
        points: number of uniform points of the cube.

    Examples:
        >>> found = softmax_regions(np.random.default_rng(0), 3, 2, 1, [0.001, 1000.0], 100)
        >>> found.support.round(2).tolist()
        [[1.0, 2.0]]
    """
    measured = np.zeros((3, networks, len(temperatures)))
    cube = rng.uniform(-1, 1, (points, p))
    for k in range(networks):
        W, b = rng.standard_normal((n1, p)), 0.3 * rng.standard_normal(n1)
        logits = rng.standard_normal(p)
        for i, temperature in enumerate(temperatures):
            f = np.exp((logits - logits.max()) / temperature)
            f = f / f.sum()
            of = concentration(f[None])
            # Model (3) has weights of Euclidean norm one.
            met = activation_patterns(W * (f / np.linalg.norm(f))[None, :], b, cube)
            measured[:, k, i] = of.s0[0, 0], of.participation[0], met
    return SoftmaxRegions(*measured)


class TrainedRegions(NamedTuple):
    """One network with self-attention, by record and sharpness of its logits.

    Attributes:
        s0: least number of weights that hold 90 % of the norm.
        support: effective number of inputs.
        exact: regions of the networks whose attention is frozen at samples.
        met: regions among these that uniform points meet.
        accuracy: training accuracy.
        loss: training loss by record.
    """

    s0: Float[np.ndarray, " states"]
    support: Float[np.ndarray, " states"]
    exact: Float[np.ndarray, " states"]
    met: Float[np.ndarray, " states"]
    accuracy: Float[np.ndarray, " states"]
    loss: Float[np.ndarray, " records"]


def trained_regions(
    rng: np.random.Generator,
    n1: int,
    p: int,
    samples: int,
    training: Mapping[str, Any],
    states: Sequence[tuple[int, float]],
    frozen: int,
    points: int,
) -> TrainedRegions:
    """Attention before and after training, and the regions that its frozen networks have.

    Args:
        samples: number of samples of marked words.
        training: `step_size` and `steps` of gradient descent, whose ends are recorded.
        states: the record, 0 or 1, and the factor of its logits.
        frozen: samples at which attention weights are frozen.
        points: number of uniform points of the cube.

    Examples:
        >>> rng, training = np.random.default_rng(0), {"step_size": 0.3, "steps": 3}
        >>> trained_regions(rng, 3, 2, 4, training, [(0, 1.0), (1, 5.0)], 2, 10).loss.shape
        (2,)
    """
    x, y = (jax.device_put(part) for part in marked_words(rng, samples, p))
    ends = (0, int(training["steps"]) - 1)
    path = gradient_descent(_xavier(rng, p, n1), x, y, record_at=ends, **training)
    cube, rows = rng.uniform(-1, 1, (points, p)), []
    for record, sharper in states:
        model = path.at(record)
        model = eqx.tree_at(lambda m: m.W_Q, model, sharper * model.W_Q)
        weights, outputs = (np.asarray(part) for part in _attention_and_outputs(model, x))
        of = concentration(np.swapaxes(weights, 1, 2).reshape(-1, p))
        right = np.mean(outputs * np.asarray(y) > 0)
        regions = frozen_regions(model, weights[:frozen], cube)
        rows.append((of.s0.mean(), of.participation.mean(), *regions, right))
    s0, support, exact, met, right = np.transpose(rows)
    return TrainedRegions(s0, support, exact, met, right, np.asarray(path.loss))


def _xavier(rng: np.random.Generator, p: int, n1: int) -> SelfAttentionMLP:
    """Xavier's uniform start; values of one dimension, queries and keys of two."""
    shapes = ((2, 3), (2, 3), (1, 3), (p, n1), (n1, 1))
    matrices = [math.sqrt(6 / sum(shape)) * rng.uniform(-1, 1, shape) for shape in shapes]
    arrays = jax.device_put([*matrices[:4], matrices[4][:, 0], np.zeros(n1), np.zeros(())])
    W_Q, W_K, W_V, W1, w2, b1, b2 = arrays
    return SelfAttentionMLP(W_Q, W_K, W_V, W1, w2, b1, b2)


@eqx.filter_jit
def _attention_and_outputs(
    model: SelfAttentionMLP, x: Float[Array, "n t p"]
) -> tuple[Array, Array]:
    """Attention matrices of the samples, column z of query z, and outputs."""
    return jax.vmap(model.attention)(x), jax.vmap(model)(x)


def marked_words(
    rng: np.random.Generator, n: int, p: int
) -> tuple[Float[np.ndarray, "n 3 p"], Float[np.ndarray, " n"]]:
    """Samples of p words with a sign, a mark and noise; the label is the sign of the marked word.

    Returns:
        Words as columns, and labels +-1.

    Examples:
        >>> x, y = marked_words(np.random.default_rng(0), 4, 5)
        >>> x[:, 1].sum(axis=1).tolist(), ((x[:, 0] * x[:, 1]).sum(axis=1) == y).tolist()
        ([1.0, 1.0, 1.0, 1.0], [True, True, True, True])
    """
    if n < 1 or p < 1:
        raise UserError(f"n = {n}, p = {p}: give at least one sample and one word")
    signs, marked = rng.choice([-1.0, 1.0], (n, p)), rng.integers(p, size=n)
    x = np.stack([signs, np.eye(p)[marked], rng.uniform(-1, 1, (n, p))], axis=1)
    return x, signs[np.arange(n), marked]
