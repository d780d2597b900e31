r"""The discrete mirror descent with a constant step, many steps at once.

A descent u(k+1) = u(k) + F(u(k)) of the mirror variable u = grad psi(W), F = -eta grad L, follows

    du/dk = F(u - F(u) / 2),

the first two terms of its modified equation (Hairer, Lubich and Wanner, section IX.1): it differs
from the steps by the square of the relative change of F in one step, of order 1/k^2. In the
logarithm of k this equation is smooth, so that classical Runge-Kutta steps reach log k in the
hundreds. The flow is the first term alone.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attlas.data.token_selection import TokenSelection, token_scores
from attlas.losses.margin_loss import MarginLoss
from attlas.optim.mirror_descent import inverse_potential_gradient
from julistiono2024optimizing.library.token_selection.gradient import scaled_gradient

_SHARES, _WEIGHTS = (0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)
"""Of a block at which its four stages are taken, and what they count."""


class DescentBlocks(NamedTuple):
    """Points of a descent, [block].

    Attributes:
        dual: where grad psi(W) is after each block of steps, shape (blocks, d, d).
        W: the points that belong to them.
        log_k: the logarithm of how many steps led there.
    """

    dual: Array
    W: Array
    log_k: Array


def descent_blocks(
    data: TokenSelection,
    dual: Float[Array, "d d"],
    log_eta: Float[Array, ""],
    *,
    p: Float[Array, ""],
    loss: MarginLoss,
    steps: int,
    blocks: int,
    length: float,
    order: int = 2,
) -> DescentBlocks:
    r"""Follow a descent of constant step from the point after `steps` steps.

    Args:
        dual: grad psi(W), from which the blocks go on.
        log_eta: the logarithm of the step, which may be beyond floating point.
        length: the growth of log k in a block; 0.1 lets ||W|| grow by about ||W_mm|| / 10.
        order: 2 follows the modified equation above, 1 follows the flow.

    Examples:
        >>> from attlas.data.token_selection import make_support_selection
        >>> from attlas.losses.margin_loss import margin_loss
        >>> data, p = make_support_selection(jax.random.key(0)), jnp.asarray(2.0)
        >>> path = descent_blocks(data, jnp.eye(4), jnp.log(0.1), p=p,
        ...     loss=margin_loss("logistic"), steps=100, blocks=1600, length=0.1)
        >>> path.W.shape, bool(jnp.linalg.norm(path.W[-1]) > 100), f"{float(path.log_k[-1]):.1f}"
        ((1600, 4, 4), True, '164.6')
    """
    gamma = token_scores(data)

    def moved(dual: Array, log_k: Array | float) -> Array:
        """F times k, without underflow."""
        W = inverse_potential_gradient(dual, p)
        G, log_scale = scaled_gradient(W, data.X, data.z, gamma, loss)
        return -jnp.exp(log_scale + log_eta + log_k) * G

    def speed(dual: Array, log_k: Array) -> Array:
        back = moved(dual, 0.0) / 2 if order == 2 else jnp.zeros_like(dual)
        return moved(dual - back, log_k)

    def advance(state: tuple[Array, Array], _: Any) -> tuple[tuple[Array, Array], DescentBlocks]:
        dual, log_k = state

        def stage(before: Array, share: Array) -> tuple[Array, Array]:
            now = speed(dual + share * length * before, log_k + share * length)
            return now, now

        _, speeds = jax.lax.scan(stage, jnp.zeros_like(dual), jnp.asarray(_SHARES, dual.dtype))
        weights = jnp.asarray(_WEIGHTS, dual.dtype)
        dual = dual + length * jnp.tensordot(weights, speeds, 1)
        log_k = log_k + length
        return (dual, log_k), DescentBlocks(dual, inverse_potential_gradient(dual, p), log_k)

    begun = dual, jnp.log(jnp.asarray(steps, dual.dtype))
    return jax.lax.scan(advance, begun, None, length=blocks)[1]
