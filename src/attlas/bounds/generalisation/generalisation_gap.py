r"""From a Rademacher complexity to the gap between true and empirical risk, with confidence.

Proof by McDiarmid's inequality twice and symmetrisation:
papers/trauger2023sequence/proofs/dudley.md.
"""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import require_constants
from attlas.bounds.covering.dudley import Number
from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least


@closed_form
def generalisation_gap(
    rademacher: Number,
    m: Number | np.ndarray,
    delta: float,
    loss_range: Number = 1.0,
    *,
    constants: Literal["printed", "sharp"] = "sharp",
    union_cost: Number | np.ndarray = 0.0,
) -> Float[Array, "..."]:
    r"""The bound on the gap, for all functions of the class at once.

    $$2R+4c\sqrt{\frac{2\ln(4/\delta)}m}\ \text{(printed, two-sided, |loss|}\le c),\qquad
    2R+3c\sqrt{\frac{\ln(2/\delta)}{2m}}\ \text{(one-sided, loss in an interval of length}\ c)$$

    Here c is `loss_range`.

    Args:
        rademacher: R, the empirical Rademacher complexity of the losses.
        delta: probability that the bound fails, in (0, 1).
        union_cost: nats of a union bound, delta e^(-union_cost) instead of delta, of "sharp".

    Raises:
        UserError: if delta is not in (0, 1) or m is below 1.

    Source: section 2.3 of trauger2023sequence (found); "sharp" derived.

    Examples:
        >>> print(f"{float(generalisation_gap(0.1, 1000, 0.05)):.4f}")
        0.3288
    """
    require_constants(constants, "printed", "sharp")
    if not 0 < delta < 1:
        raise UserError(f"delta = {delta}: the probability of failure must lie in (0, 1)")
    if isinstance(m, int | float) and not m >= 1:
        raise UserError(f"m = {m} samples: a bound needs at least 1")
    require_at_least(0, rademacher=rademacher, loss_range=loss_range)
    size = jnp.asarray(m, jnp.asarray(1.0).dtype)
    if constants == "printed":
        return 2 * jnp.asarray(rademacher) + 4 * loss_range * jnp.sqrt(
            2 * jnp.log(4 / jnp.asarray(delta)) / size
        )
    # the exponential of a union cost of a thousand nats would underflow
    tail = jnp.sqrt((jnp.log(2 / jnp.asarray(delta)) + jnp.asarray(union_cost)) / (2 * size))
    return 2 * jnp.asarray(rademacher) + 3 * loss_range * tail
