r"""The gap of Lemma 24, on one small data set: a step of 0.001 is not small enough.

One sample with two tokens of length 6, a query of length 6, p = 3 and W(0) = 0: the lemma requires
 (2/3) ||W(1)||^3 + eta (L(W(1)) - L(0)) <= 0.
"""

import jax.numpy as jnp
import numpy as np

from attlas.claims.julistiono2024optimizing.instances import ROUNDINGS, condition
from attlas.core.claim import Control, Sides, Source, Status
from attlas.core.statement import erratum
from attlas.data.token_selection import TokenSelection
from attlas.optim.mirror_descent import mirror_step, potential
from attlas.tasks.token_selection.gradient import selection_gradient, selection_loss


def two_tokens():
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


@erratum(
    "Lemma 24 at a constant step",
    Source.DERIVED,
    status=Status.NEW,
    witness=two_tokens,
    reason="the step is above the threshold of these data; the loss still falls",
    corrected=Control("a step 10,000 times smaller", factor=1e-4),
    count=1,
    roundings=ROUNDINGS,
)
def lemma_24_gap(X, y, z, v, W, p, eta, *, factor=1.0):
    r"""$$X = \begin{pmatrix} 6 & 0 \\ 0 & 6 \end{pmatrix},\ z = (3.6, 4.8),\ v = (1, 0),\ y = 1,
    \ p = 3,\ W(0) = 0,\ \eta = 0.001: \quad
    \tfrac{2}{3} \|W(1)\|^3 + \eta (\mathcal{L}(W(1)) - \mathcal{L}(0)) \le 0$$

    A gap, not an error: for every data set some step is small enough, but no constant is.
    """
    data, eta = TokenSelection(X, y, z, v), factor * eta
    slope = selection_gradient(W, data)
    after = mirror_step(W, slope, eta, p)
    now, then = selection_loss(W, data), selection_loss(after, data)
    growth = (p - 1) * (potential(after, p) - potential(W, p))
    size = eta * (then + now) * condition(X, z, after)
    drop = eta * (then - now)
    return Sides(growth + drop, -eta * jnp.sum(slope * W), magnitude=size + jnp.abs(growth))
