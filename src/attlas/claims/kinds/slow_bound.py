r"""Bounds that fall like a power of the logarithm, compared in their own form.

From the scale 16 to $2^{53}$, beyond which whole scales are not exact, $1 / \log t$ falls by a
factor of 13 alone: a ratio to such a bound is bounded or not whatever its slope is at scales that
can be run. Decidable is whether one constant serves all these scales: a sequence complies where its
ratio stays, up to $2^{53}$, below the largest one that any instance has shown. A ratio whose last
step in log t is no steeper than the one before is continued by a line as steep as that, one that
turned to rise by a line as steep as the steepest of three steps. Else the bound is continued as
$(\log t + b)^{-q}$, and the left side as the power of log t or t that it followed last, or as it is
where it fell.
"""

import numpy as np

from attlas.claims.kinds.extrapolation import SCALES, slopes

FARTHEST = 53 * float(np.log(2))
"""Logarithm of the scale up to which the sides are continued."""
_POWER = 3.0
"""Largest power of the logarithm."""
_CLOSE = 0.01
"""Relative error with which a bound agrees with a power of the logarithm at all its scales."""


def logarithmic_bound(right: np.ndarray, scales: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""The power q and the last $\log t + b$ of bounds $(\log t + b)^{-q}$; q is NaN for others.

    The log-log slope is $-q / (\log t + b)$, so that its inverse is linear in log t.

    Args:
        right: positive bounds, shape (..., k).
        scales: growing parameter, same shape.

    Examples:
        >>> t = 2.0 ** np.arange(4, 12)
        >>> power, last = logarithmic_bound(np.stack([1 / np.log(t), 1 / t]), np.stack([t, t]))
        >>> power.round(1).tolist(), float(last[0].round(1)), float(np.log(t[-1]).round(1))
        ([1.0, nan], 7.6, 7.6)
    """
    log = np.log(scales)
    middle = (log[..., 1:] + log[..., :-1]) / 2
    with np.errstate(all="ignore"):
        inverse = -1 / slopes(right, scales)
        power = (middle[..., -1] - middle[..., 0]) / (inverse[..., -1] - inverse[..., 0])
        last = power * inverse[..., -1] + log[..., -1] - middle[..., -1]
        terms = last[..., None] + log - log[..., -1:]
        fitted = right[..., -1:] * (terms / last[..., None]) ** -power[..., None]
        fits = np.all(np.abs(fitted - right) <= _CLOSE * right, axis=-1) & (terms[..., 0] > 0)
        fits &= (power > 0) & (power <= _POWER * (1 + _CLOSE))
    return np.where(fits, power, np.nan), last


def stays_below(left: np.ndarray, right: np.ndarray, scales: np.ndarray) -> np.ndarray:
    r"""Which ratios to a logarithmic bound stay below the largest one shown, up to $2^{53}$.

    Args:
        left: sides of all instances, shape (instances, rows, scales); `right` and `scales` alike.

    Returns:
        Truth values, shape (instances, rows); False where the bound is of another form.

    Examples:
        >>> t = 2.0 ** np.arange(4, 16)
        >>> left = np.stack([0.5 / np.log(t), 1e-3 + 0 * t, 0.1 + 0 * t])[:, None]
        >>> stays_below(left, 1 / np.log(t) + 0 * left, t + 0 * left)[:, 0].tolist()
        [True, True, False]
    """
    positive = np.all(right > 0, axis=-1)
    safe = np.where(positive[..., None], right, 1.0)
    with np.errstate(all="ignore"):
        power, last = logarithmic_bound(safe, scales)
        ratio = np.where(positive[..., None], np.abs(left) / safe, 0.0)
        size, log = np.abs(left)[..., -SCALES:], np.log(scales[..., -SCALES:])
        ahead = np.maximum(FARTHEST - log[..., -1], 0)
        rise = np.diff(ratio[..., -SCALES:], axis=-1) / np.diff(log, axis=-1)
        turned, now = np.any(rise < 0, axis=-1), rise[..., -1]
        bends = (now <= rise[..., -2]) | turned
        steep = np.where(turned & (now > 0), np.abs(rise).max(axis=-1), np.maximum(now, 0))
        on_line = ratio[..., -1] + steep * ahead
        bound = safe[..., -1] * ((last + ahead) / last) ** -power
        on_power = size.max(axis=-1) * _growth(size, log, last, ahead) / bound
        end = np.where(bends, on_line, on_power)
        constant = ratio.max(axis=-1).max(axis=0, keepdims=True)
        return positive & np.isfinite(power) & (end <= constant)


def _growth(size: np.ndarray, log: np.ndarray, last: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """The factor by which sides at four scales grow until the farthest one, at least 1.

    As the power of the logarithm that they followed last, if their log-log slopes fall as fast as
    those of one; else as the power of the scale.
    """
    slope = np.nan_to_num(np.diff(np.log(size)) / np.diff(log), nan=np.inf)
    terms = last[..., None] + log - log[..., -1:]
    middle = (terms[..., 1:] + terms[..., :-1]) / 2
    fades = np.all(np.diff(slope * middle) <= 0, axis=-1)
    most = np.maximum(slope.max(axis=-1), 0)
    as_logarithm = ((last + ahead) / last) ** np.maximum(slope[..., -1] * middle[..., -1], 0)
    return np.where(fades, as_logarithm, np.exp(most * ahead))
