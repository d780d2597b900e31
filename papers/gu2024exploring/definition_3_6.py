r"""Definition 3.6: the kernel H is the Gram matrix of the Jacobian, divided by m.

J is the Jacobian of all outputs on all samples in W, rows ordered by output, then sample. Adding
one vector to all columns of W changes nothing: d exactly flat directions.
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import computed, identity
from attlas.kernels.softmax_network_ntk import softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.instances import (
    ROUNDINGS,
    SIZES,
    logit_rounding,
    networks,
    softmax_weights,
)
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk, unit_features
from gu2024exploring.library.training.softmax_network_gradient import outputs_and_gradient


def _gram(W, a, X, activation):
    """J J' by automatic differentiation."""

    def outputs(W):
        return jax.vmap(SoftmaxNetwork(W, a, activation))(X).T.ravel()

    jacobian = jax.jacrev(outputs)(W)
    rows = jacobian.reshape(len(jacobian), -1)
    return rows @ rows.T


def _magnitude(W, a, X, activation):
    """Rounding of the logits times the bound of two features: 2 max |a| m, or max |a| phi'."""
    feature = jnp.max(jnp.abs(a))
    if activation is Activation.SOFTMAX:
        feature = 2 * feature * W.shape[1]
    elif activation is Activation.EXPONENTIAL:
        feature = feature * jnp.exp(jnp.max(jnp.abs(X @ W)))
    return logit_rounding(X, W) * feature**2


@identity(
    "Definition 3.6",
    sample=networks,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("softmax derivative without its normaliser", normaliser=0.0)],
)
def definition_3_6(W, a, X, *, normaliser=1.0):
    r"""$$\tfrac{1}{m} J J^\top = H,\quad [H_{\ell_1,\ell_2}]_{i,j} = \tfrac{1}{m} x_i^\top x_j
    \sum_{r=1}^m \langle v_{\ell_1,r}, S_i \rangle m S_{i,r}
    \langle v_{\ell_2,r}, S_j \rangle m S_{j,r}$$

    The tangent kernel is $m H$: the linearised error contracts by $I - \eta m H$ per step.
    """
    S = softmax_weights(X, W)
    k, m, n = *a.shape, len(X)
    vS = a[:, None, :] - normaliser * (a @ S.T)[:, :, None]
    features = vS * m * S[None]
    blocks = jnp.einsum("air,bjr,ij->aibj", features, features, X @ X.T) / m
    left = _gram(W, a, X, Activation.SOFTMAX) / m
    magnitude = _magnitude(W, a, X, Activation.SOFTMAX)
    return Sides(left, blocks.reshape(k * n, k * n), magnitude=magnitude)


@identity(
    "Definition 3.6 and Table 1, the networks compared",
    status=Status.NEW,
    sample=networks,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("kernel divided by $m$", divided=True)],
)
def definition_3_6_three_activations(W, a, X, *, divided=False):
    r"""$$[H_{\ell_1,\ell_2}]_{i,j} = \tfrac{1}{m} x_i^\top x_j \sum_r f_{\ell_1,i,r}
    f_{\ell_2,j,r},\quad f_{\ell,i,r} = (a_{\ell,r} - \tfrac{1}{m} F_{\ell,i}) m S_{i,r}
    \;\mathrm{or}\; a_{\ell,r} \phi'(\langle w_r, x_i \rangle)$$

    One product of two matrices of $(k n) \times m$ features; no Jacobian is formed. $H$ is
    $J J^\top / m$ for softmax, and $J J^\top$ itself with the prefactor $m^{-1/2}$ of ReLU and
    exponential.
    """
    m, left, right = W.shape[1], [], []
    for activation in Activation:
        share = m if activation is Activation.SOFTMAX else 1.0
        left.append(_gram(W, a, X, activation) / share)
        right.append(dense_softmax_ntk(SoftmaxNetwork(W, a, activation), X))
    magnitude = jnp.stack([_magnitude(W, a, X, activation) for activation in Activation])
    kernels = jnp.stack(right) / (m if divided else 1.0)
    return Sides(jnp.stack(left), kernels, magnitude=magnitude[:, None, None])


_MEMORY = 1200
"""Bytes: room for a few rows, so that the kernel is made of tiles."""
_LARGEST = (5, 10, 4, 5)
"""d, m, k and n stay below these."""


def _by_the_formula(W, a, X, normaliser):
    """The kernel as a NumPy product of features, k x n x k x n, and its rounding."""
    units = np.exp(X @ W - (X @ W).max(axis=1, keepdims=True))
    S, m = units / units.sum(axis=1, keepdims=True), W.shape[1]
    f = (a[:, None, :] - normaliser * (a @ S.T)[:, :, None]) * m * S[None]
    H = np.einsum("air,bjr,ij->aibj", f, f, X @ X.T) / m
    return H, (1 + np.abs(X @ W).max()) * (2 * m * np.abs(a).max()) ** 2


@computed(
    Kind.IDENTITY,
    "Definition 3.6, tile by tile",
    status=Status.NEW,
    count=32,
    roundings=ROUNDINGS,
    alike=True,
    controls=[Control("softmax derivative without its normaliser", normaliser=0.0)],
)
def definition_3_6_tiled(rng, count, *, normaliser=1.0):
    r"""$$[H_{\ell_1,\ell_2}]_{i,j} = \tfrac{1}{m} x_i^\top x_j \sum_r
    \langle v_{\ell_1,r}, S_i \rangle m S_{i,r} \langle v_{\ell_2,r}, S_j \rangle m S_{j,r}$$

    The kernel that experiments use, in tiles of a few rows, and between two sets of samples; 1 to 4
    dimensions, outputs and samples, 2 to 9 units.
    """
    left, right = np.zeros((2, count, 200))
    size = np.ones((count, 1))
    for e in range(count):
        batch = networks(rng, 1, tuple(rng.integers((1, 2, 1, 1), _LARGEST)))
        W, a, X = (batch[name][0] for name in ("W", "a", "X"))
        H, size[e] = _by_the_formula(W, a, X, normaliser)
        expected = np.concatenate((H.ravel(), H[:, :, :, :1].ravel()))
        model = SoftmaxNetwork(on_device(W), on_device(a))
        kernels = [softmax_ntk(model, X, Z, memory=_MEMORY).ravel() for Z in (None, X[:1])]
        left[e, : len(expected)] = np.concatenate(kernels)
        right[e, : len(expected)] = expected
    return Sides(*(jnp.asarray(part) for part in (left, right, size * np.ones_like(left))))


def shifted_networks(rng, count):
    """Networks without symmetry, and a vector u."""
    batch = networks(rng, count)
    u = rng.normal(size=(count, SIZES[0])) * six_decades(rng, count)[:, None]
    return batch | {"u": u}


def _shift_magnitude(W, a, X, u):
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
    return Sides(left, right, magnitude=_shift_magnitude(W, a, X, u))


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
    return Sides(left, jnp.zeros_like(left), magnitude=size * _shift_magnitude(W, a, X, u))
