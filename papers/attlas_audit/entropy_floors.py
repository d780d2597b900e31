"""The least entropy of a softmax, given the spread or the range of its logits."""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.attention.entropy_floor import entropy_floor, range_entropy_floor
from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import inequality

# A softmax over up to 64 logits up to 1000, whose rounding the logits' size multiplies.
_ROUNDINGS = 128


def logits(rng, count, T=8):
    """T logits of all spreads; in two of three, k of them at one level and the others below."""
    z = six_decades(rng, (count, 1), -2, 1) * rng.normal(size=(count, T))
    many = np.where(np.arange(count) % 6 < 2, rng.integers(1, T, count), 1)[:, None]
    z[::3] = np.where(np.arange(T) < many, z[:, :1], -z[:, :1])[::3]
    z[1::3] = np.where(np.arange(T) < many, np.abs(z[:, :1]), 0)[1::3]
    return {"z": z}


def _entropy(z):
    law = jax.nn.softmax(z)
    return -jnp.sum(law * jax.nn.log_softmax(z)), 1 + jnp.sum(law * jnp.abs(z - jnp.max(z)))


@inequality(
    "Entropy floor",
    Source.RECALLED,
    sample=logits,
    sizes={"T": 8},
    quantities="T",
    search_over="z",
    roundings=_ROUNDINGS,
    count=96,
    controls=[
        Control("nine tenths of the spread", factor=0.9),
        Control("1.1 times the left side", share=1.1),
    ],
)
def floor_of_the_spread(z, *, factor=1.0, share=1.0):
    r"""$$\ln(1+(T-1)\beta)+\frac{s\sqrt{T(T-1)}\,\beta}{1+(T-1)\beta}\le H({\rm softmax}(z)),\quad
    \beta=e^{-s\sqrt{T/(T-1)}},\ s=\|z-\bar z\|$$

    Theorem 3.1 of Zhai et al. (2023), in the form of centred logits. Attained by one larger logit.
    """
    s = jnp.sqrt(jnp.sum((z - jnp.mean(z)) ** 2) + 1e-300)
    entropy, size = _entropy(z)
    return Sides(share * entropy_floor(factor * s, z.size), entropy, magnitude=size * (1 + s))


@inequality(
    "Entropy floor of a range",
    sample=logits,
    sizes={"T": 8},
    quantities="T",
    status=Status.NEW,
    search_over="z",
    roundings=_ROUNDINGS,
    count=96,
    controls=[
        Control("nine tenths of the range", factor=0.9),
        Control("1.1 times the left side", share=1.1),
    ],
)
def floor_of_the_range(z, *, factor=1.0, share=1.0):
    r"""$$\min_{1\le k<T}\ \ln(k+(T-k)\rho)+\frac{2r(T-k)\rho}{k+(T-k)\rho}\le H({\rm softmax}(z)),
    \quad\rho=e^{-2r},\ 2r=\max z-\min z$$

    Attained by logits at two levels. The minimum is taken at the two whole numbers beside its
    stationary point.
    """
    r = (jnp.max(z) - jnp.min(z)) / 2
    entropy, size = _entropy(z)
    floor = share * range_entropy_floor(factor * r, z.size)
    return Sides(floor, entropy, magnitude=size * (1 + r))


def ranges(rng, count):
    """Half ranges of all sizes and 2 to 4096 tokens."""
    T = np.round(2 ** rng.uniform(1, 12, count))
    return {"r": 10 ** rng.uniform(-4, 2, count), "T": T}


@inequality(
    "Entropy floor of a range, against that of the spread",
    sample=ranges,
    status=Status.NEW,
    search_over="r",
    project=lambda r: {"r": jnp.abs(r)},
    controls=[
        Control("nine tenths of the right side", share=0.9),
        Control("a third of the spread", factor=1 / 3),
    ],
)
def floor_order(r, T, *, factor=1.0, share=1.0):
    r"""$$H_{\rm spread}(r\sqrt T)\le H_{\rm range}(r)$$

    Logits in an interval of length 2r have a spread of at most $r\sqrt T$, so that the certificate
    from a head's largest logit uses the range. Equality for two tokens.
    """
    left, right = entropy_floor(factor * r * jnp.sqrt(T), T), range_entropy_floor(r, T)
    return Sides(left, share * right, magnitude=jnp.log(T) + 1)
