r"""Why the kernel moves so little: the symmetric initialisation cancels its first-order change.

At the start F = 0, so that the two units of a pair have opposite gradients. Exchanging the units
of every pair then turns W(0) + Delta into W(0) - Delta and a into -a, and H is even in a.
"""

import jax.numpy as jnp

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import identity
from attlas.models.networks.softmax_network import SoftmaxNetwork
from gu2024exploring.instances import ROUNDINGS, logit_rounding, symmetric_networks
from gu2024exploring.library.kernels.dense_softmax_ntk import dense_softmax_ntk
from gu2024exploring.library.training.softmax_network_gradient import outputs_and_gradient


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
    the coupling $Z_1$ of Claim G.1, its square, was measured to fall like $m^{-4}$.
    """
    a = a.at[:, 1::2].multiply(second)
    step = outputs_and_gradient(SoftmaxNetwork(W, a), X, Y)[1] / W.shape[1]
    down, up = (dense_softmax_ntk(SoftmaxNetwork(moved, a), X) for moved in (W - step, W + step))
    moved = logit_rounding(X, W) + jnp.max(jnp.abs(step))
    return Sides(down, up, magnitude=jnp.max(jnp.abs(up)) * moved)
