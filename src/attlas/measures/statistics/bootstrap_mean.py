"""Bootstrap intervals of means over independent units, such as sequences."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.arrays import ArrayInput, read_array
from attlas.core.errors import UserError

# Columns whose resampled means are held at once: a few megabytes.
_COLUMNS = 512


class BootstrapMean(NamedTuple):
    """One entry per column of the values.

    Attributes:
        mean: mean over the units.
        low: lower end of the percentile interval; NaN where there is one unit.
        high: upper end.
    """

    mean: Float[np.ndarray, "*shape"]
    low: Float[np.ndarray, "*shape"]
    high: Float[np.ndarray, "*shape"]


def bootstrap_mean(
    values: ArrayInput, *, draws: int = 1000, level: float = 0.95, seed: int = 0
) -> BootstrapMean:
    r"""Percentile bootstrap of means: units are drawn with replacement, all columns together.

    $$\bar g^{*}=\frac1n\sum_u N_u g_u,\qquad N\sim\text{multinomial}(n;1/n,\dots,1/n)$$

    A unit must be independent of the others: a sequence, never a row of it. All columns share the
    draws, so that a difference of columns has its own bootstrap interval.

    Args:
        values: one number per unit and column, units first, [n, ...]; a column with a NaN
            gives NaN.

    Raises:
        UserError: for no units, a level out of its range, or fewer draws than the level needs.

    Source: Efron (1979), the percentile interval.

    Examples:
        >>> found = bootstrap_mean(np.arange(100.0))
        >>> float(found.mean), bool(found.low < 49.5 < found.high)
        (49.5, True)
        >>> float(bootstrap_mean([[3.0]]).low[0])
        nan
    """
    array = read_array(values, "values")
    if array.ndim < 1 or array.shape[0] == 0:
        raise UserError(f"values of shape {array.shape}: give at least one unit, units first")
    if not 0 < level < 1 or draws * (1 - level) < 2:
        raise UserError(
            f"level = {level} with {draws} draws: choose a level in (0, 1) and at least "
            "2 / (1 - level) draws"
        )
    n, shape = array.shape[0], array.shape[1:]
    flat = array.reshape(n, -1).astype(np.float64)
    ends = np.full((2, flat.shape[1]), np.nan)
    if n > 1:
        counts = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=draws) / n
        for start in range(0, flat.shape[1], _COLUMNS):
            columns = slice(start, start + _COLUMNS)
            tails = (0.5 * (1 - level), 0.5 * (1 + level))
            ends[:, columns] = np.quantile(counts @ flat[:, columns], tails, axis=0)
    low, high = ends.reshape(2, *shape)
    return BootstrapMean(flat.mean(axis=0).reshape(shape), low, high)
