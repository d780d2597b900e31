r"""Section 7, "data models for which multiple heads are necessary to interpolate the data".

Four scalar tokens, three equal to 1 and one to -1, in all orders, with label -1; the same tokens
times mu > 1 with label 1; and four tokens equal to 1 with label 1. One head separates no such data,
two heads do. Proof: papers/deora2023optimization/proofs/several_heads.md.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import existence, inequality
from attlas.models.attention.multi_head import MultiHead

_KAPPA = np.log(3) / 2
_ORDERS = 1.0 - 2.0 * np.eye(4)
"""The four orders of the tokens 1, 1, 1, -1."""


def _samples(mu):
    """Nine samples (9, 4, 1) with their labels."""
    orders = jnp.asarray(_ORDERS)
    X = jnp.concatenate([jnp.ones((1, 4)), orders, mu * orders])[:, :, None]
    return X, jnp.asarray([1.0] + 4 * [-1.0] + 4 * [1.0])


def _margins(U, W, mu):
    """The margins y Phi of the nine samples; decoders (H, 4, 1), weights (H, 1, 1)."""
    X, y = _samples(mu)
    return y * jax.vmap(MultiHead(U, W))(X)


def single_heads(rng, count):
    """Decoders near the constant ones and far from them, weights of both signs, mu above 1."""
    even = rng.choice([-1.0, 1.0], (count, 1)) * np.ones((count, 4))
    spread = 10 ** rng.uniform(-3, 0.5, (count, 1))
    sizes = six_decades(rng, count, -2, 1.5)
    return {
        "u": even + spread * rng.normal(size=(count, 4)),
        "w": np.where(np.arange(count) % 4, -1, 1) * sizes,
        "mu": 1 + 10 ** rng.uniform(-2, 1, count),
    }


@inequality(
    "Section 7, data that no head alone interpolates",
    sample=single_heads,
    search_over=("u", "w"),
    status=Status.NEW,
    count=512,
    roundings=64,
    controls=[
        Control("without the tokens times $\\mu$", left_out="scaled"),
        Control("without the four equal tokens", left_out="equal"),
    ],
)
def one_head_fails(u, w, mu, *, left_out="nothing"):
    r"""$$\min_i y_i \Phi(X_i; u, w) \le 0 \quad (u \in R^4,\ w \in R,\ \mu > 1)$$

    The equal tokens fix the sign of the decoder. Then the tokens 1, 1, 1, -1 want attention below
    a threshold $-a < 0$, and $\mu$ times the tokens want it above $-a / \mu^2 > -a$.
    """
    margins = _margins(u.reshape(1, 4, 1), w.reshape(1, 1, 1), mu)
    kept = {"nothing": slice(None), "scaled": slice(0, 5), "equal": slice(1, 9)}[left_out]
    size = jnp.sum(jnp.abs(u)) * mu
    return Sides(jnp.min(margins[kept]), jnp.zeros_like(w), magnitude=size)


def two_heads():
    """Weights 0 and log(3) / 2, decoders 1 and -0.9, mu = 3."""
    ones = np.ones((1, 4, 1))
    return {
        "U": np.concatenate([ones, -0.9 * ones]),
        "W": np.asarray([0.0, _KAPPA]).reshape(2, 1, 1),
        "mu": np.asarray(3.0),
    }


@existence(
    "Section 7, data that two heads interpolate",
    witness=two_heads,
    status=Status.NEW,
    roundings=64,
    controls=[
        Control("the first head alone", heads=1),
        Control("equal heads, which are one", turned=0.0),
        Control("an eighth in place of a tenth", level=0.125),
    ],
)
def two_heads_succeed(U, W, mu, *, heads=2, turned=1.0, level=0.1):
    r"""$$\exists\, U, W \in R^2: \quad \min_i y_i \widetilde\Phi(X_i) > \tfrac{1}{10} \qquad
    (\mu = 3)$$

    One head with uniform attention less 0.9 of one with $w = \log(3) / 2$. So the data answer the
    question with which the paper ends: they need several heads.
    """
    margins = _margins(U[:heads], turned * W[:heads], mu)
    return Sides(
        level * jnp.ones_like(mu), jnp.min(margins), magnitude=4 * jnp.sum(jnp.abs(U)) * mu
    )
