r"""The mean loss of a predictor on new examples, from losses in [0, 1] that need not be 0 or 1."""

import math
from typing import Literal, get_args

import numpy as np

from attlas.bounds.generalisation.betting_limit import betting_upper_limit
from attlas.bounds.generalisation.error_sequence import error_sequence_limit
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas.bounds.generalisation.risk_bound import (
    FIXED_BEFORE,
    INDEPENDENT,
    UNIT_LOSS,
    Condition,
    RiskBound,
    require_sample,
)
from attlas.core.arrays import ArrayInput, read_arrays
from attlas.core.errors import UserError

Method = Literal["betting", "bernstein"]

AS_THEY_CAME = Condition("the examples stand in the order in which they came", False)
NO_LOOKING_BACK = Condition(
    "each example is drawn from one law, whatever was seen before it", False
)


def mean_bound(
    losses: ArrayInput,
    delta: float,
    *,
    trivial: float | int = 1,
    method: Method = "betting",
    anytime: bool = False,
) -> RiskBound:
    r"""The mean loss of a predictor, from its losses on n examples that it was not trained on.

    $$\text{betting: }\texttt{betting\_upper\_limit};\qquad\text{Bernstein: }\bar X
    +\sqrt{\frac{2\hat V\ln(2/\delta)}n}+\frac{7\ln(2/\delta)}{3(n-1)}$$

    Losses that are all 0 or 1 are counted, and their limit is the exact one of `held_out_bound`.

    Args:
        losses: X of shape [n], in [0, 1].
        delta: probability of failure, in (0, 1).
        trivial: mean loss that is reached without data.
        method: for losses between 0 and 1. The least of both methods is `union(...)`, which pays.
        anytime: whether the bound holds after every number of examples at once; then counted errors
            have the limit of `error_sequence_limit`.

    Returns:
        The bound. At other sizes it is given in Chernoff's kl form, which knows no variance.

    Arguments out of range raise a `UserError` of one line.

    Source: Waudby-Smith and Ramdas (2024); Theorem 4 of Maurer and Pontil (2009).

    Examples:
        >>> losses = np.tile([0.0, 0.1, 0.2, 0.1], 250)
        >>> for method in ("betting", "bernstein"):
        ...     print(f"{mean_bound(losses, 0.05, method=method).bound:.4f}")
        0.1057
        0.1147
    """
    (X,) = read_arrays("n", np.float64, losses=losses)
    require_sample(X.size, delta, trivial)
    if method not in get_args(Method):
        raise UserError(f"method = {method!r}: give one of {', '.join(get_args(Method))}")
    if anytime and method == "bernstein":
        raise UserError("Bernstein's bound holds at one number of examples: use method='betting'")
    mean = float(X.mean())
    if _counted(X) and not anytime:
        return held_out_bound(int(X.sum()), X.size, delta, trivial)
    bound, name = _limit(X, delta, method, anytime)
    order = (AS_THEY_CAME, NO_LOOKING_BACK) if anytime else (INDEPENDENT,)
    return RiskBound(
        name=name,
        bound=bound,
        empirical=mean,
        n=X.size,
        delta=delta,
        shares=((name, delta),),
        complexity=0.0,
        conditions=(*order, FIXED_BEFORE, UNIT_LOSS),
        at=lambda m: kl_upper_inverse(mean, -math.log(delta) / m),
        trivial=trivial,
    )


def _counted(X: np.ndarray) -> bool:
    return bool(np.isin(X, (0.0, 1.0)).all())


def _limit(X: np.ndarray, delta: float, method: Method, anytime: bool) -> tuple[float, str]:
    """The limit of the mean, and the name of its argument."""
    if _counted(X) and anytime:
        limit = error_sequence_limit(int(X.sum()), X.size, delta)
        return limit, "counted errors, at any time"
    if method == "bernstein":
        return _bernstein(X, delta), "bounded losses, empirical Bernstein"
    limit = betting_upper_limit(X, delta, anytime=anytime)
    return limit, "bounded losses, betting" + (", at any time" if anytime else "")


def _bernstein(X: np.ndarray, delta: float) -> float:
    if X.min() < 0 or X.max() > 1:
        raise UserError(
            f"losses from {X.min():g} to {X.max():g}: scale or clip the losses into [0, 1]"
        )
    if X.size < 2:
        return 1.0
    cost = math.log(2 / delta)
    spread = math.sqrt(2 * float(X.var(ddof=1)) * cost / X.size)
    limit = float(X.mean()) + spread + 7 * cost / (3 * (X.size - 1))
    return min(1.0, limit * (1 + 2.0**-40))  # above the roundings of the sums
