"""Attention without its denominator: the class whose complexity grows with the length."""

import numpy as np
from jaxtyping import Float

from attlas.core.argument_validation import validate_arguments


@validate_arguments
def sum_pooling_suprema(
    signs: Float[np.ndarray, "s n"], tokens: Float[np.ndarray, "n T d"]
) -> Float[np.ndarray, " s"]:
    r"""A lower bound on the suprema of sum pooling, from half the linear functions of the sums.

    $$\sup_f\frac1n\sum_i\sigma_if(X_i)\ge\frac1{2n}\Big\|\sum_i\sigma_i\sum_tx_{it}\Big\|_\infty,
    \qquad f(X)=s\,{\rm relu}\Big(v^\top\sum_te^{x_t^\top Wx_{\rm CLS}}x_t\Big),\ \|v\|_1\le1$$

    At W = 0 the functions v and -v give (relu(z) - relu(-z)) / 2 = z / 2, in the convex hull.

    Args:
        signs: sign vectors, or their averages over repeated examples.

    Examples:
        >>> sum_pooling_suprema(np.array([[1.0, 1.0]]), np.ones((2, 3, 1))).tolist()
        [1.5]
    """
    sums = tokens.sum(axis=1, dtype=float)
    return np.abs(signs @ sums).max(axis=1) / (2 * len(tokens))
