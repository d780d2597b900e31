r"""A lower limit of the F1 score of a class, exact although the score is no mean.

Examples that neither are of the class nor are predicted to be leave the score as it is. Of the
others a share q is wrong, and the score is a decreasing function of q alone, whose exact limits are
those of a binomial count.
"""

from attlas.bounds.closed_form import closed_form
from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit
from attlas.bounds.generalisation.conditions import require_delta
from attlas.bounds.generalisation.error_sequence import error_sequence_limit
from attlas.core.errors import UserError

_SAFE = 1 - 2.0**-50
"""Below the roundings of two differences and a quotient."""


@closed_form
def f_score_lower_limit(
    true_positives: int, errors: int, delta: float, *, anytime: bool = False
) -> float:
    r"""The lower limit of an F1 score, rounded down.

    $$\frac{2(1-u)}{2-u}\le F_1=\frac{2\,\mathbb P({\rm TP})}{2\,\mathbb P({\rm TP})
    +\mathbb P({\rm FP})+\mathbb P({\rm FN})}$$

    u is the exact upper limit of the share of errors among the examples that are of the class or
    predicted to be; given which examples these are, their errors are a binomial count.

    Args:
        true_positives: number of examples of the class that are predicted to be.
        errors: number of false positives and false negatives together.
        delta: probability of failure, in (0, 1).
        anytime: whether the limit holds after every number of examples at once.

    Returns:
        A number in [0, 1]; 0 where no example is of the class or predicted to be.

    Arguments out of range raise a `UserError` of one line.

    Source: Clopper and Pearson (1934), conditionally; papers/attlas_bounds/proofs/predictions.md.

    Examples:
        Of 100 e-mails that are spam or taken for it 80 are both: the score is 160 / 180.

        >>> print(f"{f_score_lower_limit(80, 20, 0.05):.4f} of {160 / 180:.4f}")
        0.8391 of 0.8889
        >>> f_score_lower_limit(0, 0, 0.05)
        0.0
    """
    require_delta(delta)
    for name, count in (("true_positives", true_positives), ("errors", errors)):
        if count < 0 or count != int(count):
            raise UserError(f"{name} = {count}: give a whole number, at least 0")
    relevant = true_positives + errors
    if relevant == 0:
        return 0.0
    limit = error_sequence_limit if anytime else binomial_upper_limit
    u = limit(errors, relevant, delta)
    return 2 * (1 - u) / (2 - u) * _SAFE
