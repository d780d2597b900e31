r"""Table 1: softmax, ReLU and exponential units side by side, one output, the same data.

The paper's softmax network has the prefactor m, the two others m^(-1/2). With targets divided by
sqrt(m) the exponential network makes the steps of one without prefactor, where F is the sum of
a_r exp<w_r, x>: the scale that the softmax network has, whose m S_ir are of order one.
"""

from copy import deepcopy

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_convergence import gu2024_steps
from attlas.claims.claim import Control, Status, assume
from attlas.claims.statement import inequality, probability
from attlas.models.networks.softmax_network import Activation
from gu2024exploring.one_step import ROUNDINGS
from gu2024exploring.trajectories import (
    COUNT,
    EVALUATIONS,
    GENERAL,
    STEPS,
    draw,
    train,
    trained,
)

_ONE = GENERAL._replace(outputs=1, samples=5)
_EPSILON = 1e-3
_ROWS = (Activation.SOFTMAX, Activation.RELU, Activation.EXPONENTIAL)


def three_activations(rng, count):
    """Runs of the three activations, and exponential ones whose targets are Y / sqrt(m)."""
    trainings = [trained(deepcopy(rng), count, _ONE._replace(activation=row)) for row in _ROWS]
    scales = [_ONE.width if row is Activation.SOFTMAX else 1.0 for row in _ROWS]
    exponential = _ONE._replace(activation=Activation.EXPONENTIAL)
    raw = draw(rng, count, exponential)
    lazy = train(raw | {"Y": raw["Y"] / np.sqrt(_ONE.width)}, exponential)
    names = ("lam", "eta", "square", "drift")
    return {name: np.stack([part[name] for part in trainings], 1) for name in names} | {
        "Y": raw["Y"],
        "steps": np.broadcast_to(np.asarray(STEPS, float), (count, len(STEPS))),
        "scale": np.broadcast_to(np.asarray(scales), (count, len(_ROWS))),
        "lazy": lazy["drift"],
    }


@inequality(
    "Table 1, with measured conditions",
    sample=three_activations,
    evaluations=EVALUATIONS,
    assumptions=[
        assume(
            r"all three kernels stay within $\lambda / 2$ of their starts",
            lambda drift, lam: jnp.all(jnp.max(drift, axis=1) <= lam / 2),
        )
    ],
    count=COUNT,
    roundings=ROUNDINGS,
    controls=[Control("a tenth of the steps", times=0.1)],
)
def table_1(square, Y, lam, eta, scale, steps, *, times=1.0):
    r"""$$\|F(\tau)-Y\|_F^2 \le \epsilon\|Y\|_F^2 \text{ for } \tau \ge
    \frac{\log(1/\epsilon)}{-\log(1-\eta\lambda_\phi/2)},\quad
    \phi \in \{\text{softmax}, \text{ReLU}, \exp\}$$

    Width 256, $\epsilon = .001$, the same data and first layers, the step of each in units of $1 /
    \lambda_{\max}$ of its own kernel ($m H$ for softmax). $\lambda_{\max} / \lambda$ sets the
    steps.
    """
    start, n = square[:, 0], Y.shape[0]
    above = square > _EPSILON * start[:, None]
    last = jnp.max(jnp.where(above, steps[None], 0), axis=1)
    rate = scale * eta * lam / 2
    needed = jax.vmap(lambda r, y: gu2024_steps(n, 1, r, _EPSILON * y, y))(rate, start)
    return last, times * needed


@probability(
    "Table 1 and section 5, 'good perturbation property'",
    status=Status.NEW,
    level=0.5,
    sample=three_activations,
    independent="data and first layers",
    count=COUNT,
    roundings=ROUNDINGS,
    controls=[Control("prefactors $m$ and $m^{-1/2}$", equal=False)],
)
def table_1_prefactor(drift, lam, lazy, *, equal=True):
    r"""$$P\Big(\frac{\|H(\tau)-H^*\|_F}{\lambda}\Big|_{\text{softmax}} \ge \frac{1}{10}
    \frac{\|H(\tau)-H^*\|_F}{\lambda}\Big|_{\exp,\,Y/\sqrt m}\Big) \ge \frac12$$

    The exponential network has the prefactor $m^{-1/2}$, at width 256. The control has equal
    prefactors: the advantage is a lazy scaling by $\sqrt m$.
    """
    moved = drift[:, -1] / lam
    return moved[0] >= 0.1 * (lazy[-1] / lam[2] if equal else moved[2])
