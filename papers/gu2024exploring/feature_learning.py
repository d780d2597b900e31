r"""Appendix H.2, feature learning: where does a softmax network leave the kernel regime?

Networks of four units and one output, targets of length 1. The alignment of the kernel with the
targets is A = y'Hy / (||H||_F ||y||^2); the lazy scaling makes the targets a thirtieth.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Status, assume
from attlas.claims.statement import existence, probability
from gu2024exploring.one_step import ROUNDINGS
from gu2024exploring.trajectories import GENERAL, STEPS, runs

_NARROW = GENERAL._replace(width=4, outputs=1, targets=(0.99, 1.0), planes=0)
_LAZY = _NARROW._replace(targets=(0.033, 0.034))
_EARLY = STEPS.index(16)
"""A record at which some runs have not fitted their samples."""


def measured(rng, count, setting, record=-1):
    """Movement and alignment of the kernel and loss at a record of `STEPS`; m eta lambda."""
    training = runs(rng, count, setting)
    y = training["Y"].swapaxes(1, 2).reshape(count, -1)
    H = training["kernels"]
    size = np.linalg.norm(H, axis=(2, 3))
    along = np.einsum("ei,esij,ej->es", y, H, y) / (size * np.sum(y**2, axis=1)[:, None])
    return {
        "moved": training["drift"][:, record] / size[:, 0],
        "gained": along[:, record] - along[:, 0],
        "left": training["square"][:, record] / training["square"][:, 0],
        "rate": training["m"] * training["eta"] * training["lam"],
    }


@existence(
    "Appendix H.2, feature learning",
    status=Status.NEW,
    sample=partial(measured, setting=_NARROW),
    assumptions=[
        assume(
            r"the linearised descent reaches 1/100: $(1 - m\eta\lambda)^{2\tau} \le \frac1{100}$",
            lambda rate: 2 * STEPS[-1] * jnp.log1p(-rate) <= -jnp.log(100.0),
        )
    ],
    count=72,
    roundings=ROUNDINGS,
    controls=[
        Control("lazy scaling: targets of length 1/30", sample=partial(measured, setting=_LAZY)),
        Control(
            f"no more than {STEPS[_EARLY]} steps",
            sample=partial(measured, setting=_NARROW, record=_EARLY),
        ),
    ],
)
def feature_learning(moved, left):
    r"""$$m = 4,\; d = 1:\quad \frac{\|H(\tau)-H^*\|_F}{\|H^*\|_F} \ge 0.02,\quad
    \|F(\tau)-Y\|_F^2 \le \tfrac{1}{10} \|F(0)-Y\|_F^2$$

    Four units fit four samples while the kernel moves: outside the regime of Theorem 4.2 and still
    convergent. The movement falls as $m^{-2}$ (lemma-5-3-even-order). The assumption excludes runs
    whose smallest eigenvalue is too small.
    """
    return jnp.asarray([0.02, 0.9]), jnp.stack((moved, 1 - left))


@probability(
    "Appendix H.2, alignment of the kernel with the targets",
    status=Status.NEW,
    level=0.5,
    sample=partial(measured, setting=_NARROW),
    independent="data and first layer",
    count=96,
    roundings=ROUNDINGS,
    controls=[Control("a gain of more than 1/20", more=True)],
)
def feature_learning_alignment(gained, *, more=False):
    r"""$$P\Big(A(\tau) - A(0) \le \frac{1}{20}\Big) \ge \frac12,\quad m = 4,\; d = 1$$

    What is called feature learning is not seen in the alignment.
    """
    return (gained > 0.05) == more
