"""Words of which one is marked: what attention to a single word can learn."""

import numpy as np
from jaxtyping import Float

from attlas.core.errors import UserError


def marked_words(
    rng: np.random.Generator, n: int, p: int
) -> tuple[Float[np.ndarray, "n 3 p"], Float[np.ndarray, " n"]]:
    """Samples of p words with a sign, a mark and noise; the label is the sign of the marked word.

    Args:
        rng: of the draws.
        n: samples.
        p: words.

    Returns:
        Words as columns, and labels +-1.

    Raises:
        UserError: if a size is not positive.

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
