r"""The largest change of a head's output that a search reaches: what a certificate is held to.

The search runs in float32; what it found is judged in the precision of the head.
"""

from typing import NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from attlas.audit.data_level.reduced_heads import ReducedHeads, head_output
from attlas.core.arrays import ArrayInput
from attlas.transformers.canonical import Attention

Tree = TypeVar("Tree")


class BallAttack(NamedTuple):
    """What a search over tokens in a ball found.

    Attributes:
        gain: largest change of the output per change of the input that was reached.
        tokens: where.
        direction: the change of the input, of norm 1.
    """

    gain: Float[Array, ""]
    tokens: Float[Array, "T r"]
    direction: Float[Array, "T r"]


def local_attack(
    attention: Attention,
    head: ReducedHeads,
    y: Float[Array, "T r"],
    seen: Bool[Array, "T T"],
    start: Float[Array, "T r"],
    steps: int,
) -> tuple[Float[Array, ""], Float[Array, "T r"]]:
    r"""Power iteration on J'J: the gain |J u| of the best direction found, |u| = 1.

    Args:
        attention: scale, rotation and norms of the layer.
        seen: True where the row's token sees the column's.
        steps: iterations, each one product with J and one with J'.

    Returns:
        The gain, a lower bound on ||J||, and the direction.
    """
    small, narrow, rows = _in_float32((attention, head, y))
    result = _power_steps(small, narrow, rows, seen, start.astype(jnp.float32), steps)
    u = _unit(result.astype(y.dtype))
    _, change = jax.jvp(lambda y: head_output(attention, head, y, seen), (y,), (u,))
    return jnp.linalg.norm(change), u


def ball_attack(
    attention: Attention,
    head: ReducedHeads,
    y: Float[Array, "T r"],
    seen: Bool[Array, "T T"],
    radius: float | Array,
    start: Float[Array, "T r"],
    steps: int,
) -> BallAttack:
    r"""Ascent of the gain over tokens in a ball, direction and tokens in turn.

    Each step takes one power step of the direction and moves the tokens along the gradient of
    log |J u|, the largest of them by a length that falls from half a radius; each token is then
    drawn back into the ball. The result is the best gain on the way.

    Args:
        attention: scale, rotation and norms of the layer.
        seen: True where the row's token sees the column's.
        radius: largest norm of a token.
    """
    small, narrow, rows = _in_float32((attention, head, y))
    ball = jnp.asarray(radius, jnp.float32)
    tokens, direction = _ascent(small, narrow, rows, seen, ball, start, steps)
    y, u = _inside(tokens.astype(y.dtype), radius), _unit(direction.astype(y.dtype))
    return BallAttack(_gain(attention, head, y, seen, u), y, u)


def _power_steps(
    attention: Attention, head: ReducedHeads, y: Array, seen: Array, start: Array, steps: int
) -> Array:
    """The direction after power iteration."""
    _, forward = jax.linearize(lambda y: head_output(attention, head, y, seen), y)
    backward = jax.linear_transpose(forward, y)

    def step(u: Array, _: None) -> tuple[Array, None]:
        return _unit(backward(forward(u))[0]), None

    return jax.lax.scan(step, _unit(start), None, steps)[0]


def _ascent(
    attention: Attention,
    head: ReducedHeads,
    y: Array,
    seen: Array,
    radius: Array,
    start: Array,
    steps: int,
) -> tuple[Array, Array]:
    """The tokens and the direction of the largest gain on the way."""

    def step(state: tuple[Array, Array, BallAttack], share: Array):
        y, u, best = state
        # The gain is homogeneous in u: its gradient is J'J u / |J u|, a power step.
        reached, (along_y, along_u) = jax.value_and_grad(
            lambda y, u: _gain(attention, head, y, seen, u), (0, 1)
        )(y, u)
        better = reached > best.gain
        best = jax.tree.map(
            lambda new, old: jnp.where(better, new, old), BallAttack(reached, y, u), best
        )
        largest = jnp.max(jnp.linalg.norm(along_y, axis=1))
        move = along_y * (share * radius / jnp.where(largest > 0, largest, 1))
        return (_inside(y + move, radius), _unit(along_u), best), None

    y = _inside(y, radius)
    u = _power_steps(attention, head, y, seen, start.astype(y.dtype), 4)
    begin = BallAttack(_gain(attention, head, y, seen, u), y, u)
    shares = jnp.geomspace(0.5, 0.005, steps, dtype=y.dtype)
    best = jax.lax.scan(step, (y, u, begin), shares)[0][2]
    return best.tokens, best.direction


def _gain(attention: Attention, head: ReducedHeads, y: Array, seen: Array, u: Array) -> Array:
    """|J u| at the tokens, differentiable at 0."""
    _, change = jax.jvp(lambda y: head_output(attention, head, y, seen), (y,), (u,))
    return jnp.sqrt(jnp.sum(change**2) + jnp.finfo(change.dtype).tiny)


def _inside(y: Float[Array, "T r"], radius: float | Array) -> Float[Array, "T r"]:
    """Tokens drawn back into the ball."""
    length = jnp.linalg.norm(y, axis=1, keepdims=True)
    return y * jnp.minimum(1, radius / jnp.where(length > 0, length, 1))


def _in_float32(tree: Tree) -> Tree:
    return jax.tree.map(lambda a: a.astype(jnp.float32) if eqx.is_inexact_array(a) else a, tree)


def _unit(u: Float[Array, "T r"]) -> Float[Array, "T r"]:
    length = jnp.linalg.norm(u)
    return u / jnp.where(length > 0, length, 1)


def share_of_certificate(reached: ArrayInput, certified: ArrayInput) -> np.ndarray:
    """The attack over the certificate, entrywise.

    Returns:
        The ratios; NaN where nothing can be reached (a head without logits or values) and where
        the certificate is infinite, beside which a ratio of 0 would look like slack.

    Examples:
        >>> share_of_certificate([1.0, 0.0, 5.0], [2.0, 0.0, np.inf]).tolist()
        [0.5, nan, nan]
    """
    above, below = np.asarray(reached, float), np.asarray(certified, float)
    says = (below > 0) & np.isfinite(below)
    return np.where(says, above / np.where(says, below, 1), np.nan)
