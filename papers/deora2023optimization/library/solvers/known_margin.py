"""The margin that a certificate supports."""

from attlas.core.solution import Solution


def known_margin(found: Solution) -> float:
    """The maximal margin as a number, also of data that nothing separates.

    Args:
        found: of one problem, from `kernel_svm` or `linear_margin`.

    Returns:
        The margin for norm 1; 0 where nothing separates; NaN without a certificate of either.

    Examples:
        >>> import numpy as np
        >>> from attlas.solvers.linear_margin import linear_margin
        >>> X = np.array([[[1.0]], [[-2.0]]])
        >>> [round(known_margin(linear_margin(X, np.array(y))), 6) for y in ([1.0, -1], [1.0, 1])]
        [1.0, 0.0]
    """
    if bool(found.converged):
        return float(found.value)
    return 0.0 if float(found.certificate["lower"]) == 0 else float("nan")
