"""Flaws of the paper as text, with the class of each and the claim that shows it, if any."""

from functools import partial

from attlas.core.claim import Erratum, ErratumClass

_flaw = partial(Erratum, "julistiono2024optimizing")

STEP_SIZE = _flaw(
    "Lemmas 24 and 25",
    ErratumClass.GAP,
    r"'$\eta$ small enough' is taken as a constant, but no constant makes "
    r"$\psi - \eta \mathcal{L}$ convex along the step: for $p > 2$ the Hessian of $\psi$ vanishes "
    "at zero entries, for $p < 2$ at large ones. The threshold depends on the data and on $W(k)$: "
    r"on tokens and a query of length 6 from $W(0) = 0$ the lemma fails at $p = 3$ with "
    r"$\eta = 0.001$. If the queries grow by $s$ it shrinks exactly as $s^{-p}$. Fixed by a "
    "condition on the step that can be evaluated (claims lemma-24 and lemma-25).",
    claim="julistiono2024optimizing/lemma-24-gap",
)

NORMALISED_STEPS = _flaw(
    "Experiments, synthetic data",
    ErratumClass.GAP,
    "The theory is for plain steps; the released experiments divide the gradient by its dual norm. "
    r"There $\|W(k)\|_{p,p}^{p-1}$ grows up to $\eta k$, not $\log k$, so that the $1/\log k$ "
    "rates of the theorem do not describe the plots.",
    claim="julistiono2024optimizing/normalised-growth",
)

LOOSE_CONE = _flaw(
    "Lemma 13 and equation (8)",
    ErratumClass.VACUITY,
    r"The constants behind $\mu_0$ are loose: for $p = 3$ the best scalar constant is 0.195 where "
    "the lemma has 0.042, for $p = 4$ it is 1/12 instead of 1/64, and for $p < 2$ the bound "
    r"$D_\psi(W_1, W_2) \ge \frac{p-1}{2} \|W_1 - W_2\|_{p,p}^2$ on the sphere removes the power "
    r"of $d$ from $\mu_0$. With the printed constants the cone is so narrow on the paper's own "
    r"data ($\mu_0$ of $10^{-8}$ to $10^{-15}$) that a trajectory started inside it does not move "
    "in any practical time.",
    claim="julistiono2024optimizing/lemma-13-sphere",
)

BEST_TEST_EPOCH = _flaw(
    "Table on the movie reviews",
    ErratumClass.GAP,
    "'Improves generalisation' rests on a table whose entries are the best epoch on the test set, "
    "in the released results: the test set chooses when to stop. At the last epoch the accuracies "
    "are 0.4 to 4.5 points lower.",
)
