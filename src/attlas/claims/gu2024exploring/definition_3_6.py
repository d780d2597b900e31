r"""Definition 3.6: the kernel H is the Gram matrix of the Jacobian, divided by m.

Symbols: W, a, X as in `instances`; J is the Jacobian of all outputs on all samples in W, rows
ordered by output, then sample.
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
from attlas.kernels.dense_softmax_ntk import dense_softmax_ntk
from attlas.models.networks.softmax_network import Activation, SoftmaxNetwork

_PAPER = "gu2024exploring"


def _gram(instance: Instance, activation: Activation) -> Array:
    """J J' by automatic differentiation."""

    def outputs(W: Array) -> Array:
        return jax.vmap(SoftmaxNetwork(W, instance["a"], activation))(instance["X"]).T.ravel()

    jacobian = jax.jacrev(outputs)(instance["W"])
    rows = jacobian.reshape(len(jacobian), -1)
    return rows @ rows.T


def _feature_size(instance: Instance, activation: Activation) -> Array:
    """Bound of one feature's terms: 2 max |a| m, or max |a| phi'."""
    largest = jnp.max(jnp.abs(instance["a"]))
    if activation is Activation.SOFTMAX:
        return 2 * largest * instance["W"].shape[1]
    if activation is Activation.RELU:
        return largest
    return largest * jnp.exp(jnp.max(jnp.abs(instance["X"] @ instance["W"])))


def _scale(instance: Instance, activation: Activation) -> Array:
    return scaled_rounding(instance) * _feature_size(instance, activation) ** 2


def _literal(instance: Instance, normaliser: float = 1.0) -> Sides:
    """Definition 3.6 term by term, of k^2 n^2 m terms."""
    a, X, S = instance["a"], instance["X"], softmax_weights(instance)
    k, m, n = *a.shape, len(X)
    vS = a[:, None, :] - normaliser * (a @ S.T)[:, :, None]
    features = vS * m * S[None]
    blocks = jnp.einsum("air,bjr,ij->aibj", features, features, X @ X.T) / m
    left = _gram(instance, Activation.SOFTMAX) / m
    return Sides(left, blocks.reshape(k * n, k * n), scale=_scale(instance, Activation.SOFTMAX))


DEFINITION_3_6 = Claim(
    name=f"{_PAPER}/definition-3-6",
    paper=_PAPER,
    locator="Definition 3.6",
    statement=(
        r"\tfrac{1}{m} J J^\top = H,\quad [H_{\ell_1,\ell_2}]_{i,j} = \tfrac{1}{m} x_i^\top x_j"
        r"\sum_{r=1}^m \langle v_{\ell_1,r}, S_i \rangle m S_{i,r}"
        r"\langle v_{\ell_2,r}, S_j \rangle m S_{j,r}"
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
    note="The tangent kernel is m H: the linearised error contracts by I - eta m H a step.",
)


def _dense(instance: Instance, divided: bool = False) -> Sides:
    """The kernels that our programs use, all activations, against their Gram matrices."""
    m, sides = instance["W"].shape[1], []
    for activation in Activation:
        share = m if activation is Activation.SOFTMAX else 1.0
        right = dense_softmax_ntk(network(instance, activation=activation), instance["X"])
        left = _gram(instance, activation) / share
        sides.append((left, right / m if divided else right, _scale(instance, activation)))
    left, right, scale = (jnp.stack(part) for part in zip(*sides, strict=True))
    return Sides(left, right, scale=scale[:, None, None])


DEFINITION_3_6_THREE = Claim(
    name=f"{_PAPER}/definition-3-6-three-activations",
    paper=_PAPER,
    locator="Definition 3.6 and Table 1, the networks compared",
    statement=(
        r"[H_{\ell_1,\ell_2}]_{i,j} = \tfrac{1}{m} x_i^\top x_j \sum_r f_{\ell_1,i,r}"
        r"f_{\ell_2,j,r},\quad f_{\ell,i,r} = (a_{\ell,r} - \tfrac{1}{m} F_{\ell,i}) m S_{i,r}"
        r"\;\mathrm{or}\; a_{\ell,r} \phi'(\langle w_r, x_i \rangle)"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=drawn_networks,
    sides=_dense,
    control=Control("kernel divided by m", sides=partial(_dense, divided=True)),
    count=32,
    terms=ROUNDINGS,
    note=(
        "One product of two matrices of (k n) x m features; no Jacobian is formed. H is J J' / m "
        "for softmax, and J J' itself with the prefactor m^(-1/2) of ReLU and exponential."
    ),
)
