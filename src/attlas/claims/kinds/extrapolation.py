r"""Which way numbers at four geometric scales go: to zero, to a plateau, on growing, or undecided.

A true statement can be slow: $1 / \log n$ falls by a quarter while n grows from $10^3$ to $10^4$,
and a ratio with such a term rises as far as any run goes. What contradicts a statement is
therefore more than what does not comply with it. Distances contradict a limit where they have
stopped falling: what is left of the fall is below a tenth of the distance, also if the steps
shrink as those of a power of log n do. A ratio contradicts a rate where it grows like a power of
the scale: its log-log slopes do not fall, while those of bounded ratios, of log n and of its
powers do. Between compliance and contradiction four scales do not suffice. A statement in which
growth like log n is to be noticed takes log n for its scale.

Where a check doubles the scales until it decides, a decision must be worth the number of tries: it
has to persist over the more doublings, the more often and the more sequences were looked at. Where
a ratio only fluctuates, its log-log slopes are of either sign and in any order. That m independent
slopes of a symmetric law are all positive, and each at least 0.95 of the one before, has the
probability of `persistence`; `doublings_needed` takes the least m at which all sequences together
stay below the error probability of the look.
"""

import numpy as np

SCALES = 4
"""Scales that a limit or rate needs."""
SHARE = 0.1
"""Below this share of a distance its limit, or what is left of its fall, counts as none."""
RISE = 0.05
"""A log-log slope may rise by this much from scale to scale and still be called settled."""
COARSEST = 0.5
"""Share of the first of four distances below which a plateau must be detected."""
FALL = 0.05
"""Share by which a log-log slope of growth may be below the one before: rounding, transients."""
CREEP = 0.25
"""Increase of 1 / (1 - r), r the quotient of two steps, that a plateau may have: it is 0 for
c + b q^k and 1 / (1 + p) for k^(-p), so that powers of the logarithm up to the third exceed it."""
HASTE = 3.0
"""Factor by which the quotient of falling steps may shrink: farther on they turn, and rise."""


def aitken_limits(distance: np.ndarray) -> np.ndarray:
    r"""Aitken's limits of the first three and of the last three of four distances.

    L_k = D_k - (D_k - D_{k-1})^2 / ((D_k - D_{k-1}) - (D_{k-1} - D_{k-2})), exactly c for
    D = c + b n^{-a}; D_k itself where the denominator is zero.

    Args:
        distance: numbers of shape (..., 4); three of them have one limit.

    Examples:
        >>> aitken_limits(3 + 1 / 2.0 ** np.arange(4)).tolist()
        [3.0, 3.0]
    """
    step = np.diff(distance, axis=-1)
    bend = np.diff(step, axis=-1)
    return distance[..., 2:] - step[..., 1:] ** 2 / np.where(bend == 0, np.inf, bend)


def vanishes(distance: np.ndarray) -> np.ndarray:
    r"""Whether distances at four geometric scales fall to zero and not to a plateau.

    With Aitken's limits L_3 and L_4 the distances fall, D_4 <= D_1 / 2, L_4 <= D_4 / 2, and either
    L_4 is below a tenth of D_4 or L falls at least as fast as D: L_4 / L_3 <= D_4 / D_3. A plateau
    keeps L while D flattens; distances that barely fall, and in equal steps, have an L far below
    zero.

    Args:
        distance: non-negative numbers of shape (..., 4).

    Examples:
        >>> n = 10.0 ** np.arange(1, 5)
        >>> vanishes(np.stack([1 / n, np.log(n) / n, 1 / n + 1 / n**2, 1 / n + 3e-5])).tolist()
        [True, True, True, False]
    """
    after, last = aitken_limits(distance)[..., 1], distance[..., -1]
    falls = np.all(np.diff(distance, axis=-1) < 0, axis=-1)
    falls &= last <= COARSEST * distance[..., 0]
    return falls & (after <= last / 2) & ((after <= SHARE * last) | _fades(distance))


