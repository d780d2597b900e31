"""The printed rates of julistiono2024optimizing, without their constants."""

import numpy as np

from attlas.bounds.closed_form import closed_form


@closed_form
def julistiono2024_rate(x: np.ndarray, p: float) -> np.ndarray:
    r"""Lemma 29's rate in the norm, and with x = log k that of the rate theorem.

    $$\frac{\log x}{x}\ (p>2),\qquad \frac{(\log x)^2}{x}\ (p=2),\qquad x^{-(p-1)}\ (p<2)$$

    Source: Lemma 29 and the rate theorem of julistiono2024optimizing.

    Args:
        x: norm of W, above 1; or log k. The rate is taken entrywise.
        p: exponent of the training, above 1.

    Examples:
        >>> julistiono2024_rate(np.array([100.0]), 1.5).tolist()
        [0.1]
    """
    if p < 2:
        return x ** -(p - 1)
    return np.log(x) ** (2 if p == 2 else 1) / x
