r"""Lemmas D.1 to D.3: the gradient at any time, and the loss at the start.

B is taken at the weights themselves.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_convergence import gu2024_gradient, gu2024_start
from attlas.claims.claim import Control, ProofStep, Sides, Status, assume
from attlas.claims.statement import inequality
from gu2024exploring.instances import networks, symmetric_networks, weight_reach
from gu2024exploring.one_step import ROUNDINGS, norm, points, take, within_unit_ball
from gu2024exploring.trajectories import COUNT, EVALUATIONS, curves

at_points = partial(inequality, sample=points, count=32, roundings=ROUNDINGS)
link = partial(ProofStep, "Lemma 5.3")


def points_and_ends(rng, count):
    """Points; in every fourth, one unit has the logit 1 and all others -1, at equal inputs."""
    batch = points(rng, count)
    chosen = (np.arange(count) % 4 == 3)[:, None, None]
    x = batch["X"][:, :1] / np.linalg.norm(batch["X"][:, :1], axis=2, keepdims=True)
    logits = np.where(np.arange(batch["W"].shape[2]) == 0, 1.0, -1.0)
    S = np.exp(logits) / np.exp(logits).sum()
    mean = batch["a"] @ S
    # Residuals along the row of the unit: those that make its gradient longest.
    Y = len(S) * mean - (batch["a"][:, :, 0] - mean)
    ends = {"W": np.swapaxes(x, 1, 2) * logits, "X": x, "Y": Y[:, None, :]}
    return batch | {name: np.where(chosen, end, batch[name]) for name, end in ends.items()}


@at_points(
    "Lemma D.1",
    sample=points_and_ends,
    proof_step=link(1),
    controls=[
        Control("$e^{-3B}$ in place of $e^{3B}$", sign=-1.0),
        Control("a tenth of the right side", factor=0.1),
    ],
)
def lemma_d_1(W, a, X, Y, part, *, sign=1.0, factor=1.0):
    r"""$$\|\Delta w_r(\tau)\|_2 \le e^{3B} \sqrt{nd}\,\|F(\tau)-Y\|_F$$

    $d$ of the formula is the number of outputs. $B$ is measured, the smallest that can stand there:
    with Definition 4.1 the right side is larger by $e^{30}$ at least. Equal inputs and one unit
    whose logit is 1 where all others are -1 come nearest; lemma-d-1-sharp shows how much is lost.
    """
    step, (n, k) = take(W, a, X, Y, part=part), Y.shape
    bound = gu2024_gradient(n, k, sign * weight_reach(X, W), norm(step.u))
    return step.gradient, factor * bound


@at_points(
    "Lemma D.1, sharpened",
    status=Status.SHARPENED,
    search_over=("W", "X", "Y"),
    project=within_unit_ball,
    controls=[Control("without $n d$", whole=False)],
)
def lemma_d_1_sharp(W, a, X, Y, part, *, whole=True):
    r"""$$\|\Delta w_r(\tau)\|_2 \le c\,P \sqrt{nd}\,\|F(\tau)-Y\|_F,\quad
    c = 1 + \frac{\|F\|_\infty}{m},\quad P = \max_{i,r} m S_{i,r}$$

    $P$ is the largest share of attention times $m$, where Lemma D.1 has $e^{3B}$. Equal inputs and
    residuals along the signs of a unit reach it.
    """
    step = take(W, a, X, Y, part=part)
    size = step.size if whole else 1.0
    return step.gradient, step.c * step.share * jnp.sqrt(size) * norm(step.u)


@at_points(
    "Lemma D.2 and Lemma C.4",
    sample=curves,
    evaluations=EVALUATIONS,
    count=COUNT,
    proof_step=link(2),
    assumptions=[assume("the loss is at most $n d$", lambda square, Y: jnp.max(square) <= Y.size)],
    controls=[
        Control("$e^{-16.5B}$ in place of $e^{-13B}$", decay=16.5),
        Control(r"$0.1\,\lambda / n$ in the middle", whole=False),
    ],
)
def lemma_d_2(largest_step, Y, m, lam, B, eta, *, decay=13.0, whole=True):
    r"""$$\eta = \frac{0.1\,\lambda}{m n^2 d^2 e^{16B}} \;\Rightarrow\;
    \eta \|\Delta w_r(\tau)\|_2 \le \frac{0.1\,\lambda}{m n d} e^{-13B} \le 0.01$$

    The text of the lemma was not readable; this is what the induction needs. At the reconstructed
    step the weights of a unit move far less than 0.01 per step. The first bound
    is far from what is reached, by about $e^{16B}$.
    """
    n, k = Y.shape
    printed = 0.1 * lam / (m * n**2 * k**2 * jnp.exp(16 * B))
    length = printed * jnp.max(largest_step) / eta
    bound = 0.1 * lam * (jnp.exp(-decay * B) / (m * k) if whole else 1.0) / n
    return jnp.stack((length, bound)), jnp.stack((bound, jnp.full_like(bound, 0.01)))


def symmetric_starts(rng, count):
    """Symmetric networks with targets of length 1."""
    batch = symmetric_networks(rng, count)
    lengths = np.linalg.norm(batch["Y"], axis=2, keepdims=True)
    return batch | {"Y": batch["Y"] / lengths, "part": np.ones(count)}


def asymmetric_starts(rng, count):
    """Networks whose outputs do not vanish."""
    return networks(rng, count) | {"part": np.ones(count)}


@at_points(
    "Lemma D.3, sharpened",
    status=Status.SHARPENED,
    sample=symmetric_starts,
    proof_step=link(0),
    controls=[
        Control("asymmetric starts", sample=asymmetric_starts),
        Control(r"nine tenths of $\sqrt n$", factor=0.9),
    ],
)
def lemma_d_3(W, a, X, Y, part, *, factor=1.0):
    r"""$$\|F(0)-Y\|_F = \|Y\|_F \le \sqrt{n} \quad (\text{reconstructed: } O(\sqrt{nd}))$$

    Targets of length 1 reach the bound: the factor $\sqrt d$ is never needed.
    """
    step, (n, k) = take(W, a, X, Y, part=part), Y.shape
    # The outputs at the start are zero up to the rounding of m terms of size P each.
    magnitude = step.m * step.share + jnp.sqrt(n)
    return Sides(norm(step.u), factor * gu2024_start(n, k), magnitude=magnitude)
