r"""Regression on x o f(x), with known attention weights f of norm one and a balanced teacher.

The setting of Theorem 1 and Corollary 1 of liu2021analyzing, drawn on the host: teachers whose
mean is zero without centring, and weights f that are equal, on a fixed support, or on one that
moves with the input.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Float

from attlas.core.errors import UserError

Inputs = Float[np.ndarray, "n p"]


def balanced_layers(
    rng: np.random.Generator, p: int, d: int
) -> tuple[Float[np.ndarray, "p d"], Float[np.ndarray, " d"]]:
    r"""Layers of a two-layer teacher whose mean is zero where the signs of inputs are fair coins.

    Half of the units are the others with the signs of every other input changed, and opposite
    weights in the output. All output weights have one size: a unit that hardly counts would lower
    the number of parameters.

    Args:
        d: hidden units, an even number.

    Returns:
        W1, Gaussian in its first half, and w2 of entries +-1.

    Examples:
        >>> W1, w2 = balanced_layers(np.random.default_rng(0), 2, 2)
        >>> (W1[:, 0] / W1[:, 1]).tolist(), float(w2.sum())
        ([1.0, -1.0], 0.0)
    """
    if d % 2:
        raise UserError(f"d = {d} is odd: a balanced teacher has an even number of units")
    W1 = rng.standard_normal((p, d // 2))
    # Both signs in turn: with one sign on a whole support the halves would cancel there.
    signs = np.where(np.arange(p) % 2, -1.0, 1.0)[:, None]
    w2 = rng.choice([-1.0, 1.0], d // 2)
    return np.hstack([W1, signs * W1]), np.r_[w2, -w2]


def attended_inputs(x: Inputs, s0: int, M: Float[np.ndarray, "p p"] | None = None) -> Inputs:
    r"""$x\circ f(x)$ for s0 equal weights $f_j=s_0^{-1/2}$, at fixed or at moving places.

    Args:
        s0: weights that are not zero, at most p.
        M: the s0 largest entries of $M|x|$ have weight; the first s0 inputs when None.

    Returns:
        The inputs times their weights, whose Euclidean norm is one.

    Examples:
        >>> x = np.array([[0.5, -2.0, 1.0, 1.0]])
        >>> attended_inputs(x, 1).tolist(), attended_inputs(x, 1, np.eye(4)).tolist()
        ([[0.5, 0.0, 0.0, 0.0]], [[0.0, -2.0, 0.0, 0.0]])
    """
    if not 1 <= s0 <= x.shape[1]:
        raise UserError(f"s0 = {s0}: between 1 and all {x.shape[1]} inputs can have weight")
    places = np.broadcast_to(np.arange(s0), (len(x), s0))
    if M is not None:
        places = np.argpartition(-np.abs(x) @ M.T, s0 - 1, axis=1)[:, :s0]
    attended = np.zeros_like(x)
    rows = np.arange(len(x))[:, None]
    attended[rows, places] = x[rows, places] / np.sqrt(s0)
    return attended


def attention_matrix(rng: np.random.Generator, p: int) -> Float[np.ndarray, "p p"]:
    """A Gaussian M whose rows have mean zero, for `attended_inputs`.

    Returns:
        M; with other means some rows would be the largest whatever x is.

    Examples:
        >>> M = attention_matrix(np.random.default_rng(0), 3)
        >>> bool(np.all(np.abs(M.sum(axis=1)) < 1e-15))
        True
    """
    M = rng.standard_normal((p, p))
    return M - M.mean(axis=1, keepdims=True)


def layer_outputs(
    x: Inputs,
    W1: Float[np.ndarray, "p d"],
    w2: Float[np.ndarray, " d"],
    sharpness: float | None = None,
) -> Float[np.ndarray, " n"]:
    r"""$w_2'\phi(W_1'x)$ on the host, in double precision.

    Args:
        sharpness: tau_0 of the softplus phi; the rectified linear unit when None.

    Examples:
        >>> layer_outputs(np.array([[2.0, 1.0]]), np.eye(2), np.array([1.0, -3.0])).tolist()
        [-1.0]
    """
    if sharpness is None:
        return np.maximum(x @ W1, 0.0) @ w2
    return (np.logaddexp(0, sharpness * (x @ W1)) / sharpness) @ w2


Task = tuple[Float[np.ndarray, "n p"], Float[np.ndarray, " n"]]


def attended_tasks(
    rng: np.random.Generator, p: int, d: int, s0: Sequence[int], n: int, fresh: int
) -> Iterator[Task]:
    r"""What a student reads and the truth $w_2'(W_1'(x\circ f(x)))_+$, for each f and student.

    First equal weights f; then weights on s0 fixed places, for each s0, and on s0 moving places.
    Each of the latter comes twice: for a student that knows f and reads x o f(x), and for one
    that reads x.

    Args:
        d: hidden units of the teacher, an even number.
        s0: sizes of the support.
        n: samples to train on.
        fresh: number of further samples, over which the truth has standard deviation one.

    Yields:
        Inputs of a student, n + fresh of them, and the truth.

    Examples:
        >>> tasks = list(attended_tasks(np.random.default_rng(0), 4, 2, [2], 5, 100))
        >>> len(tasks), tasks[0][0].shape, (tasks[2][0][0] == tasks[4][0][0]).all().item()
        (5, (105, 4), True)
    """
    W1, w2 = balanced_layers(rng, p, d)
    x = rng.uniform(-1, 1, (n + fresh, p))
    M = attention_matrix(rng, p)
    inputs = [attended_inputs(x, size, where) for where in (None, M) for size in s0]
    for k, u in enumerate([x / np.sqrt(p), *inputs]):
        truth = layer_outputs(u, W1, w2)
        truth /= truth[n:].std()
        yield u, truth
        if k:
            yield x, truth
