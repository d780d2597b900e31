r"""Adding one vector to all columns of W changes nothing: d exactly flat directions.

Symbols: W, a, X, Y as in `instances`; u is the vector that is added.
"""

import jax.numpy as jnp

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import identity
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.instances import ROUNDINGS, SIZES, logit_rounding, networks
from gu2024exploring.library.kernels.dense_softmax_ntk import unit_features
from gu2024exploring.library.training.softmax_network_gradient import outputs_and_gradient


def shifted_networks(rng, count):
    """Networks without symmetry, and a vector u."""
    batch = networks(rng, count)
    u = rng.normal(size=(count, SIZES[0])) * 10 ** rng.uniform(-1, 1, (count, 1))
    return batch | {"u": u}


def _magnitude(W, a, X, u):
    """Features of size 2 m max |a|; a rounding of a logit of either network moves them by it."""
    return (logit_rounding(X, W) + jnp.sum(jnp.abs(u))) * 2 * W.shape[1] * jnp.max(jnp.abs(a))


@identity(
    "Section 3, invariance of the softmax (ours)",
    status=Status.NEW,
    sample=shifted_networks,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("only half of the columns moved", share=0.5)],
)
def shift_invariance(W, a, X, u, *, share=1.0):
    r"""$$F(W + u 1_m^\top, x, a) = F(W, x, a),\quad
    H(W + u 1_m^\top) = H(W) \;\mathrm{for\ all}\; u \in R^d$$

    Checked on the features $(a_{\ell r} - F_{\ell i} / m) m S_{ir}$, of which output and kernel
    are made. Distances $\|w_r - w_r(0)\|$ are therefore larger than the function needs.
    """
    m = W.shape[1]
    moved = W + jnp.where(jnp.arange(1.0 * m) < share * m, u[:, None], 0.0)
    left, right = (unit_features(SoftmaxNetwork(weights, a), X) for weights in (moved, W))
    return Sides(left, right, magnitude=_magnitude(W, a, X, u))


@identity(
    "Claim 3.4, the flat directions (ours)",
    status=Status.NEW,
    sample=shifted_networks,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("exponential network", activation=Activation.EXPONENTIAL)],
)
def gradient_sums_to_zero(W, a, X, Y, u, *, activation=Activation.SOFTMAX):
    r"""$$\sum_{r=1}^m \Delta w_r(\tau) = 0,\quad \sum_r w_r(\tau) = \sum_r w_r(0)$$

    Gradient descent keeps the mean column of $W$, a conserved quantity of the softmax.
    """
    outputs, gradient = outputs_and_gradient(SoftmaxNetwork(W, a, activation), X, Y)
    left = jnp.sum(gradient, axis=1)
    size = W.shape[1] * jnp.sum(jnp.abs(outputs) + jnp.abs(Y))
    return Sides(left, jnp.zeros_like(left), magnitude=size * _magnitude(W, a, X, u))
