r"""Digits as sequences of tokens: real data for token selection and for classifiers.

An image is the sequence of its rows or patches, pixels scaled to [0, 1].
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attlas.core.errors import UserError, refuse_unreadable
from attlas.data.digits import cut_tokens, load_digits
from attlas.data.splits import Split
from attlas.data.token_selection import TokenSelection
from attlas.data.token_sequences import TokenSequences


def load_digit_tokens(
    classes: tuple[int, int] = (3, 8),
    tokens: str = "rows",
    query: str = "mean",
    count: int | None = None,
    unit_sphere: bool = True,
    seed: int = 0,
    dtype: type = float,
) -> TokenSelection:
    r"""Training images of two digits as a token selection problem.

    The value head is the difference of the classes' mean tokens, v = m_+ - m_-, brought to
    unit length, so that a token's score y_i v' X_it measures its evidence for its class.
    On the unit sphere a blank token has no direction: it is given equal entries.

    Args:
        classes: digit with label +1, digit with label -1.
        tokens: rows (T = 8, d = 8) or patches (T = 16, d = 4).
        query: z_i is the mean token of the image, or its first one.
        count: number of images, both classes alternating; all when None.
        unit_sphere: whether tokens and queries are divided by their l_2 norms.

    Returns:
        X [n, T, d], y in {+1, -1}, z [n, d], v [d].

    Raises:
        UserError: if the query is unknown, or there are not that many images.

    Examples:
        >>> data = load_digit_tokens(count=6)
        >>> data.X.shape, data.y.tolist()
        ((6, 8, 8), [1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    """
    if query not in ("mean", "first"):
        raise UserError(f"query = '{query}' is unknown: choose mean or first")
    split = load_digits(seed, classes).train
    positive, negative = (np.flatnonzero(split.labels == digit) for digit in classes)
    pairs = min(positive.size, negative.size)
    order = np.stack([positive[:pairs], negative[:pairs]], axis=1).ravel()
    if count is not None and not 0 < count <= order.size:
        raise UserError(f"count = {count} images: choose 1 to {order.size}")
    indices = order[:count]
    X = cut_tokens(split.inputs, tokens)[indices].astype(float) / 16
    y = np.where(split.labels[indices] == classes[0], 1.0, -1.0)
    z = X.mean(axis=1) if query == "mean" else X[:, 0]
    means = cut_tokens(split.inputs, tokens).astype(float).mean(axis=1)
    v = means[positive].mean(axis=0) - means[negative].mean(axis=0)
    if unit_sphere:
        X, z = _on_sphere(X), _on_sphere(z)
    arrays = (jnp.asarray(a.astype(dtype)) for a in (X, y, z, v / np.linalg.norm(v)))
    return TokenSelection(*arrays)


@refuse_unreadable
def digit_sequences(split: Split, tokens: str = "rows") -> TokenSequences:
    """Images of digits as sequences for the question: is the digit odd?

    Args:
        split: images [n, 8, 8] with values 0 to 16, and their digits.
        tokens: rows or patches.

    Returns:
        Continuous tokens in [0, 1] of NumPy's float64, a mask without padding, labels 1 for odd.

    Examples:
        >>> digit_sequences(load_digits().test).tokens.shape
        (359, 8, 8)
    """
    cut = cut_tokens(split.inputs, tokens).astype(float) / 16
    mask = np.ones(cut.shape[:2], bool)
    return TokenSequences(cut, mask, (split.labels % 2).astype(float))


@refuse_unreadable
def row_information(data: TokenSequences) -> Float[np.ndarray, " T"]:
    r"""How far each token alone separates the two classes.

    Fisher's discriminability J_t = (m_1 - m_0)' (S + eps I)^{-1} (m_1 - m_0), with the class
    means m and the pooled within-class covariance S of token t, and eps a thousandth of the mean
    variance of all pixels, for pixels that never change.

    Args:
        data: continuous tokens of two classes.

    Returns:
        J, one number per token; the largest is at the token with most class information.

    Raises:
        UserError: if all sequences are equal.

    Examples:
        >>> int(np.argmax(row_information(digit_sequences(load_digits().train))))
        5
    """
    tokens = np.asarray(data.tokens, float)
    labels = np.asarray(data.labels)
    groups = [tokens[labels == label] for label in (0, 1)]
    ridge = np.var(tokens, axis=0).mean() / 1000
    if not ridge > 0:
        raise UserError("the tokens of all sequences are equal: nothing separates their classes")
    scores = []
    for t in range(tokens.shape[1]):
        gap = groups[1][:, t].mean(axis=0) - groups[0][:, t].mean(axis=0)
        centred = np.concatenate([g[:, t] - g[:, t].mean(axis=0) for g in groups])
        within = centred.T @ centred / len(centred) + ridge * np.eye(gap.size)
        scores.append(gap @ np.linalg.solve(within, gap))
    return np.array(scores)


def _on_sphere(array: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(array, axis=-1, keepdims=True)
    return np.where(norm > 0, array / np.where(norm > 0, norm, 1), 1 / np.sqrt(array.shape[-1]))
