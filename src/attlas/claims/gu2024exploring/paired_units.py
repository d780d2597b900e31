r"""Why the kernel moves so little: the symmetric initialisation cancels its first-order change.

At the start F = 0, so that the two units of a pair have opposite gradients. Exchanging the units
of every pair then turns W(0) + Delta into W(0) - Delta and a into -a, and H is even in a.
"""

from functools import partial

import jax.numpy as jnp

from attlas.claims.gu2024exploring.instances import (
    ROUNDINGS,
    drawn_symmetric_networks,
    network,
    scaled_rounding,
)
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status
from attlas.kernels.dense_softmax_ntk import dense_softmax_ntk
from attlas.models.networks.softmax_network import SoftmaxNetwork
from attlas.models.networks.softmax_network_gradient import outputs_and_gradient

_PAPER = "gu2024exploring"


def _even(instance: Instance, second: float = 1.0) -> Sides:
    """H one step down and one step up the gradient; a_{2r} is -second a_{2r-1}."""
    start = network(instance)
    a = start.a.at[:, 1::2].multiply(second)
    slope = outputs_and_gradient(SoftmaxNetwork(start.W, a), instance["X"], instance["Y"])[1]
    step = slope / start.width
    down, up = (
        dense_softmax_ntk(SoftmaxNetwork(start.W + sign * step, a), instance["X"])
        for sign in (-1.0, 1.0)
    )
    moved = scaled_rounding(instance) + jnp.max(jnp.abs(step))
    return Sides(down, up, scale=jnp.max(jnp.abs(up)) * moved)


EVEN_KERNEL = Claim(
    name=f"{_PAPER}/kernel-even-in-the-step",
    paper=_PAPER,
    locator="Definitions 3.6 and 3.7, the first step (ours)",
    statement=(
        r"w_{2r}(0) = w_{2r-1}(0),\ a_{2r} = -a_{2r-1} \;\Rightarrow\;"
        r"H(W(0) - \eta \Delta W(0)) = H(W(0) + \eta \Delta W(0)) \quad \forall \eta"
    ),
    kind=Kind.IDENTITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=drawn_symmetric_networks,
    sides=_even,
    control=Control(
        "second layers of opposite sign but unequal size", sides=partial(_even, second=0.5)
    ),
    count=48,
    terms=ROUNDINGS,
    note=(
        "The change of the kernel over the first step is of second order in it: Lemma 5.1 counts "
        "the first order, which cancels. The change is then of order m^(-2) where units move by "
        "1/m, and the coupling Z_1 of Claim G.1, its square, was measured to fall like m^(-4)."
    ),
)
