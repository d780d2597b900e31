r"""Adding one vector to all columns of W changes nothing: d exactly flat directions.

Symbols: W, a, X, Y as in `instances`; u is the vector that is added.
"""

from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.gu2024exploring.instances import (
    ROUNDINGS,
    SIZES,
    as_arrays,
    network,
    networks,
)
from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.kernels.dense_softmax_ntk import unit_features
from attlas.models.networks.softmax_network import Activation
from attlas.models.networks.softmax_network_gradient import outputs_and_gradient

_PAPER = "gu2024exploring"


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    batch = networks(rng, count)
    batch["u"] = rng.normal(size=(count, SIZES[0])) * 10 ** rng.uniform(-1, 1, (count, 1))
    return as_arrays(batch)


def _scale(instance: Instance) -> Array:
    """Features of size 2 m max |a|; a rounding of a logit of either network moves them by it."""
    logits = jnp.max(jnp.abs(instance["X"]) @ jnp.abs(instance["W"]))
    m = instance["W"].shape[1]
    reach = 1 + logits + jnp.sum(jnp.abs(instance["u"]))
    return reach * 2 * m * jnp.max(jnp.abs(instance["a"]))


def _shifted(instance: Instance, share: float = 1.0) -> Sides:
    m = instance["W"].shape[1]
    moved = (jnp.arange(1.0 * m) < share * m).astype(instance["u"].dtype)
    other = {**instance, "W": instance["W"] + instance["u"][:, None] * moved[None, :]}
    left, right = (unit_features(network(i), i["X"]) for i in (other, instance))
    return Sides(left, right, scale=_scale(instance))


SHIFT_INVARIANCE = Claim(
    name=f"{_PAPER}/shift-invariance",
    paper=_PAPER,
    locator="Section 3, invariance of the softmax (ours)",
    statement=(
        r"F(W + u 1_m^\top, x, a) = F(W, x, a),\quad "
        r"H(W + u 1_m^\top) = H(W) \;\mathrm{for\ all}\; u \in R^d"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_shifted,
    control=Control("only half of the columns moved", sides=partial(_shifted, share=0.5)),
    count=32,
    terms=ROUNDINGS,
    note=(
        "Checked on the features (a_lr - F_li / m) m S_ir, of which output and kernel are made. "
        "Distances ||w_r - w_r(0)|| are therefore larger than the function needs."
    ),
)


def _sum_of_gradient(instance: Instance, activation: Activation = Activation.SOFTMAX) -> Sides:
    X, Y, m = instance["X"], instance["Y"], instance["W"].shape[1]
    outputs, gradient = outputs_and_gradient(network(instance, activation=activation), X, Y)
    left = jnp.sum(gradient, axis=1)
    residual = jnp.sum(jnp.abs(outputs) + jnp.abs(Y))
    return Sides(left, jnp.zeros_like(left), scale=m * residual * _scale(instance))


GRADIENT_SUMS_TO_ZERO = Claim(
    name=f"{_PAPER}/gradient-sums-to-zero",
    paper=_PAPER,
    locator="Claim 3.4, the flat directions (ours)",
    statement=r"\sum_{r=1}^m \Delta w_r(\tau) = 0,\quad \sum_r w_r(\tau) = \sum_r w_r(0)",
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_sum_of_gradient,
    control=Control(
        "exponential network", sides=partial(_sum_of_gradient, activation=Activation.EXPONENTIAL)
    ),
    count=32,
    terms=ROUNDINGS,
    note="Gradient descent keeps the mean column of W, a conserved quantity of the softmax.",
)
