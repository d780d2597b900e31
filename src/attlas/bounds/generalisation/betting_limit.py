r"""An upper limit for the mean of losses in [0, 1], from a game that no mean allows one to win.

Whoever bets before each example that its loss is below m wins nothing in expectation if the mean is
at least m. A capital of 1/delta is then reached with probability at most delta, at any time: means
at which it is reached are refuted.
"""

import math

import numpy as np

from attlas.bounds.generalisation.conditions import require_delta
from attlas.core.arrays import ArrayInput, read_arrays
from attlas.core.errors import UserError

ORDERS = 8
"""Random orders of the examples over which the capital is averaged, at a fixed number of them."""
SHARES = (0.5, 0.75, 0.95)
"""Largest shares of the capital that one example may lose."""
_WIDTH = 2.0**-32
"""Share of the limit by which it may be above the one that is defined."""
_SLACK = 2.0**-40
"""Above the relative roundings of a pairwise sum of logarithms, of any length in use."""


def betting_upper_limit(losses: ArrayInput, delta: float, *, anytime: bool = False) -> float:
    r"""The largest mean of losses in [0, 1] that a bettor does not refute, rounded up.

    $$\sup\Big\{m:\ \frac1C\sum_c\prod_{i\le n}\big(1+\lambda_{ci}(m)(m-X_i)\big)<\frac1\delta
    \Big\},\qquad\lambda_{ci}(m)=\min\Big(\sqrt{\frac{2\ln(1/\delta)}{n\hat\sigma_{i-1}^2}},
    \frac{s_c}{1-m}\Big)$$

    $\hat\sigma_{i-1}^2$ is the variance of the losses before example i, with one loss of 1/2 and
    one variance of 1/4 added. The C bettors have the shares $s_c$ of `SHARES` and, at a fixed n,
    `ORDERS` random orders of the examples each, so that a file that was sorted does no harm.

    Args:
        losses: X_i, of shape [n].
        delta: probability of failure, in (0, 1).
        anytime: whether the limit holds at all numbers of examples at once, so that one may look
            after each and stop at will. The examples then count in the order in which they came,
            $n$ in $\lambda$ becomes $i\ln(i+1)$, and the capital the largest so far.

    Returns:
        The limit in [0, 1], relatively at most 2^-32 above the one that is defined; it is 1 where
        no mean is refuted.

    Raises:
        UserError: if a loss is outside [0, 1], or an argument out of range.

    Source: Waudby-Smith and Ramdas (2024), section 4.1 (predictable plug-in), one-sided; the mean
    over orders and shares is again a martingale. papers/attlas_bounds/proofs/predictions.md.

    Examples:
        >>> losses = np.tile([0.0, 0.1, 0.2, 0.1], 250)
        >>> print(f"{betting_upper_limit(losses, 0.05):.4f}")
        0.1057
        >>> betting_upper_limit(np.ones(5), 0.05)
        1.0
    """
    require_delta(delta)
    (X,) = read_arrays("n", np.float64, losses=losses)
    if X.min() < 0 or X.max() > 1:
        raise UserError(
            f"losses from {X.min():g} to {X.max():g}: scale or clip the losses into [0, 1]"
        )
    orders = X[None] if anytime else _orders(X)
    stakes = np.stack([_stakes(order, delta, anytime) for order in orders])
    low, high, needed = 0.0, 1.0, -math.log(delta)
    while high - low > _WIDTH * high:
        m = (low + high) / 2
        if _log_capital(orders, stakes, m, anytime) >= needed:
            high = m
        else:
            low = m
    return high


def _orders(X: np.ndarray) -> np.ndarray:
    """Random orders, the same for every sample of this size."""
    rng = np.random.default_rng(X.size)
    return np.stack([rng.permutation(X) for _ in range(ORDERS)])


def _stakes(X: np.ndarray, delta: float, anytime: bool) -> np.ndarray:
    """The stake on each example, before it is limited: it depends on the examples before alone."""
    count = np.arange(1, X.size + 1)
    mean = (0.5 + np.cumsum(X)) / (count + 1)
    spread = 0.25 + np.cumsum((X - mean) ** 2)
    variance = np.concatenate([[0.25], spread[:-1] / (count[:-1] + 1)])
    horizon = count * np.log(count + 1) if anytime else X.size
    return np.sqrt(-2 * math.log(delta) / (horizon * variance))


def _log_capital(X: np.ndarray, stakes: np.ndarray, m: float, anytime: bool) -> float:
    """The logarithm of the capital, rounded down; at any time the largest that was reached."""
    logs, stake = [], float(stakes.max())
    # Bettors whose largest share is never reached are one and the same.
    for share in SHARES if stake > SHARES[0] / (1 - m) else SHARES[:1]:
        gains = np.log1p(np.minimum(stakes, share / (1 - m)) * (m - X))
        logs.append(_sums(gains, anytime))
    table = np.concatenate(logs)  # a bettor a row; a time a column
    top = table.max(axis=0)
    return float((top + np.log(np.exp(table - top).mean(axis=0))).max())


def _sums(gains: np.ndarray, anytime: bool) -> np.ndarray:
    if anytime:
        return np.cumsum(gains, axis=1) - _SLACK * np.cumsum(np.abs(gains), axis=1)
    return (gains.sum(axis=1) - _SLACK * np.abs(gains).sum(axis=1))[:, None]
