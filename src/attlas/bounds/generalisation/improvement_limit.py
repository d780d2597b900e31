r"""By how much one predictor is better than another, at least, from the same examples."""

import math

import numpy as np

from attlas.bounds.generalisation.betting_limit import betting_upper_limit
from attlas.bounds.generalisation.conditions import require_delta
from attlas.core.arrays import ArrayInput, read_arrays
from attlas.core.errors import UserError, refuse_unreadable


def improvement_limit(
    losses: ArrayInput,
    others: ArrayInput,
    delta: float,
    *,
    anytime: bool = False,
) -> float:
    r"""A lower limit of the mean loss less another predictor's, rounded down.

    $$1-2u,\qquad u=\texttt{betting\_upper\_limit}\Big(\frac{1-(X_i-Y_i)}2\Big)$$

    Both predictors judge the same examples: what makes an example difficult for both cancels.

    Args:
        losses: X_i of the predictor that should be worse, of shape [n], in [0, 1].
        others: Y_i of the one that should be better, of shape [n], in [0, 1].
        delta: probability of failure, in (0, 1).
        anytime: whether the limit holds after every number of examples at once.

    Returns:
        A number in [-1, 1]; the second predictor is better where it is above 0.

    Raises:
        UserError: if a loss is outside [0, 1], or an argument out of range.

    Examples:
        >>> worse, better = np.tile([1.0, 0, 1, 0], 100), np.tile([0.0, 0, 1, 0], 100)
        >>> print(f"{improvement_limit(worse, better, 0.05):.3f}")
        0.200
        >>> print(f"{improvement_limit(better, worse, 0.05):.3f}")
        -0.307
    """
    X, Y = read_arrays("n, n", np.float64, losses=losses, others=others)
    for name, values in (("losses", X), ("others", Y)):
        if values.min() < 0 or values.max() > 1:
            raise UserError(
                f"{name} from {values.min():g} to {values.max():g}: scale or clip them into [0, 1]"
            )
    # Differences of losses are off by one rounding, which the last subtraction covers.
    upper = betting_upper_limit((1 - (X - Y)) / 2, delta, anytime=anytime)
    return max(-1.0, math.nextafter(1 - 2 * upper - 2.0**-50, -math.inf))


@refuse_unreadable
def examples_to_decide(losses: ArrayInput, others: ArrayInput, delta: float) -> float:
    r"""About how many examples show which of two predictors is better; an estimate, no bound.

    $$\frac{2\hat V\ln(1/\delta)}{\bar D^2}+\frac{2\ln(1/\delta)}{|\bar D|},\qquad D_i=X_i-Y_i$$

    The size at which Bernstein's width is the mean difference, if mean and variance stay.

    Args:
        losses: X_i, of shape [n].
        others: Y_i, of shape [n].
        delta: probability of failure, in (0, 1).

    Returns:
        A number of examples; infinite where the mean losses are equal.

    Examples:
        >>> worse, better = np.tile([1.0, 0, 1, 0], 100), np.tile([0.0, 0, 1, 0], 100)
        >>> round(examples_to_decide(worse, better, 0.05))
        42
    """
    X, Y = read_arrays("n, n", np.float64, losses=losses, others=others)
    require_delta(delta)
    difference = abs(float((X - Y).mean()))
    if difference == 0:
        return math.inf
    cost = -2 * math.log(delta)
    return cost * float((X - Y).var()) / difference**2 + cost / difference
