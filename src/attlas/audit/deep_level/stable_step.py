r"""The step size that a curvature allows an optimiser; read by a command line before JAX."""

from attlas.core.errors import UserError
from attlas.core.ranges import is_finite

THRESHOLD = "2 (1 + momentum)"
"""The formula of `stable_threshold`."""


def stable_threshold(optimizer: str, momentum: float = 0.0) -> float:
    r"""The largest product of step size and curvature at which a quadratic is not left.

    $$\eta\lambda<2\ \text{(gradient descent)},\qquad\eta\lambda<2(1+\beta)\
    \text{(heavy ball)}$$

    Args:
        optimizer: "sgd". For Adam the threshold, 38 at the usual settings (recalled), is about the
            Hessian preconditioned by the second moments, which no checkpoint of weights holds.
        momentum: beta of the heavy ball, 0 for plain gradient descent.

    Raises:
        UserError: for another optimiser, or a momentum outside [0, 1).

    Source: Cohen et al. (2021) for both; the limits are those of linear recurrences.

    Examples:
        >>> stable_threshold("sgd"), stable_threshold("sgd", 0.9)
        (2.0, 3.8)
    """
    if optimizer != "sgd":
        raise UserError(
            f"optimizer = {optimizer!r}: only 'sgd' has a threshold on the Hessian of the loss; "
            "Adam's is about the preconditioned one, whose second moments are not in the weights"
        )
    if not 0 <= momentum < 1:
        raise UserError(f"momentum = {momentum}: it must lie in [0, 1)")
    return 2.0 * (1 + momentum)


def require_step(learning_rate: float | None, optimizer: str, momentum: float) -> None:
    """Check that a training has a threshold.

    Raises:
        UserError: if the learning rate is not above 0 and finite, or the optimiser has no
            threshold.

    Examples:
        >>> require_step(0.1, "sgd", 0.9)
    """
    stable_threshold(optimizer, momentum)
    if learning_rate is not None and not (learning_rate > 0 and is_finite(learning_rate)):
        raise UserError(f"learning_rate = {learning_rate}: it must be above 0 and finite")
