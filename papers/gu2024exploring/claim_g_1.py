r"""Claim G.1: four errors of a score estimate, measured on mixtures whose f_* is known.

coupling: network against kernel regression on the labels; label mismatch: labels against the
pseudo-labels f_H(t_j, x_j) + (x_j(0) - f_*(t_j, x_j)) of the auxiliary function; early stopping:
that function against f_H of the RKHS; approximation: f_H against f_*. Norms are in L^2 of the
test law.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, ProofStep, Sides, Source, Status
from attlas.claims.statement import inequality
from gu2024exploring.score_runs import COUNT, score_runs

_FUNCTIONS = ("F", "kernel", "pseudo", "ball")


def equal_errors(rng, count):
    """The runs; in every eighth the functions lie at equal distances on the line from F to f_*."""
    batch = score_runs(rng, count)
    chosen = (np.arange(count) % 8 == 7)[:, None, None]
    ends = batch["F"], batch["truth"]
    shares = zip(_FUNCTIONS, np.arange(4) / 4, strict=True)
    between = {name: (1 - share) * ends[0] + share * ends[1] for name, share in shares}
    return batch | {name: np.where(chosen, f, batch[name]) for name, f in between.items()}


# Sums over 96 test points and four outputs of a few operations each, and square roots.
on_score_runs = partial(inequality, sample=equal_errors, count=COUNT, roundings=512)
link = partial(ProofStep, "gu2024exploring/claim-g-1")


def distance(mass, first, second):
    """||first - second||^2 in L^2 of the test law."""
    return mass @ jnp.sum((first - second) ** 2, axis=1)


def _errors(mass, F, kernel, pseudo, ball, truth):
    """Z_1 to Z_4: coupling, label mismatch, early stopping, approximation."""
    steps = ((F, kernel), (kernel, pseudo), (pseudo, ball), (ball, truth))
    return jnp.stack([distance(mass, *step) for step in steps])


def _roots(mass, F, kernel, pseudo, ball, truth):
    # The derivative of a root at zero is infinite: the search stays clear of it.
    return jnp.sqrt(_errors(mass, F, kernel, pseudo, ball, truth) + jnp.finfo(F.dtype).tiny)


@on_score_runs(
    "Claim G.1, with the constant 4",
    Source.RECALLED,
    search_over=_FUNCTIONS,
    controls=[
        Control("2 in place of 4", factor=2.0),
        Control("without label mismatch and early stopping", kept=(0, 3)),
    ],
)
def claim_g_1(mass, F, kernel, pseudo, ball, truth, *, factor=4.0, kept=(0, 1, 2, 3)):
    r"""$$\mathbb{E} \|F - f_*\|^2 \le 4 (Z_1 + Z_2 + Z_3 + Z_4),\quad
    Z_1 = \mathbb{E} \|F - f_K\|^2,\ Z_2 = \mathbb{E} \|f_K - \tilde f_K\|^2,\
    Z_3 = \mathbb{E} \|\tilde f_K - f_H\|^2,\ Z_4 = \mathbb{E} \|f_H - f_*\|^2$$

    $\tilde f_K$ is trained on the pseudo-labels $f_H + (x(0) - f_*)$, as in the source of the
    claim: labels and pseudo-labels carry the same noise. Where the functions lie at equal distances
    on a line, which is tried on every eighth run, the constant 4 is attained. Widths 128 to 512, 5
    to 16 samples in two or four dimensions, 100 steps. The noise of the labels is in the early
    stopping. The kernel does not move to first order (kernel-even-in-the-step), and the term that
    Theorem F.2 bounds is small with its movement.
    """
    Z = _errors(mass, F, kernel, pseudo, ball, truth)
    return distance(mass, F, truth), factor * jnp.sum(Z[jnp.asarray(kept)])


@on_score_runs(
    "Claim G.1 in norms",
    status=Status.SHARPENED,
    search_over=_FUNCTIONS,
    proof_step=link(0),
    controls=[
        Control("the largest term dropped", dropped=True),
        Control("0.9 of the sum of the four", factor=0.9),
    ],
)
def claim_g_1_norms(mass, F, kernel, pseudo, ball, truth, *, dropped=False, factor=1.0):
    r"""$$\mathbb{E} \|F - f_*\|^2 \le
    \big( \sqrt{Z_1} + \sqrt{Z_2} + \sqrt{Z_3} + \sqrt{Z_4} \big)^2$$
    """
    roots = _roots(mass, F, kernel, pseudo, ball, truth)
    right = factor * jnp.sum(roots) - (jnp.max(roots) if dropped else 0.0)
    return Sides(distance(mass, F, truth), right**2, magnitude=jnp.sum(roots) ** 2)


@on_score_runs(
    "Claim G.1, the constant",
    status=Status.NEW,
    search_over=_FUNCTIONS,
    proof_step=link(1),
    controls=[Control("2 in place of 4", factor=2.0)],
)
def claim_g_1_constant(mass, F, kernel, pseudo, ball, truth, *, factor=4.0):
    r"""$$\big( \sqrt{Z_1} + \sqrt{Z_2} + \sqrt{Z_3} + \sqrt{Z_4} \big)^2
    \le 4 (Z_1 + Z_2 + Z_3 + Z_4)$$

    Sharp where all four errors are equal: the search of claim-g-1 moves functions there.
    """
    functions = (mass, F, kernel, pseudo, ball, truth)
    return jnp.sum(_roots(*functions)) ** 2, factor * jnp.sum(_errors(*functions))
