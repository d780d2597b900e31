"""Flaws of the paper as text, with the class of each and the claim that shows it, if any."""

from functools import partial

from attlas.claims.claim import Erratum, ErratumClass

_flaw = partial(Erratum, "julistiono2024optimizing")

STEP_SIZE = _flaw(
    "Lemma 24",
    ErratumClass.GAP,
    r"'Suppose Assumptions A hold and $\eta$ is small enough', with the proof left to papers whose "
    r"losses and potentials are others. Read as 'small enough for given data, inside the cone', it "
    r"holds for $p \le 2$, and for $p > 2$ where no entry of $W_{mm}$ vanishes, with a constant of "
    "the data (our proof, claim lemma-24-in-the-cone). What is missing is that constant and the "
    r"condition for $p > 2$, where the Hessian of $\psi$ vanishes at zero entries. The lemma "
    r"itself names no cone: from $W(0) = 0$, $p = 3$, $\eta = 0.001$ is too large for tokens and a "
    r"query of length 6, and the threshold falls exactly as $s^{-p}$ if the queries grow by $s$. "
    "The conclusion, descent of the loss, is not affected.",
    claim="julistiono2024optimizing/lemma-24-gap",
)

NORMALISED_STEPS = _flaw(
    "Experiments, synthetic data",
    ErratumClass.GAP,
    "The theorems are on plain steps; the released code of the synthetic experiments divides the "
    "gradient by its dual norm. As an illustration of the direction this changes nothing. The rate "
    r"theorem is not illustrated: there $\|W(k)\|_{p,p}^{p-1}$ grows up to $\eta k$, not like "
    r"$\log k$.",
    claim="julistiono2024optimizing/normalised-growth",
)

LOOSE_CONE = _flaw(
    "Lemma 13 and equation (8)",
    ErratumClass.VACUITY,
    r"With the caveat that our text of the constants is recalled. The statements are true; the "
    r"constants behind $\mu_0$ are not the best: 0.195 at $p = 3$ where Lemma 13 has 0.042, 1/12 "
    r"at $p = 4$ where it has 1/64, and for $p < 2$ the bound "
    r"$D_\psi(W_1, W_2) \ge \frac{p-1}{2} \|W_1 - W_2\|_{p,p}^2$ on the sphere removes the power "
    r"of $d$ from $\mu_0$. With the recalled constants $\mu_0$ is $(\delta / 8 A)^p / p$ for "
    r"$p \ge 2$: where $\delta$ is far below $A$, a start in the cone is at the limit already.",
    claim="julistiono2024optimizing/lemma-13-sphere",
)
