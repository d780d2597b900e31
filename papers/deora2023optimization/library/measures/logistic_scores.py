"""Logistic loss and accuracy of outputs."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float

from attlas.core.argument_validation import validate_record_arguments


class LogisticScores(NamedTuple):
    """Scores of the outputs on n samples.

    Attributes:
        loss: mean of log(1 + exp(-y_i Phi_i)).
        accuracy: share of y_i Phi_i > 0; an output of 0 is wrong.
    """

    loss: Float[np.ndarray, "*shape"]
    accuracy: Float[np.ndarray, "*shape"]


@validate_record_arguments
def logistic_scores(
    outputs: Float[Array | np.ndarray, "*shape n"], y: Float[Array | np.ndarray, " n"]
) -> LogisticScores:
    r"""Mean loss log(1 + exp(-y Phi)) and accuracy, in float64 whatever the outputs.

    Args:
        outputs: Phi_i, samples along the last axis.
        y: labels +-1.

    Returns:
        The scores.

    Examples:
        >>> found = logistic_scores(np.array([0.0, 800.0]), np.array([1.0, -1.0]))
        >>> print(f"{float(found.loss):.4f} {float(found.accuracy)}")
        400.3466 0.0
    """
    signed = np.asarray(y, np.float64) * np.asarray(outputs, np.float64)
    return LogisticScores(
        np.asarray(np.logaddexp(0, -signed).mean(axis=-1)), np.asarray((signed > 0).mean(axis=-1))
    )
