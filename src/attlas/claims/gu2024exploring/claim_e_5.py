r"""Claim E.5, and what Lemma E.4 takes from it: lambda_min(H(tau)) >= lambda / 2 and no more.

Lemma E.4 concludes C_1 <= -1.6 m eta lambda ||F - Y||^2, which requires .8 lambda in place of
lambda / 2. The witness has one input x = 1, four units w(0) = (1, 1, -1, -1) of signs +, -, +,
-, and w(tau) = 0: the kernel falls from 1.58 to 1.
"""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_convergence import gu2024_movement_radius
from attlas.claims.gu2024exploring.instances import symmetric_networks, weight_reach
from attlas.claims.gu2024exploring.one_step import ROUNDINGS, SIZES, norm, take
from attlas.claims.gu2024exploring.trajectories import COUNT, curves
from attlas.core.claim import (
    Control,
    Erratum,
    ErratumClass,
    ProofStep,
    Sides,
    Source,
    assume,
)
from attlas.core.statement import erratum, inequality
from attlas.kernels.dense_softmax_ntk import dense_softmax_ntk
from attlas.models.networks.softmax_network import SoftmaxNetwork


def _kernel(W, a, X):
    return dense_softmax_ntk(SoftmaxNetwork(W, a), X)


def _least(W, a, X):
    """The kernel and its smallest eigenvalue."""
    H = _kernel(W, a, X)
    return H, jnp.linalg.eigvalsh(H)[0]


def directions(rng, count):
    """Symmetric starts, and unit vectors V along which the units move."""
    batch = symmetric_networks(rng, count, SIZES)
    V = rng.normal(size=batch["W"].shape)
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    # The direction in which Lemma 5.1 is tightest: all units along one input.
    along = batch["X"][::2, 0] / np.linalg.norm(batch["X"][::2, 0], axis=1, keepdims=True)
    V[::2] = along[:, :, None] * rng.choice([-1.0, 1.0], V[::2, :1].shape)
    return batch | {"V": V}


@inequality(
    "Claim E.5",
    sample=directions,
    assumptions=[
        assume(r"$\lambda$ is at least $10^{-6}$", lambda W, a, X: _least(W, a, X)[1] >= 1e-6)
    ],
    count=56,
    roundings=ROUNDINGS,
    proof_step=ProofStep("Lemma 5.3", 3),
    controls=[Control("$R = 1$", printed=False)],
)
def claim_e_5(W, a, X, Y, V, *, printed=True):
    r"""$$\max_r \|w_r(\tau)-w_r(0)\| \le \frac{\lambda}{2nd\,e^{10B}} \;\Rightarrow\;
    \|H(\tau)-H^*\|_F \le \frac{\lambda}{2},\quad \lambda_{\min}(H(\tau)) \ge
    \frac{\lambda}{2}$$

    The radius is $10^{-6}$ and much less: the kernel moves by less than $10^{-4} \lambda$ within
    it. The second part has the ratio 1/2 because nothing moves.
    """
    start, lam = _least(W, a, X)
    n, k = Y.shape
    R = gu2024_movement_radius(n, k, jnp.maximum(lam, 0), weight_reach(X, W))
    after, least = _least(W + (R if printed else 1.0) * V, a, X)
    left = jnp.stack((norm(after - start), lam / 2))
    return Sides(left, jnp.stack((lam / 2, least)), magnitude=norm(start))


@inequality(
    "Claim E.5, the step from the Frobenius norm to the eigenvalue",
    sample=curves,
    count=COUNT,
    roundings=ROUNDINGS,
    controls=[Control("no change at all", factor=0.0)],
)
def claim_e_5_weyl(lam, least, drift, most, *, factor=1.0):
    r"""$$\lambda - \lambda_{\min}(H(\tau)) \le \|H(\tau)-H^*\|_F$$

    Along real trainings of width 256, by two independent kernels (tiled and dense). A tenth of
    the norm is not reached: the kernel changes in other directions than its slowest.
    """
    return Sides(lam - least, factor * drift, magnitude=most)


def four_units():
    """The network, as it stands in the head of this file; the residual is -y = -1/2."""
    return {
        "start": np.asarray([[1.0, 1.0, -1.0, -1.0]]),
        "W": np.zeros((1, 4)),
        "a": np.asarray([[1.0, -1.0, 1.0, -1.0]]),
        "X": np.ones((1, 1)),
        "Y": np.full((1, 1), 0.5),
        "part": np.asarray(1e-3),
    }


def _in_the_ball(start, W, a, X):
    H, lam = _least(start, a, X)
    return norm(_kernel(W, a, X) - H) <= lam / 2


@erratum(
    r"Lemma E.4, from $\lambda_{\min}(H(\tau)) \ge \lambda / 2$",
    Source.DERIVED,
    witness=four_units,
    reason=r"half of $\lambda$ gives a factor of 1 at most, not of 1.6",
    assumptions=[assume(r"the kernel is within $\lambda / 2$ of its start", _in_the_ball)],
    count=32,
    roundings=ROUNDINGS,
    corrected=Control("1 in place of 1.6", factor=1.0),
)
def lemma_e_4_half(start, W, a, X, Y, part, *, factor=1.6):
    r"""$$\|H(\tau)-H^*\|_F \le \frac{\lambda}{2} \;\Rightarrow\;
    C_1 \le -1.6\, m \eta \lambda\,\|F(\tau)-Y\|_F^2$$

    $C_1 = -2 m \eta u^\top H u$ up to the term of the denominator: here $-2 m \eta \|u\|^2$,
    $\lambda$ being 1.58. The weights of the witness moved by 1, not by the tiny $R$ of the
    induction, where the kernel hardly moves and 1.6 is true; but the proof uses $\lambda / 2$
    alone.
    """
    step = take(W, a, X, Y, part=part)
    C_1 = 2 * jnp.sum(step.u * step.v[1])
    _, lam = _least(start, a, X)
    return factor * lam, -C_1 / (step.m * step.eta * norm(step.u) ** 2)


CONSTANT_OF_E_4 = Erratum(
    paper="gu2024exploring",
    locator="Lemma E.4",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        r"$C_1 \le -1.6\, m \eta \lambda \|F - Y\|^2$ does not follow from "
        r"$\lambda_{\min}(H(\tau)) \ge \lambda/2$, which gives $-m \eta \lambda \|F - Y\|^2$ at "
        r"most: $C_1$ is $-2 m \eta\, u^\top H(\tau) u$ up to a term of order $1/m$. With $-.9$ in "
        r"place of $-1.6$ the rate $1 - m \eta \lambda/2$ still follows: $.9 - .1 - .1 - .1$ is "
        "above .5. The constant 1.6 is from memory of the paper."
    ),
    claim="gu2024exploring/lemma-e-4-half",
)
