r"""Risk of linear regression on attended tokens: how many samples a known support saves.

y = sum_j f_j <w_j, x_j> + noise with p tokens x_j in R^d and attention f on s0 of them. A known
fixed support leaves s0 d numbers to learn; a support that moves with the input leaves all p d, also
for a learner that knows f. Proof: papers/liu2021analyzing/proofs/advantage.md.
"""

import math
from typing import NamedTuple

from attlas.bounds.closed_form import closed_form
from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least, require_positive


class AttentionAdvantage(NamedTuple):
    """Samples for one risk.

    Attributes:
        known_support: sufficient where the support is fixed and known.
        moving_support: necessary where the support moves, also when the attention is known.
        factor: ratio of the two, p / s0 in the limit of small risk.
    """

    known_support: float
    moving_support: float
    factor: float


@closed_form
def least_squares_risk(n: int, parameters: int) -> float:
    r"""E ||hat w - w||_Sigma^2 / sigma^2 = P / (n - P - 1) of least squares, Gaussian inputs.

    Args:
        n: samples, at least P + 2.
        parameters: number P of parameters.

    Returns:
        The risk in units of the noise's variance.

    Raises:
        UserError: if there are too few samples, whose risk is infinite.

    Examples:
        >>> least_squares_risk(21, 10)
        1.0
    """
    require_at_least(1, parameters=parameters)
    if n < parameters + 2:
        raise UserError(f"n = {n}: the risk of {parameters} parameters is infinite, give more")
    return parameters / (n - parameters - 1)


@closed_form
def regression_risk_floor(n: int, parameters: int, ridge: float = 0.0) -> float:
    r"""The least risk that any learner has, for any law of the inputs with an invertible Sigma.

    $$R\ge\frac{\sqrt{(n+1+\kappa-P)^2+4\kappa P}-(n+1+\kappa-P)}{2\kappa},\qquad
    \kappa=0:\ \frac P{n+1-P}$$

    Bayes risk over w of law N(0, (sigma^2/kappa) Sigma^-1); kappa = 0 is the minimax risk.

    Args:
        parameters: P, at most n when kappa is 0.
        ridge: kappa; 0 gives the minimax risk.

    Returns:
        The risk in units of the noise's variance; infinite where no learner has a finite one.

    Examples:
        >>> regression_risk_floor(19, 10)
        1.0
        >>> round(regression_risk_floor(0, 2, ridge=1.0), 6)  # R / (1 + R) + R = 2
        1.414214
    """
    require_at_least(0, n=n, ridge=ridge)
    require_at_least(1, parameters=parameters)
    spare = n + 1 + ridge - parameters
    if ridge == 0:
        return parameters / spare if spare > 0 else math.inf
    root = math.sqrt(spare**2 + 4 * ridge * parameters)
    # The form without cancellation, whichever sign the difference has.
    return 2 * parameters / (root + spare) if spare > 0 else (root - spare) / (2 * ridge)


@closed_form
def attention_advantage(risk: float, p: int, s0: int, d: int = 1) -> AttentionAdvantage:
    r"""Samples for a risk of r sigma^2 with a known fixed support and with a moving one.

    $$n_{known}=s_0d\,(1+\tfrac1r)+1,\qquad n_{moving}=pd\,(1+\tfrac1r)-1$$

    Args:
        s0: attended tokens, at most p.
        d: dimension of a token.

    Returns:
        Both, and their ratio.

    Examples:
        >>> found = attention_advantage(0.01, 16, 2)
        >>> found.known_support, found.moving_support, round(found.factor, 2)
        (203.0, 1615.0, 7.96)
    """
    require_positive(risk=risk)
    require_at_least(1, s0=s0, d=d)
    if p < s0:
        raise UserError(f"p = {p} is below s0 = {s0}: attend to at most all tokens")
    fixed, moving = s0 * d * (1 + 1 / risk) + 1, p * d * (1 + 1 / risk) - 1
    return AttentionAdvantage(fixed, moving, moving / fixed)
