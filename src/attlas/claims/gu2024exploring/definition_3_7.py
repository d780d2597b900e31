r"""Definition 3.7: the symmetric initialisation makes the network zero.

Symbols: W, a, X, sigma as in `instances`, drawn in pairs w_{2r} = w_{2r-1}, a_{2r} = -a_{2r-1}.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.gu2024exploring.instances import (
    ROUNDINGS,
    drawn_symmetric_networks,
    network,
    scaled_rounding,
    softmax_weights,
)
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.kernels.dense_softmax_ntk import unit_features
from attlas.models.networks.softmax_network import Activation

_PAPER = "gu2024exploring"


def asymmetric(instance: Instance) -> Instance:
    """The same network with columns of W moved on by one, so that pairs are torn apart.

    Args:
        instance: at the symmetric initialisation.

    Returns:
        The instance without symmetry.
    """
    return {**instance, "W": jnp.roll(instance["W"], 1, axis=1)}


def _scale(instance: Instance, activation: Activation) -> Array:
    """Outputs have m terms of size m S at most, or m^(-1/2) phi."""
    m, logits = instance["W"].shape[1], jnp.abs(instance["X"] @ instance["W"])
    if activation is Activation.SOFTMAX:
        return scaled_rounding(instance) * m
    return scaled_rounding(instance) * m**0.5 * jnp.exp(jnp.max(logits))


def _zero(instance: Instance, symmetric: bool = True) -> Sides:
    shown = instance if symmetric else asymmetric(instance)
    outputs, scales = [], []
    for activation in Activation:
        outputs.append(jax.vmap(network(shown, activation=activation))(instance["X"]))
        scales.append(_scale(instance, activation))
    left = jnp.stack(outputs)
    return Sides(left, jnp.zeros_like(left), scale=jnp.stack(scales)[:, None, None])


DEFINITION_3_7 = Claim(
    name=f"{_PAPER}/definition-3-7",
    paper=_PAPER,
    locator="Definition 3.7 and the sentence after it",
    statement=r"w_{2r} = w_{2r-1},\ a_{2r} = -a_{2r-1} \;\Rightarrow\; F_{\ell,i}(0) = 0",
    kind=Kind.IDENTITY,
    status=Status.RECONSTRUCTED,
    provenance=Provenance.RECALLED,
    instances=drawn_symmetric_networks,
    sides=_zero,
    control=Control("asymmetric initialisation", sides=partial(_zero, symmetric=False)),
    count=32,
    terms=ROUNDINGS,
    note="All three activations. The cancellation is up to rounding: pairs are added apart.",
)


def _features(instance: Instance, symmetric: bool = True) -> Sides:
    shown = instance if symmetric else asymmetric(instance)
    m = instance["W"].shape[1]
    right = instance["a"][:, None, :] * m * softmax_weights(shown)[None]
    return Sides(unit_features(network(shown), instance["X"]), right, scale=_scale_of(instance))


def _scale_of(instance: Instance) -> Array:
    return _scale(instance, Activation.SOFTMAX) * instance["W"].shape[1]


SYMMETRIC_FEATURES = Claim(
    name=f"{_PAPER}/symmetric-features",
    paper=_PAPER,
    locator="Definition 3.7, the kernel at initialisation (ours)",
    statement=(
        r"\langle v_{\ell,r}, S_i(0) \rangle = a_{\ell,r},\quad [H^*_{\ell,\ell}]_{i,j} ="
        r"x_i^\top x_j\, m \langle S_i(0), S_j(0) \rangle"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=drawn_symmetric_networks,
    sides=_features,
    control=Control("asymmetric initialisation", sides=partial(_features, symmetric=False)),
    count=32,
    terms=ROUNDINGS,
    note=(
        "The denominator enters the kernel at initialisation as a factor of the features alone: "
        "its derivative vanishes."
    ),
)
