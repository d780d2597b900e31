r"""Definition 3.7: the symmetric initialisation makes the network zero.

Units are drawn in pairs, w_{2r} = w_{2r-1} and a_{2r} = -a_{2r-1}.
At the start F = 0, so that the two units of a pair have opposite gradients. Exchanging the units
of every pair turns W(0) + Delta into W(0) - Delta and a into -a, and H is even in a: the kernel
has no first-order change.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity
from attlas.models.networks.softmax_network import (
    Activation,
    SoftmaxNetwork,
    symmetric_network,
)
from gu2024exploring.instances import (
    ROUNDINGS,
    logit_rounding,
    softmax_weights,
    symmetric_networks,
)
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk, unit_features
from gu2024exploring.library.training.softmax_network_gradient import outputs_and_gradient


def _torn(W):
    """Columns moved on by one, so that pairs are torn apart."""
    return jnp.roll(W, 1, axis=1)


def _magnitude(W, X, activation):
    """Outputs have m terms of size m S at most, or m^(-1/2) phi."""
    m, rounding = W.shape[1], logit_rounding(X, W)
    if activation is Activation.SOFTMAX:
        return rounding * m
    return rounding * m**0.5 * jnp.exp(jnp.max(jnp.abs(X @ W)))


@identity(
    "Definition 3.7 and the sentence after it",
    Source.RECALLED,
    sample=symmetric_networks,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("asymmetric initialisation", symmetric=False)],
)
def definition_3_7(W, a, X, *, symmetric=True):
    r"""$$w_{2r} = w_{2r-1},\ a_{2r} = -a_{2r-1} \;\Rightarrow\; F_{\ell,i}(0) = 0$$

    All three activations. The cancellation is up to rounding: pairs are added apart.
    """
    start = W if symmetric else _torn(W)
    left = jnp.stack([jax.vmap(SoftmaxNetwork(start, a, phi))(X) for phi in Activation])
    magnitude = jnp.stack([_magnitude(W, X, activation) for activation in Activation])
    return Sides(left, jnp.zeros_like(left), magnitude=magnitude[:, None, None])


@identity(
    "Definition 3.7, the kernel at initialisation (ours)",
    status=Status.NEW,
    sample=symmetric_networks,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("asymmetric initialisation", symmetric=False)],
)
def symmetric_features(W, a, X, *, symmetric=True):
    r"""$$\langle v_{\ell,r}, S_i(0) \rangle = a_{\ell,r},\quad [H^*_{\ell,\ell}]_{i,j} =
    x_i^\top x_j\, m \langle S_i(0), S_j(0) \rangle$$

    The denominator enters the kernel at initialisation as a factor of the features alone: its
    derivative vanishes.
    """
    start, m = W if symmetric else _torn(W), W.shape[1]
    right = a[:, None, :] * m * softmax_weights(X, start)[None]
    magnitude = _magnitude(W, X, Activation.SOFTMAX) * m
    return Sides(unit_features(SoftmaxNetwork(start, a), X), right, magnitude=magnitude)


def library_networks(rng, count):
    """What `symmetric_network` draws at some sigma, and at sigma = 1 from the same key."""
    sigma, seeds = six_decades(rng, count, -0.7, 0.5), rng.integers(2**31, size=count)
    networks = [
        [symmetric_network(jax.random.key(seed), 3, 8, 2, sigma=s) for s in (float(size), 1.0)]
        for seed, size in zip(seeds.tolist(), sigma, strict=True)
    ]
    layers = {"W": (0, "W"), "a": (0, "a"), "plain": (1, "W")}
    named = {
        name: np.stack([np.asarray(getattr(pair[which], part), float) for pair in networks])
        for name, (which, part) in layers.items()
    }
    return named | {"sigma": sigma}


@identity(
    "Definition 3.7, as the library draws it",
    Source.RECALLED,
    sample=library_networks,
    count=32,
    roundings=2**31,  # of float64, 8 of float32, in which the library draws
    controls=[
        Control("pairs of neighbours shifted by one", shift=1),
        Control("a second layer of size 2", size=2.0),
    ],
)
def definition_3_7_library(W, a, plain, sigma, *, shift=0, size=1.0):
    r"""$$w_{2r} = w_{2r-1} = \sigma\, g_r,\quad a_{2r} = -a_{2r-1},\quad |a_{\ell, r}| = 1,\quad
    g_r \;\text{not depending on}\; \sigma$$
    """
    W, a = jnp.roll(W, shift, axis=1), jnp.roll(a, shift, axis=1)
    left = (W[:, 1::2], W[:, ::2], a[:, 1::2], jnp.abs(a[:, ::2]))
    right = (W[:, ::2], sigma * plain[:, ::2], -a[:, ::2], size * jnp.ones_like(a[:, ::2]))
    return jnp.concatenate(left), jnp.concatenate(right)


@identity(
    "Definitions 3.6 and 3.7, the first step (ours)",
    status=Status.NEW,
    sample=symmetric_networks,
    count=48,
    roundings=ROUNDINGS,
    controls=[Control("second layers of opposite sign but unequal size", second=0.5)],
)
def kernel_even_in_the_step(W, a, X, Y, *, second=1.0):
    r"""$$w_{2r}(0) = w_{2r-1}(0),\ a_{2r} = -a_{2r-1} \;\Rightarrow\;
    H(W(0) - \eta \Delta W(0)) = H(W(0) + \eta \Delta W(0)) \quad \forall \eta$$

    The change of the kernel over the first step is of second order in it: Lemma 5.1 counts the
    first order, which cancels. The change is then of order $m^{-2}$ where units move by $1/m$, and
    the coupling $Z_1$ of Claim G.1, its square, of order $m^{-4}$.
    """
    a = a.at[:, 1::2].multiply(second)
    step = outputs_and_gradient(SoftmaxNetwork(W, a), X, Y)[1] / W.shape[1]
    down, up = (dense_softmax_ntk(SoftmaxNetwork(moved, a), X) for moved in (W - step, W + step))
    moved = logit_rounding(X, W) + jnp.max(jnp.abs(step))
    return Sides(down, up, magnitude=jnp.max(jnp.abs(up)) * moved)
