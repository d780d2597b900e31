r"""The bound of a held-out set: what every bound from training data stands beside."""

import math

from attlas.bounds.closed_form import closed_form
from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas.bounds.generalisation.risk_bound import (
    FIXED_BEFORE,
    INDEPENDENT,
    Condition,
    RiskBound,
    require_sample,
)

_WHOLE = Condition("errors are counted, 0 or 1 each", True)


@closed_form
def held_out_bound(errors: int, n: int, delta: float, trivial: float | int = 1) -> RiskBound:
    r"""The error rate of a predictor, from examples that it was not trained on.

    $$\sup\{p:\mathbb P({\rm Bin}(n,p)\le k)\ge\delta\}$$

    Args:
        errors: k, on the held-out set.
        delta: probability of failure, in (0, 1).
        trivial: error rate that is reached without data, such as that of guessing.

    Returns:
        The exact bound. At other sizes it is given in Chernoff's kl form, slightly larger.

    Arguments out of range raise a `UserError` of one line.

    Source: Theorem 3.3 of Langford (2005), Clopper and Pearson (1934).

    Examples:
        >>> print(held_out_bound(0, 10_010, 0.05))
        exact binomial, held-out: risk at most 0.000299 (non-vacuous), empirical 0 on n = 10010
          complexity 0 nats; delta = 0.05: binomial tail 0.05
          declared: the examples are independent draws from the law of the risk
          declared: the predictor was fixed before these examples were seen
          checked: errors are counted, 0 or 1 each
    """
    require_sample(n, delta, trivial)
    bound = binomial_upper_limit(errors, n, delta)
    rate = errors / n
    return RiskBound(
        name="exact binomial, held-out",
        bound=bound,
        empirical=rate,
        n=int(n),
        delta=delta,
        shares=(("binomial tail", delta),),
        complexity=0.0,
        conditions=(INDEPENDENT, FIXED_BEFORE, _WHOLE),
        at=lambda m: kl_upper_inverse(rate, -math.log(delta) / m),
        trivial=trivial,
    )
