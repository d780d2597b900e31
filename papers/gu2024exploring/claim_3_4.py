r"""Claim 3.4: the gradient of the squared loss in closed form, against automatic differentiation.

F_li = m <a_l, S_i> and v_lr = a_lr 1 - a_l.
"""

import jax
import jax.numpy as jnp

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import identity
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from gu2024exploring.instances import (
    ROUNDINGS,
    logit_rounding,
    networks,
    softmax_weights,
)
from gu2024exploring.library.training.softmax_network_gradient import network_gradient


def _automatic(W, a, X, Y, activation):
    """The gradient of L by automatic differentiation, and the outputs."""

    def loss(W):
        outputs = jax.vmap(SoftmaxNetwork(W, a, activation))(X)
        return 0.5 * jnp.sum((outputs - Y) ** 2), outputs

    return jax.grad(loss, has_aux=True)(W)


def _magnitude(W, a, X):
    """Size of the added terms: every residual and every <v, S> m S is bounded by sums of |a|."""
    size = jnp.sum(jnp.max(jnp.abs(a), axis=1))
    units = W.shape[1]
    return logit_rounding(X, W) * len(X) * (units * size + 1) * 2 * units * size


@identity(
    "Claim 3.4",
    sample=networks,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("softmax derivative without its normaliser", normaliser=0.0)],
)
def claim_3_4(W, a, X, Y, *, normaliser=1.0):
    r"""$$\frac{\partial L}{\partial w_r} = \Delta w_r = m \sum_{i=1}^n \sum_{\ell=1}^d
    (F_{\ell,i} - y_{\ell,i}) \langle v_{\ell,r}, S_i \rangle S_{i,r} x_i,\quad
    v_{\ell,r} = a_{\ell,r} 1_m - a_\ell$$

    The left side is automatic differentiation, the right side the formula term by term.
    """
    gradient, F = _automatic(W, a, X, Y, Activation.SOFTMAX)
    S, m = softmax_weights(X, W), a.shape[1]
    # Without the normaliser the denominator is taken not to depend on W.
    vS = a[None, :, :] - normaliser * (S @ a.T)[:, :, None]
    formula = m * jnp.einsum("il,ilr,ir,id->dr", F - Y, vS, S, X)
    return Sides(gradient, formula, magnitude=_magnitude(W, a, X))


@identity(
    "Claim 3.4 and Table 1, the networks compared",
    status=Status.NEW,
    sample=networks,
    count=32,
    roundings=ROUNDINGS,
    controls=[Control("prefactor $m$ forgotten", prefactor=False)],
)
def claim_3_4_three_activations(W, a, X, Y, *, prefactor=True):
    r"""$$\Delta w_r = \sum_i \sum_\ell (F_{\ell,i} - y_{\ell,i}) g_{\ell,i,r} x_i,\quad
    g_{\ell,i,r} = \langle v_{\ell,r}, S_i \rangle m S_{i,r} \;\mathrm{or}\;
    m^{-1/2} a_{\ell,r} \phi'(\langle w_r, x_i \rangle)$$

    The products of sizes $(n k) m$ and $(n d) m$ that train our networks, all activations.
    """
    gradients = jnp.stack([_automatic(W, a, X, Y, activation)[0] for activation in Activation])
    closed = jnp.stack([network_gradient(SoftmaxNetwork(W, a, phi), X, Y) for phi in Activation])
    # ReLU outputs grow like the logits, which the magnitude has; only exponential ones like e^z.
    grown = {Activation.EXPONENTIAL: jnp.exp(2 * jnp.max(jnp.abs(X @ W)))}
    size = jnp.stack([_magnitude(W, a, X) * grown.get(phi, 1.0) for phi in Activation])
    right = closed if prefactor else closed / W.shape[1]
    return Sides(gradients, right, magnitude=size[:, None, None])
