"""Linear regions of networks whose inputs are masked, weighted by softmax, or attended to."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float

from attlas.measures.attention.concentration import concentration
from attlas.training.gradient_descent import gradient_descent
from liu2021analyzing.library.data.marked_words import marked_words
from liu2021analyzing.library.measures.activation_patterns import activation_patterns
from liu2021analyzing.library.measures.frozen_regions import frozen_regions
from liu2021analyzing.library.measures.linear_regions import count_linear_regions, sampled_cells
from liu2021analyzing.library.models.self_attention_mlp import SelfAttentionMLP


def masked_regions(
    rng: np.random.Generator, n1: int, p: int, networks: int, seed: int
) -> Float[np.ndarray, "networks p counted"]:
    """Numbers of regions of random networks of which the first s0 inputs have weight.

    Args:
        rng: of the weights.
        n1: hidden units.
        p: inputs.
        networks: how many.
        seed: of the random lines.

    Returns:
        By network and s0 = 1 to p: exact, exact without biases, found by random lines.

    Examples:
        >>> found = masked_regions(np.random.default_rng(0), 3, 2, 1, 0)
        >>> found[0, :, :2].tolist()  # of lines: n1 + 1 and 2; of the plane: 7 and 2 n1
        [[4.0, 2.0], [7.0, 6.0]]
    """
    found = np.zeros((networks, p, 3))
    for k in range(networks):
        W = rng.standard_normal((n1, p))
        b, w2 = rng.standard_normal((2, n1))
        for s0 in range(1, p + 1):
            kept = W[:, :s0]
            found[k, s0 - 1] = (
                count_linear_regions(kept, w2, b),
                count_linear_regions(kept, w2),
                sampled_cells(kept, b, key=jax.random.key(1000 * seed + k)),
            )
    return found


class SoftmaxRegions(NamedTuple):
    """Of networks behind fixed softmax weights, by network and temperature.

    Attributes:
        s0: least number of weights that hold most of them.
        support: effective number of inputs, one over the sum of squares.
        met: regions that uniform points meet.
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
        rng: of networks, logits and points.
        n1: hidden units.
        p: inputs.
        networks: how many.
        temperatures: of the softmax.
        points: in the cube.

    Returns:
        Concentration and regions.

    Examples:
        >>> found = softmax_regions(np.random.default_rng(0), 3, 2, 1, [0.001, 1000.0], 100)
        >>> found.support.round(2).tolist()
        [[1.0, 2.0]]
    """
    found = np.zeros((3, networks, len(temperatures)))
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
            found[:, k, i] = of.s0[0, 0], of.participation[0], met
    return SoftmaxRegions(*found)


class TrainedRegions(NamedTuple):
    """Of one network with self-attention, by record and sharpness of its logits.

    Attributes:
        s0: least number of weights that hold most of them.
        support: effective number of inputs.
        exact: regions of the networks frozen at samples.
        met: of which uniform points meet these.
        accuracy: on the samples.
        loss: by record.
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
        rng: of samples, start and points.
        n1: hidden units.
        p: words.
        samples: of marked words.
        training: `step_size` and `steps` of gradient descent, whose ends are recorded.
        states: the record, 0 or 1, and the factor of its logits.
        frozen: samples at which attention weights are frozen.
        points: in the cube.

    Returns:
        Concentration, regions and accuracy.

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
    drawn = [math.sqrt(6 / sum(shape)) * rng.uniform(-1, 1, shape) for shape in shapes]
    parts = jax.device_put([*drawn[:4], drawn[4][:, 0], np.zeros(n1), np.zeros(())])
    W_Q, W_K, W_V, W1, w2, b1, b2 = parts
    return SelfAttentionMLP(W_Q, W_K, W_V, W1, w2, b1, b2)


@eqx.filter_jit
def _attention_and_outputs(
    model: SelfAttentionMLP, x: Float[Array, "n t p"]
) -> tuple[Array, Array]:
    """Attention matrices of the samples, column z of query z, and outputs."""
    return jax.vmap(model.attention)(x), jax.vmap(model)(x)
