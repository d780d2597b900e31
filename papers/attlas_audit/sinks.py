"""Sinks and the attention of repeated tokens."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.attention.sink_gain import sink_gain
from attlas.claims.claim import Control, Sides, Source, Status, assume
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity, inequality
from attlas.models.attention.rotation import turn
from attlas.norms.matrix import spectral_norm
from attlas_audit.library.softmax_weights import repeated_token_ceiling, yudin2025_jacobian

_T = 64
_ROUNDINGS = 512
"""Turns, a softmax and a norm of 64 entries."""


def maps(rng, count, T=8):
    """Attention maps of T rows: random ones, and sinks of all strengths."""
    z = six_decades(rng, (count, 1, 1)) * rng.normal(size=(count, T, T))
    z[::2, :, 0] += 10 ** rng.uniform(0, 2, (len(z[::2]), 1))
    return {"z": z}


@inequality(
    "Sinks and the norm of the map",
    sample=maps,
    sizes={"T": 8},
    quantities="T",
    status=Status.NEW,
    search_over="z",
    roundings=_ROUNDINGS,
    controls=[Control("n in place of its root", power=1.0)],
)
def sink_norm(z, *, power=0.5):
    r"""$$\sqrt n\,\alpha_1\le\|P\|_2,\quad\alpha_1=\frac1n\sum_iP_{i1}$$

    Attained when every row reads the first token alone, where $\|P\|_2=\sqrt n$ is the largest.
    """
    P = jax.nn.softmax(z, axis=-1)
    return sink_gain(jnp.mean(P[:, 0]), len(z) ** (2 * power)), spectral_norm(P)


def laws(rng, count, T=8):
    """Logits of T tokens; in a third two tokens have nearly all of the weight."""
    z = six_decades(rng, (count, 1)) * rng.normal(size=(count, T))
    z[::3, 2:] = -40
    return {"z": z}


@inequality(
    "The softmax's Jacobian",
    Source.RECALLED,
    sample=laws,
    sizes={"T": 8},
    quantities="T",
    search_over="z",
    roundings=_ROUNDINGS,
    controls=[Control("nine tenths of the bound", factor=0.9)],
)
def softmax_jacobian(z, *, factor=1.0):
    r"""$$\|{\rm diag}\,p-pp^\top\|_2\le p_{(1)}\,(1-p_{(1)}+p_{(2)})$$

    Yudin et al. (2025), ordered weights; our text of it is from memory. Attained by two tokens.
    """
    p = jax.nn.softmax(z)
    norm = spectral_norm(jnp.diag(p) - jnp.outer(p, p))
    return Sides(norm, factor * yudin2025_jacobian(p), magnitude=jnp.asarray(1.0))


def repeated(rng, count):
    """One query and key at 64 positions with rotations of all speeds."""
    speed = 10 ** rng.uniform(-2, 0, (count, 2))
    # With half a turn per token one position is for the query and all others against it.
    speed[::3] = np.pi
    q = six_decades(rng, (count, 1)) * rng.normal(size=(count, 4))
    k = rng.normal(size=(count, 4))
    k[::3] = q[::3]
    return {"q": q, "k": k, "speed": speed}


def _weights(q, k, speed, positions):
    angle = positions[:, None] * speed[None]
    rows = [turn(jnp.broadcast_to(vector, (_T, 4)), angle, False) for vector in (q, k)]
    return jax.nn.softmax(rows[0][-1] @ rows[1].T)


@inequality(
    "One token repeated, rotary positions: the ceiling",
    Source.RECALLED,
    sample=repeated,
    search_over=("q", "k", "speed"),
    roundings=_ROUNDINGS,
    count=96,
    controls=[Control("half of the largest logit", factor=0.5)],
)
def repeated_ceiling(q, k, speed, *, factor=1.0):
    r"""$$P_{tj}\le\frac{e^{2\xi}}{e^{2\xi}+t-1},\quad\xi=|q||k|$$

    Gu et al. (2025), all logits of the row of the last of 64 tokens. Positions are 0 and then all
    odd, so that half a turn per token brings every other key against the query.
    """
    positions = jnp.concatenate([jnp.arange(1.0, 2 * _T - 2, 2), jnp.zeros(1)])
    P = _weights(q, k, speed, positions)
    size = jnp.sqrt(jnp.sum(q**2) * jnp.sum(k**2))
    ceiling = repeated_token_ceiling(factor * size, _T)
    return Sides(
        jnp.max(P), ceiling, magnitude=1 + 4 * size * (1 + jnp.max(jnp.abs(speed)) * 2 * _T)
    )


@identity(
    "One token repeated, no positions",
    Source.RECALLED,
    sample=repeated,
    roundings=_ROUNDINGS,
    alike=True,
    controls=[Control("with rotary positions", turning=1.0)],
)
def repeated_uniform(q, k, speed, *, turning=0.0):
    r"""$$P_{tj}=\frac1t$$

    Gu et al. (2025). All logits are equal.
    """
    P = _weights(q, k, turning * speed, jnp.arange(1.0 * _T))
    size = jnp.sqrt(jnp.sum(q**2) * jnp.sum(k**2))
    return Sides(P, jnp.full(_T, 1 / _T), magnitude=jnp.full(_T, 1.0) * (1 + size))


def biased(rng, count):
    """One query and key of 64 dimensions, and a bias for each distance of 64 tokens.

    The bias falls by random steps, by as much at every distance as ALiBi's does, or seldom, as
    the buckets of a relative bias do.
    """
    fall = 10 ** rng.uniform(-2, 0, (count, 1)) * np.abs(rng.normal(size=(count, _T)))
    fall[::3] = fall[::3, :1]
    fall[1::3] *= rng.random(fall[1::3].shape) < 0.2
    q, k = (rng.normal(size=(count, _T)) for _ in range(2))
    q *= six_decades(rng, (count, 1))
    return {"q": q, "k": k, "b": rng.normal(size=(count, 1)) - np.cumsum(fall, axis=1)}


@inequality(
    "One token repeated, a bias by distance: monotone",
    Source.RECALLED,
    sample=biased,
    assumptions=[
        assume("the bias does not grow with the distance", lambda b: jnp.all(b[1:] <= b[:-1]))
    ],
    search_over=("q", "k", "b"),
    project=lambda b: {"b": jax.lax.cummin(b)},
    roundings=_ROUNDINGS,
    alike=True,
    attained=1 - 1e-9,
    controls=[
        Control("a bias that grows with the distance", sign=-1.0),
        Control("distances from the first token", ahead=True),
        Control("nine tenths of the right side", share=0.9),
    ],
)
def repeated_monotone(q, k, b, *, sign=1.0, ahead=False, share=1.0):
    r"""$$P_{tj}\le P_{t,j+1},\quad P_t={\rm softmax}_j(q^\top k+b_{t-j}),\ b_{m+1}\le b_m$$

    Gu et al. (2025), for relative biases that are monotone in the distance and for ALiBi, whose
    $b_m=-\lambda m$ makes the ratio $e^{-\lambda}$. The row of the last of 64 tokens; attained
    where the bias is flat. With a bias that is not monotone the weights are not, either.
    """
    keys = jnp.broadcast_to(k, (_T, k.size))
    P = jax.nn.softmax(keys @ q + sign * (b if ahead else b[::-1]))
    logit = 1 + jnp.linalg.norm(q) * jnp.linalg.norm(k) + jnp.max(jnp.abs(b))
    return Sides(P[:-1], share * P[1:], magnitude=jnp.maximum(P[:-1], P[1:]) * logit)


@identity(
    "One token repeated: hidden states agree",
    Source.RECALLED,
    sample=repeated,
    roundings=_ROUNDINGS,
    alike=True,
    status=Status.RECONSTRUCTED,
    controls=[Control("with another token at the last position", other=0.1)],
)
def repeated_outputs(q, k, speed, *, other=0.0):
    r"""$$\sum_jP_{ij}\,xV=xV\quad\text{for every row }i$$

    Gu et al. (2025): without position vectors in the hidden states, whatever the weights. By
    induction the states of all layers agree at every position; here the query stands for the value.
    """
    P = _weights(q, k, speed, jnp.arange(1.0 * _T))
    last = jnp.zeros(_T).at[-1].set(1.0)
    values = q[None] * (1 + 10 * other * last[:, None])
    return Sides(P @ values, q, magnitude=jnp.full(4, 1.0) * jnp.sqrt(jnp.sum(q**2)))
