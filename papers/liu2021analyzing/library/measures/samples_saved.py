"""How many times fewer samples one model needs than another, read off two curves of errors."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attlas.core.argument_validation import validate_record_arguments

RESAMPLES = 2000


class SamplesSaved(NamedTuple):
    """A ratio of numbers of samples and its interval.

    Attributes:
        value: the ratio; where `censored` no more than that is known: at least this.
        low: lower limit.
        high: upper limit; infinite where the grid of samples is too short for one.
        censored: whether the better model is at the error already with the fewest samples.
    """

    value: float
    low: float
    high: float
    censored: bool

    def text(self) -> str:
        """The ratio with its interval.

        Examples:
            >>> SamplesSaved(5.41, 4.03, 7.2, censored=False).text()
            '5.4 [4.0, 7.2]'
            >>> SamplesSaved(16.0, 15.0, np.inf, censored=True).text()
            'at least 15'
        """
        if not np.isfinite(self.value):
            return "not available"
        value, low, high = (f"{x:.0f}" if x > 9.95 else f"{x:.1f}" for x in self[:3])
        if self.censored:
            return f"at least {low}"
        return f"{value} [{low}, {high if np.isfinite(self.high) else 'no limit'}]"


@validate_record_arguments
def samples_saved(
    plain: Float[np.ndarray, "sizes runs"],
    known: Float[np.ndarray, "sizes runs"],
    n: Float[np.ndarray, " sizes"],
    confidence: float = 0.95,
    seed: int = 0,
) -> SamplesSaved:
    r"""$n_{\max}/n^*$, $n^*$ where the mean of `known` reaches that of `plain` at $n_{\max}$.

    Where `known` ends above `plain`, the same with the two exchanged, and its inverse. Between
    two sizes the logarithm of the error is linear in that of n. No rate of either curve
    is assumed: a ratio of errors at one n is a ratio of samples only where errors fall as 1/n.
    The interval is that of a paired bootstrap over runs, by percentiles.

    Args:
        plain: errors of the model that needs more samples.
        known: errors of the other, of the same runs.
        n: numbers of samples, growing.
        seed: of the bootstrap.

    Examples:
        >>> n, runs = np.array([10.0, 20, 40, 80]), np.ones(3)
        >>> plain, known = np.outer(8 / n, runs), np.outer((2 / n) ** 0.5, runs)
        >>> float(round(samples_saved(plain, plain / 4, n).value, 9))
        4.0
        >>> samples_saved(plain, known, n).censored, samples_saved(known, plain, n).value > 1.0
        (False, True)
    """
    runs = plain.shape[1]
    value = float(_ratios(plain.mean(1, keepdims=True), known.mean(1, keepdims=True), n)[0])
    if np.isnan(value):
        return SamplesSaved(value, value, value, censored=False)
    counts = np.random.default_rng(seed).multinomial(runs, np.full(runs, 1 / runs), RESAMPLES)
    ratios = _ratios(plain @ counts.T / runs, known @ counts.T / runs, n)
    tail, span = (1 - confidence) / 2, n[-1] / n[0]
    low, high = np.quantile(ratios, [tail, 1 - tail], method="inverted_cdf")
    high = np.inf if high >= span else high
    return SamplesSaved(value, float(low), float(high), censored=bool(value >= span))


def _ratios(plain: np.ndarray, known: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Ratios of columns: above one where `known` ends lower, else of the two exchanged."""
    lower = known[-1] <= plain[-1]
    better, worse = np.where(lower, known, plain), np.where(lower, plain, known)
    after = np.argmax(better <= worse[-1], axis=0)
    before, columns = np.maximum(after - 1, 0), np.arange(better.shape[1])
    above, below = np.log(better[before, columns]), np.log(better[after, columns])
    step = np.where(after > 0, above - below, 1.0)
    share = (above - np.log(worse[-1])) / step  # of nothing where before is after
    ratio = n[-1] / (n[before] * (n[after] / n[before]) ** share)
    unknown = np.isnan(plain).any(axis=0) | np.isnan(known).any(axis=0)
    return np.where(unknown, np.nan, np.where(lower, ratio, 1 / ratio))