def stays_away(distance: np.ndarray) -> np.ndarray:
    r"""Whether distances at four geometric scales have settled on a plateau, or grow.

    With steps $d_k$ and quotients $r_k = d_{k+1} / d_k$ in (0, 1), a plateau: what is left of the
    fall, by `left_of_fall`, is at most a tenth of the last distance. For quotients that rise,
    $1 / (1 - r)$ increases by at most a quarter. Quotients that drop announce a turn: those of
    a fall drop at most by a factor of 3, and for a rise $1 / (1 - r)$ decreases by at most a
    quarter. Growth: steps upwards, each at least as large as the one before. Equal distances are
    a plateau. Where neither this nor `vanishes` is true, four scales do not suffice.

    Args:
        distance: non-negative numbers of shape (..., 4).

    Examples:
        >>> n = 10.0 ** np.arange(1, 5)
        >>> stays_away(np.stack([1 / n, 1 / n + 0.01, n, 1 / np.log(n)])).tolist()
        [False, True, True, False]
    """
    step = np.diff(distance, axis=-1)
    first, second, third = np.moveaxis(step, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        before, after = second / first, third / second
        creep = 1 / (1 - after) - 1 / (1 - before)
        slows = (before > 0) & (before < 1) & (after > 0) & (after < 1) & (creep <= CREEP)
        steady = np.where(third < 0, after >= before / HASTE, creep >= -CREEP)
        little = left_of_fall(distance) <= SHARE * distance[..., -1]
    level = np.all(step == 0, axis=-1)
    grows = (first > 0) & (second >= first) & (third >= second)
    return level | grows | (slows & steady & little)


def plateau_in_errors(distance: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Whether the last step is within the errors, and with them below a tenth of the distance.

    Args:
        distance: non-negative numbers of shape (..., 4).
        error: possible error of each, same shape.

    Examples:
        >>> plateau_in_errors(np.array([1.0, 0.5, 0.2, 0.2]), np.full(4, 1e-3))
        np.True_
    """
    fall, width = distance[..., 2] - distance[..., 3], error[..., 2] + error[..., 3]
    least = distance[..., 3] - error[..., 3]
    return (np.abs(fall) <= width) & (np.abs(fall) + width < SHARE * least)


def left_of_fall(distance: np.ndarray) -> np.ndarray:
    r"""How far distances at four scales still move if their steps go on shrinking as they did.

    With $q_k = 1 / (1 - r_k)$ of the quotients r of steps, $q_k = q_{k-1} + m$ in every step: exact
    for $c + b q^k$, where m = 0, and for $1 / (k + b)$, where m = 1/2. Lubkin's transform subtracts
    the same from the last distance. Infinite for m of 1 and more.

    Args:
        distance: numbers of shape (..., 4) whose steps shrink.

    Examples:
        >>> k = np.arange(4)
        >>> left_of_fall(np.stack([3 + 1 / 2.0**k, 1 / (k + 1)])).round(12).tolist()
        [0.125, 0.25]
    """
    step = np.diff(distance, axis=-1)
    quotient = step[..., 1:] / step[..., :-1]
    before, after = np.moveaxis(1 / (1 - quotient), -1, 0)
    slower = np.maximum(after - before, 0)
    # The sum of all later steps over the last one, with r_k = 1 - 1 / q_k.
    share = np.where(slower < 1, (after - 1 + slower) / (1 - slower), np.inf)
    return share * np.abs(step[..., -1])


def _fades(distance: np.ndarray) -> np.ndarray:
    """Whether Aitken's limit falls at least as fast as the distance."""
    before, after = np.moveaxis(aitken_limits(distance), -1, 0)
    return after * distance[..., 2] <= np.maximum(before, 0) * distance[..., -1]


def slopes(ratio: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Log-log slopes between consecutive scales.

    Args:
        ratio: positive numbers of shape (..., k).
        scales: growing parameter, same shape.

    Examples:
        >>> n = np.array([1.0, 10.0, 1000.0])
        >>> slopes(5 / n**2, n).round(12).tolist()
        [-2.0, -2.0]
    """
    return np.diff(np.log(ratio), axis=-1) / np.diff(np.log(scales), axis=-1)


def stays_bounded(ratio: np.ndarray, scales: np.ndarray) -> np.ndarray:
    r"""Whether a ratio at four scales is bounded: settled without growth, or fading to a constant.

    Settled: the last log-log slope is not positive and rises by at most 0.05 over the one
    before, or by less than before and Aitken's limit of the slopes is not positive. Fading: the
    slopes have one sign, each at most half of the one before. A transient does not comply.

    Args:
        ratio: positive numbers of shape (..., 4).
        scales: growing parameter, same shape.

    Examples:
        >>> n = 10.0 ** np.arange(1, 5)
        >>> behind = 1 + 1000 / n + 1e-4 * n
        >>> ratios = np.stack([2 - 1 / n, 1 / n, 1 / (n * np.log(n) ** 2), n**0.1, behind])
        >>> stays_bounded(ratios, np.tile(n, (5, 1))).tolist()
        [True, True, True, False, False]
    """
    slope = slopes(ratio, scales)
    second, third = slope[..., 1], slope[..., 2]
    return ((third <= 0) & (third <= second + RISE)) | _levels(slope) | _fading(slope)


def keeps_growing(ratio: np.ndarray, scales: np.ndarray) -> np.ndarray:
    r"""Whether a ratio at four scales grows like a power of the scale, or faster.

    Its log-log slopes are positive and none falls by more than 5 %, nor as fast as those of
    $e^{\sqrt{\log n}}$, which are in proportion to $(\log n)^{-1/2}$. Those of powers of log n, and
    of ratios that rise to a bound, fall at least like $1 / \log n$.

    Args:
        ratio: positive numbers of shape (..., 4).
        scales: growing parameter, same shape.

    Examples:
        >>> n = 10.0 ** np.arange(1, 5)
        >>> ratios = np.stack([2 - 1 / n, n**0.1, 2 - 1 / np.log(n), np.log(n), 1 + 1e-5 * n])
        >>> keeps_growing(ratios, np.tile(n, (5, 1))).tolist()
        [False, True, False, False, True]
    """
    slope = slopes(ratio, scales)
    log = np.log(scales)
    middle = np.maximum((log[..., 1:] + log[..., :-1]) / 2, 0)
    share = middle[..., :-1] / np.where(middle[..., 1:] > 0, middle[..., 1:], 1)
    least = np.maximum(1 - FALL, np.sqrt(share)) * slope[..., :-1]
    return np.all(slope > 0, axis=-1) & np.all(slope[..., 1:] >= least, axis=-1)


def still_grows(ratio: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Whether a ratio at four scales grows in the end, and its log-log slopes do not halve.

    Args:
        ratio: positive numbers of shape (..., 4).
        scales: growing parameter, same shape.

    Examples:
        >>> n = 10.0 ** np.arange(1, 5)
        >>> still_grows(np.stack([2 - 1 / n, np.log(n)]), np.tile(n, (2, 1))).tolist()
        [False, True]
    """
    slope = slopes(ratio, scales)
    return (slope[..., 2] > 0) & ~_fading(slope)


def _levels(slope: np.ndarray) -> np.ndarray:
    """Whether slopes rise, by less and less, to a limit (Aitken's) that is not positive."""
    rise, later = np.moveaxis(np.diff(slope, axis=-1), -1, 0)
    return (later > 0) & (later < rise) & (aitken_limits(slope)[..., 0] <= 0)


def _fading(slope: np.ndarray) -> np.ndarray:
    """Whether slopes have one sign and each is at most half of the one before."""
    first, second, third = np.moveaxis(slope, -1, 0)
    halves = (np.abs(third) <= np.abs(second) / 2) & (np.abs(second) <= np.abs(first) / 2)
    return halves & (np.sign(first) == np.sign(third))


def persistence(slopes: int) -> float:
    r"""The probability that so many slopes of noise are positive and none falls by more than 5 %.

    $2^{-m} \prod_{k \le m} (1 + c + \dots + c^{k-1})^{-1}$ with c = 0.95, for independent slopes
    of a symmetric exponential law; at c = 1 this is $2^{-m} / m!$, whatever the law.

    Examples:
        >>> 0.25 / 1.96 < persistence(2) < 0.25 / 1.94
        True
    """
    c = 1 - FALL
    terms = [(1 - c**k) / (1 - c) for k in range(1, slopes + 1)]
    return 0.5**slopes / float(np.prod(terms))


def doublings_needed(sequences: int, alpha: float) -> int:
    """The least number of doublings over which a decision must persist, at least three.

    Args:
        sequences: number of instances, times rows of the sides.
        alpha: error probability of the look.

    Examples:
        >>> doublings_needed(64, 5e-4), doublings_needed(64, 1e-6)
        (7, 9)
    """
    slopes = 3
    while sequences * persistence(slopes) > alpha:
        slopes += 1
    return slopes
