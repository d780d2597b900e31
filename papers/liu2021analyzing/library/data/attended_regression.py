r"""Regression on x o f(x), with known attention weights f of norm one and a balanced teacher.

The setting of Theorem 1 and Corollary 1 of liu2021analyzing, drawn on the host: teachers whose
mean is zero without centring, and weights f that are equal, on a fixed support, or on one that
moves with the input.
"""

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
        rng: of the draws.
        p: inputs.
        d: hidden units, an even number.

    Returns:
        W1, Gaussian in its first half, and w2 of entries +-1.

    Raises:
        UserError: if d is odd.

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
        x: inputs.
        s0: weights that are not zero, at most p.
        M: the s0 largest entries of $M|x|$ have weight; the first s0 inputs when None.

    Returns:
        The inputs times their weights, whose Euclidean norm is one.

    Raises:
        UserError: if s0 is not between 1 and p.

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
    found = np.zeros_like(x)
    rows = np.arange(len(x))[:, None]
    found[rows, places] = x[rows, places] / np.sqrt(s0)
    return found


def attention_matrix(rng: np.random.Generator, p: int) -> Float[np.ndarray, "p p"]:
    """A Gaussian M whose rows have mean zero, for `attended_inputs`.

    Args:
        rng: of the draws.
        p: inputs.

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
        x: inputs.
        W1: first layer.
        w2: second layer.
        sharpness: of the softplus phi; the rectified linear unit when None.

    Returns:
        One output per input.

    Examples:
        >>> layer_outputs(np.array([[2.0, 1.0]]), np.eye(2), np.array([1.0, -3.0])).tolist()
        [-1.0]
    """
    if sharpness is None:
        return np.maximum(x @ W1, 0.0) @ w2
    return (np.logaddexp(0, sharpness * (x @ W1)) / sharpness) @ w2
