"""The attention SVM as constraints: what is checked, the operator, and numbers per token."""

import numpy as np

from attlas.core.errors import UserError
from attlas.solvers.constraints import AttentionRows


def attention_rows(X: np.ndarray, z: np.ndarray, tokens: np.ndarray) -> AttentionRows:
    """The constraints as an operator, t running over the tokens that are not selected.

    Args:
        X: tokens, [b, n, T, d], float64.
        z: queries, [b, n, d].
        tokens: selected tokens, [b, n].

    Examples:
        >>> X, z = np.array([[[[2.0], [-1.0]]]]), np.ones((1, 1, 1))
        >>> attention_rows(X, z, np.zeros((1, 1), int)).apply(np.ones((1, 1))).tolist()
        [[3.0]]
    """
    b, n, size, d = X.shape
    # Tokens are taken as wholes, which is much faster than number by number.
    first, flat = size * np.arange(b * n).reshape(b, n), X.reshape(-1, d)
    best = np.take(flat, first + tokens, axis=0)[:, :, None]
    others = np.take(flat, first[..., None] + _others(tokens, size), axis=0)
    return AttentionRows(np.subtract(best, others, out=others), z)


def _others(tokens: np.ndarray, size: int) -> np.ndarray:
    """Indices of the tokens that are not selected, in order, [b, n, T - 1]."""
    index = np.arange(size - 1)
    return index + (index >= tokens[..., None])


def scatter_others(values: np.ndarray, tokens: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of the constraints as [b, n, T], with 0 at the selected tokens.

    Args:
        values: one number per constraint, [b, n (T - 1)] or without batch.
        tokens: selected tokens, [b, n].
        shape: shape of the tokens X, [b, n, T, d].

    Examples:
        >>> scatter_others(np.array([[5.0, 6.0]]), np.array([[1]]), (1, 1, 3, 2)).tolist()
        [[[5.0, 0.0, 6.0]]]
    """
    b, n, size, _ = shape
    full = np.zeros((b, n, size))
    index = _others(tokens, size)
    np.put_along_axis(full, index, values.reshape(b, n, size - 1), axis=-1)
    return full


def check_problem(X: np.ndarray, z: np.ndarray, tokens: np.ndarray) -> None:
    """Check the arrays of an attention SVM of tokens X [b, n, T, d].

    Examples:
        >>> check_problem(np.ones((1, 1, 2, 3)), np.ones((1, 1, 3)), np.full((1, 1), 2))
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: tokens holds 2, outside [0, 2): give 0-based token indices
    """
    b, n, size, d = X.shape
    if 0 in (b, n, d):
        raise UserError(f"X has shape {X.shape[-3:]} in a batch of {b}: give at least one sample")
    if size < 2:
        raise UserError("X has one token per sample: the attention SVM needs T >= 2")
    if z.shape != (b, n, d):
        raise UserError(f"z has shape {z.shape[-2:]}, X requires {(n, d)}: one query per sample")
    if tokens.shape != (b, n):
        raise UserError(f"tokens has shape {tokens.shape}, X requires {(b, n)}: one per sample")
    if not np.issubdtype(tokens.dtype, np.integer):
        raise UserError(f"tokens has dtype {tokens.dtype}: give integer token indices")
    if tokens.min() < 0 or tokens.max() >= size:
        wrong = tokens[(tokens < 0) | (tokens >= size)][0]
        raise UserError(f"tokens holds {wrong}, outside [0, {size}): give 0-based token indices")
