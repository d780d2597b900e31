r"""The gap of Lemma 24, on one small data set: a step of 0.001 is not small enough.

One sample with two tokens of length 6, a query of length 6, p = 3 and W(0) = 0: the lemma asks
for (2/3) ||W(1)||^3 + eta (L(W(1)) - L(0)) <= 0.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.claims.julistiono2024optimizing.instances import (
    ROUNDINGS,
    condition,
    gradient,
    mirror_step,
    risk,
)
from attlas.core.old_claim import (
    Claim,
    Control,
    Coverage,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness
from attlas.optim.mirror_descent import potential

_PAPER = "julistiono2024optimizing"


def _witness() -> Witness:
    """The data, as they stand in the statement."""
    return {
        "X": np.asarray([[[6.0, 0.0], [0.0, 6.0]]]),
        "y": np.asarray([1.0]),
        "z": np.asarray([[3.6, 4.8]]),
        "v": np.asarray([1.0, 0.0]),
        "W": np.zeros((2, 2)),
        "p": np.asarray(3.0),
        "eta": np.asarray(1e-3),
    }


def _instances(key: PRNGKeyArray, count: int) -> Instance:
    """The one instance that the statement is about, repeated."""
    del key
    return {k: jnp.asarray(np.repeat(v[None], count, axis=0)) for k, v in _witness().items()}


def _sides(instance: Instance, factor: float = 1.0) -> Sides:
    W, p, eta = instance["W"], instance["p"], factor * instance["eta"]
    slope = gradient(instance, W)
    after = mirror_step(W, slope, eta, p)
    growth: Array = (p - 1) * (potential(after, p) - potential(W, p))
    drop = eta * (risk(instance, after) - risk(instance, W))
    size = eta * (risk(instance, after) + risk(instance, W)) * condition(instance, after)
    return Sides(growth + drop, -eta * jnp.sum(slope * W), scale=size + jnp.abs(growth))


LEMMA_24_GAP = Claim(
    name=f"{_PAPER}/lemma-24-gap",
    paper=_PAPER,
    locator="Lemma 24 at a constant step",
    statement=(
        r"X = \begin{pmatrix} 6 & 0 \\ 0 & 6 \end{pmatrix},\ z = (3.6, 4.8),\ v = (1, 0),\ y = 1,"
        r"\ p = 3,\ W(0) = 0,\ \eta = 0.001: \quad"
        r"\tfrac{2}{3} \|W(1)\|^3 + \eta (\mathcal{L}(W(1)) - \mathcal{L}(0)) \le 0"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_instances,
    sides=_sides,
    control=(
        Control(
            "a step 10,000 times smaller",
            sides=partial(_sides, factor=1e-4),
            expect=Outcome.SUPPORTED,
        ),
    ),
    expect=Expectation(
        Outcome.VIOLATED,
        "the step is above the threshold of these data; the loss still falls",
    ),
    count=1,
    terms=ROUNDINGS,
    coverage=Coverage.EXHAUSTIVE,
    witness=_witness,
    note="A gap, not an error: for every data set some step is small enough, but no constant is.",
)
