r"""Steps for H heads that train alike for every H: eta for the decoders, H eta for attention.

In Phi = H^(-1/2) sum_h <U_h, softmax(X W_h X') X> the step of W_h has a factor H^(-1/2), so that at
a fixed step size more heads leave attention where it was. With U_h = V_h / sqrt(H) the output is
the mean of <V_h, .> over heads, a step eta on U_h is a step eta on V_h, and a step H eta on W_h
moves W_h by eta times the slope along <V_h, .>: no H remains
(papers/deora2023optimization/proofs/heads.md).
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import optax
from jaxtyping import Array, Float

from attlas.core.errors import UserError
from attlas.core.ranges import is_finite


class HeadScaling(NamedTuple):
    """Scale of the start and step sizes with H heads.

    Attributes:
        start: factor of the decoders at the start, H^(-1/2).
        decoder_step: step size of the decoders U.
        attention_step: step size of the key-query matrices W, H times that of U.
    """

    start: float
    decoder_step: float
    attention_step: float


def head_scaling(step: float, heads: int) -> HeadScaling:
    r"""The scaling (H^(-1/2), eta, H eta) under which training does not depend on H.

    `one_step_initialisation` takes `start` as its `scale`; for one head nothing changes.

    Args:
        step: eta, the step size of one head, positive.
        heads: H, at least 1.

    Raises:
        UserError: if there is no head, or the step is not positive and finite.

    Examples:
        >>> head_scaling(0.5, 16)
        HeadScaling(start=0.25, decoder_step=0.5, attention_step=8.0)
    """
    if heads < 1:
        raise UserError(f"heads = {heads}: a model needs at least one head")
    if not (step > 0 and is_finite(step)):
        raise UserError(f"step = {step} is not positive and finite: choose another")
    return HeadScaling(heads**-0.5, step, heads * step)


def head_scaled_descent(step: float, heads: int) -> optax.GradientTransformation:
    r"""Gradient descent of a model with leaves U and W by `head_scaling`.

    Args:
        step: eta, the step size of one head, positive.
        heads: H, at least 1.

    Returns:
        An optax transformation for `MultiHead` and `RepeatedHeads`. Steps and numbers of heads
        that `head_scaling` refuses are refused here.

    Examples:
        >>> import jax.numpy as jnp
        >>> from attlas.models.attention.multi_head import MultiHead
        >>> descent = head_scaled_descent(0.5, 4)
        >>> slope = MultiHead(jnp.ones((4, 1, 1)), jnp.ones((4, 1, 1)))
        >>> change, _ = descent.update(slope, descent.init(slope))
        >>> float(change.U[0, 0, 0]), float(change.W[0, 0, 0])
        (-0.5, -2.0)
    """
    scaling = head_scaling(step, heads)
    return two_step_descent(scaling.decoder_step, scaling.attention_step)


def two_step_descent(
    decoder_step: Float[Array, ""] | float, attention_step: Float[Array, ""] | float
) -> optax.GradientTransformation:
    """Gradient descent with one step size for the decoders and one for attention.

    Args:
        decoder_step: step size of the decoders U and of all other leaves.
        attention_step: step size of the key-query matrices W.

    Returns:
        An optax transformation; the step sizes may be traced.

    Examples:
        >>> import jax.numpy as jnp
        >>> from attlas.models.attention.multi_head import MultiHead
        >>> descent = two_step_descent(0.5, 2.0)
        >>> slope = MultiHead(jnp.ones((1, 1, 1)), jnp.ones((1, 1, 1)))
        >>> change, _ = descent.update(slope, descent.init(slope))
        >>> float(change.U[0, 0, 0]), float(change.W[0, 0, 0])
        (-0.5, -2.0)
    """

    def init(params: Any) -> optax.EmptyState:
        return optax.EmptyState()

    def update(updates: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        moved = jax.tree.map(lambda slope: -decoder_step * slope, updates)
        return eqx.tree_at(lambda model: model.W, moved, -attention_step * updates.W), state

    return optax.GradientTransformation(init, update)
