r"""Claim G.1: four errors of a score estimate, measured on mixtures whose f_* is known.

coupling: network against kernel regression; label mismatch: noisy against true labels; early
stopping: against a function of the RKHS; approximation: of f_* by it. Norms are in L^2 of the
test law.
"""

from functools import partial

import jax.numpy as jnp

from attlas.claims.gu2024exploring.score_runs import score_runs
from attlas.core.claim import Control, ProofStep, Sides, Source, Status
from attlas.core.statement import inequality

_FUNCTIONS = ("F", "kernel", "clean", "ball")
# Sums over 96 test points and two outputs of a few operations each, and square roots.
on_score_runs = partial(inequality, sample=score_runs, count=32, roundings=512)
link = partial(ProofStep, "gu2024exploring/claim-g-1")


def distance(mass, first, second):
    """||first - second||^2 in L^2 of the test law."""
    return mass @ jnp.sum((first - second) ** 2, axis=1)


def _errors(mass, F, kernel, clean, ball, truth):
    """Z_1 to Z_4: coupling, label mismatch, early stopping, approximation."""
    steps = ((F, kernel), (kernel, clean), (clean, ball), (ball, truth))
    return jnp.stack([distance(mass, *step) for step in steps])


def _roots(mass, F, kernel, clean, ball, truth):
    # The derivative of a root at zero is infinite: the search stays clear of it.
    return jnp.sqrt(_errors(mass, F, kernel, clean, ball, truth) + jnp.finfo(F.dtype).tiny)


@on_score_runs(
    "Claim G.1, with the constant 4",
    Source.RECALLED,
    search_over=_FUNCTIONS,
    controls=[
        Control("a tenth of the sum", factor=0.1),
        Control("without label mismatch and early stopping", kept=(0, 3)),
    ],
)
def claim_g_1(mass, F, kernel, clean, ball, truth, *, factor=4.0, kept=(0, 1, 2, 3)):
    r"""$$\mathbb{E} \|F - f_*\|^2 \le 4 (Z_1 + Z_2 + Z_3 + Z_4),\quad
    Z_1 = \mathbb{E} \|F - f_K\|^2,\ Z_2 = \mathbb{E} \|f_K - \tilde f_K\|^2,\
    Z_3 = \mathbb{E} \|\tilde f_K - f_H\|^2,\ Z_4 = \mathbb{E} \|f_H - f_*\|^2$$

    Width 64, 8 samples, 100 steps. Medians over 32 mixtures: coupling $5 \cdot 10^{-8}$, label
    mismatch 0.12, early stopping 0.05, approximation 0.01, error 0.16 where the zero function has
    0.22. Theorem F.2, the paper's own contribution, bounds the one term that does not matter here.
    At widths 8, 32, 128 the coupling is $10^{-4}$, $10^{-6}$, $5 \cdot 10^{-9}$: like $m^{-4}$, as
    the kernel does not move to first order (kernel-even-in-the-step).
    """
    Z = _errors(mass, F, kernel, clean, ball, truth)
    return distance(mass, F, truth), factor * jnp.sum(Z[jnp.asarray(kept)])


@on_score_runs(
    "Claim G.1 in norms",
    status=Status.SHARPENED,
    search_over=_FUNCTIONS,
    proof_step=link(0),
    controls=[Control("the largest term dropped", dropped=True)],
)
def claim_g_1_norms(mass, F, kernel, clean, ball, truth, *, dropped=False):
    r"""$$\mathbb{E} \|F - f_*\|^2 \le
    \big( \sqrt{Z_1} + \sqrt{Z_2} + \sqrt{Z_3} + \sqrt{Z_4} \big)^2$$
    """
    roots = _roots(mass, F, kernel, clean, ball, truth)
    right = jnp.sum(roots) - (jnp.max(roots) if dropped else 0.0)
    return Sides(distance(mass, F, truth), right**2, magnitude=jnp.sum(roots) ** 2)


@on_score_runs(
    "Claim G.1, the constant",
    status=Status.NEW,
    proof_step=link(1),
    controls=[Control("2 in place of 4", factor=2.0)],
)
def claim_g_1_constant(mass, F, kernel, clean, ball, truth, *, factor=4.0):
    r"""$$\big( \sqrt{Z_1} + \sqrt{Z_2} + \sqrt{Z_3} + \sqrt{Z_4} \big)^2
    \le 4 (Z_1 + Z_2 + Z_3 + Z_4)$$

    Sharp where all four errors are equal: the search of claim-g-1 moves functions there.
    """
    functions = (mass, F, kernel, clean, ball, truth)
    return jnp.sum(_roots(*functions)) ** 2, factor * jnp.sum(_errors(*functions))
