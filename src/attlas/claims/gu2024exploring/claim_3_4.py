r"""Claim 3.4: the gradient of the squared loss in closed form, against automatic differentiation.

Symbols: W, a, X, Y as in `instances`; F_li = m <a_l, S_i>, v_lr = a_lr 1 - a_l.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.gu2024exploring.instances import (
    ROUNDINGS,
    drawn_networks,
    network,
    scaled_rounding,
    softmax_weights,
)
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork
from attlas.models.networks.softmax_network_gradient import network_gradient

_PAPER = "gu2024exploring"


def _gradient(instance: Instance, activation: Activation) -> tuple[Array, Array]:
    """The gradient of L by automatic differentiation, and the outputs."""

    def loss(W: Array) -> tuple[Array, Array]:
        outputs = jax.vmap(SoftmaxNetwork(W, instance["a"], activation))(instance["X"])
        return 0.5 * jnp.sum((outputs - instance["Y"]) ** 2), outputs

    return jax.grad(loss, has_aux=True)(instance["W"])


def _scale(instance: Instance) -> Array:
    """Size of the added terms: every residual and every <v, S> m S is bounded by sums of |a|."""
    reach = jnp.sum(jnp.max(jnp.abs(instance["a"]), axis=1))
    units = instance["W"].shape[1]
    residual = units * reach + 1
    return scaled_rounding(instance) * len(instance["X"]) * residual * 2 * units * reach


def _literal(instance: Instance, normaliser: float = 1.0) -> Sides:
    """Claim 3.4 term by term; `normaliser` 0 forgets that the denominator depends on W."""
    a, S = instance["a"], softmax_weights(instance)
    found, outputs = _gradient(instance, Activation.SOFTMAX)
    vS = a[None, :, :] - normaliser * (S @ a.T)[:, :, None]
    m = a.shape[1]
    formula = m * jnp.einsum("il,ilr,ir,id->dr", outputs - instance["Y"], vS, S, instance["X"])
    return Sides(found, formula, scale=_scale(instance))


CLAIM_3_4 = Claim(
    name=f"{_PAPER}/claim-3-4",
    paper=_PAPER,
    locator="Claim 3.4",
    statement=(
        r"\frac{\partial L}{\partial w_r} = \Delta w_r = m \sum_{i=1}^n \sum_{\ell=1}^d"
        r"(F_{\ell,i} - y_{\ell,i}) \langle v_{\ell,r}, S_i \rangle S_{i,r} x_i,\quad "
        r"v_{\ell,r} = a_{\ell,r} 1_m - a_\ell"
    ),
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.DERIVED,
    instances=drawn_networks,
    sides=_literal,
    control=Control(
        "softmax derivative without its normaliser", sides=partial(_literal, normaliser=0.0)
    ),
    count=32,
    terms=ROUNDINGS,
    note="The left side is automatic differentiation, the right side the formula term by term.",
)


def _library(instance: Instance, prefactor: bool = True) -> Sides:
    """The gradient that trains our networks, all three activations."""
    found, closed = [], []
    for activation in Activation:
        gradient = network_gradient(network(instance, activation=activation), *_data(instance))
        found.append(_gradient(instance, activation)[0])
        closed.append(gradient if prefactor else gradient / instance["W"].shape[1])
    scale = _scale(instance) * jnp.exp(2 * jnp.max(jnp.abs(instance["X"] @ instance["W"])))
    # ReLU outputs grow like the logits, which `_scale` has; only exponential ones like e^logit.
    scales = jnp.stack([_scale(instance), _scale(instance), scale])[:, None, None]
    return Sides(jnp.stack(found), jnp.stack(closed), scale=scales)


def _data(instance: Instance) -> tuple[Array, Array]:
    return instance["X"], instance["Y"]


CLAIM_3_4_THREE = Claim(
    name=f"{_PAPER}/claim-3-4-three-activations",
    paper=_PAPER,
    locator="Claim 3.4 and Table 1, the networks compared",
    statement=(
        r"\Delta w_r = \sum_i \sum_\ell (F_{\ell,i} - y_{\ell,i}) g_{\ell,i,r} x_i,\quad "
        r"g_{\ell,i,r} = \langle v_{\ell,r}, S_i \rangle m S_{i,r} \;\mathrm{or}\;"
        r"m^{-1/2} a_{\ell,r} \phi'(\langle w_r, x_i \rangle)"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=drawn_networks,
    sides=_library,
    control=Control("prefactor m forgotten", sides=partial(_library, prefactor=False)),
    count=32,
    terms=ROUNDINGS,
    note="The products of sizes (n k) m and (n d) m that train our networks, all activations.",
)
