"""Flaws of the definitions, the kernel and the width as text, and the claims that show them."""

import numpy as np
from scipy.stats import chi2

from attlas.core.claim import Control, Erratum, ErratumClass, Source
from attlas.core.statement import erratum

_PAPER = "gu2024exploring"

WIDTH = Erratum(
    paper=_PAPER,
    locator="Theorem 4.2, the width",
    kind=ErratumClass.VACUITY,
    text=(
        r"With every hidden constant 1, even with $C = 1$ in place of $C > 10$, $\sigma = 1$, "
        r"$\delta = 0.1$ and $\lambda = 0.1$ the width is $1.8 \cdot 10^{23}$ ($n = 5$, $d = 3$), "
        r"$1.1 \cdot 10^{24}$ ($n = 10$, $d = 2$), $4.5 \cdot 10^{33}$ ($n = 100$, $d = 10$). With "
        r"$C = 10$ it is $5 \cdot 10^{180}$, $10^{186}$, $10^{247}$, and with a $B$ that holds for "
        r"all units $10^{294}$, $10^{295}$, $10^{303}$. '$n^{2+o(1)}$' is true only in a limit "
        "that no data reach."
    ),
    claim=f"{_PAPER}/b-of-the-width",
)

SMALLEST_EIGENVALUE = Erratum(
    paper=_PAPER,
    locator=r"Theorem 4.2, $\lambda > 0$ 'as in previous works'",
    kind=ErratumClass.VACUITY,
    text=(
        r"$\lambda$ is positive but tiny, and falls faster than any power of $n$ in a fixed "
        r"dimension: below 0.031, $1.2 \cdot 10^{-7}$, $6.6 \cdot 10^{-22}$ for any 10, 20, 40 "
        r"unit inputs in the plane at $\sigma = 1$. Width and steps proportional to "
        r"$\lambda^{-2}$ are then not polynomial in $n$."
    ),
    claim=f"{_PAPER}/smallest-eigenvalue",
)

B_WITHOUT_WIDTH = Erratum(
    paper=_PAPER,
    locator="Definition 4.1 and Lemma B.1, Part 1",
    kind=ErratumClass.REFUTED,
    text=(
        r"$B$ is to bound $|\langle w_r, x_i \rangle|$ for all $m$ units but has no $m$ in it. It "
        r"serves for $m$ below $\exp(B^2 / (2 \sigma^2))$, while Theorem 4.2 requires $m$ above "
        r"$\exp(18 B)$: with $C$ just above 10 and $\sigma = 1$ the event fails almost surely "
        r"whenever $nd/\delta < 4 \cdot 10^5$. $\sigma \sqrt{2 \log(nm / (2 \delta))}$ is right, "
        r"and makes the width the solution of an equation: $B \ge 35 \sigma^2$, "
        r"$m \ge \exp(630 \sigma^2)$."
    ),
    claim=f"{_PAPER}/lemma-b-1-part-1-printed",
)

NORMALISATION = Erratum(
    paper=_PAPER,
    locator="Abstract, sections 1 and 5, Lemma 5.1",
    kind=ErratumClass.GAP,
    text=(
        "'The normalization effect leads to a good perturbation property': Lemma 5.1 is of the "
        "order of the lemmas for ReLU and the exponential, its constant larger. Relative to the "
        "kernel the exponential moves by $2 R$ at most and the softmax by $4 R$, both sharp. At "
        r"infinite width and for unit inputs the two kernels agree up to the factor $e^{\sigma^2}$."
    ),
    claim=f"{_PAPER}/softmax-perturbs-less-than-exponential",
)

KERNEL_CHANGE = Erratum(
    paper=_PAPER,
    locator="Lemma 5.1 / B.2",
    kind=ErratumClass.VACUITY,
    text=(
        "True, but $R e^{10 B}$ is at least $22026 R$, while the change is about $4 R$ times the "
        "kernel's own entry at most. A true bound has no $e^B$ at all, because the softmax is "
        "Lipschitz whatever its logits; nor is a probability needed."
    ),
    claim=f"{_PAPER}/lemma-5-1-sharp",
)

INITIAL_LOSS = Erratum(
    paper=_PAPER,
    locator="Lemma D.3",
    kind=ErratumClass.GAP,
    text=(
        r"$\|F(0) - Y\|_F = O(\sqrt{nd})$ is loose: $F(0) = 0$ and $\|y_i\| \le 1$ give "
        r"$\|Y\|_F \le \sqrt n$. A factor $\sqrt d$ is lost wherever the lemma is used."
    ),
    claim=f"{_PAPER}/definition-3-7",
)

NOISY_INPUTS = Erratum(
    paper=_PAPER,
    locator="Assumption 6.1",
    kind=ErratumClass.REFUTED,
    text=(
        r"$\|x_i\| \le 1$ is assumed of the noisy inputs $x(t)$, which are Gaussian given $x(0)$ "
        "and thus unbounded: 'based on normalization' would need a rescaling that depends on the "
        "sample."
    ),
    claim=f"{_PAPER}/assumption-6-1-printed",
)

MOVED_GAUSSIAN = Erratum(
    paper=_PAPER,
    locator="Lemma B.1, Parts 2 and 5",
    kind=ErratumClass.GAP,
    text=(
        r"Both $w$ and $\tilde w$ are taken from $N(0, \sigma^2 I)$, and "
        r"$|\langle \tilde w, x \rangle|$ is bounded by the Gaussian tail. The lemma is used for "
        r"trained weights $\tilde w$, which are not Gaussian. Part 3 gives what is needed, $B + R$ "
        "in place of $B$ for the moved weights."
    ),
    claim=f"{_PAPER}/lemma-b-1-part-2",
)

CONCENTRATION = Erratum(
    paper=_PAPER,
    locator="Lemmas E.3 and E.4",
    kind=ErratumClass.GAP,
    text=(
        "The proofs apply the inequalities of Hoeffding and Hanson-Wright to the second layer at "
        r"time $\tau$, where the softmax depends on it through training; independence is not "
        "argued in the text that we could read, whose formulas are lost. The signs of a pair are "
        "not independent either. lemma-e-3-sharp and lemma-e-4-corrected hold deterministically."
    ),
    claim=f"{_PAPER}/lemma-e-3-sharp",
)

NO_EXPERIMENT = Erratum(
    paper=_PAPER,
    locator="Whole paper",
    kind=ErratumClass.GAP,
    text=(
        "There is no experiment: neither that wide softmax networks stay near their kernel, nor "
        "the comparison of Table 1, nor the diffusion is measured."
    ),
)


def at_time_one():
    """P(||x(1)|| <= r) in the plane at x(0) = 0, where x(1) has the covariance (1 - 1/e) I."""
    return {f"within_{r}": np.asarray(chi2.cdf(r**2 / -np.expm1(-1.0), 2.0)) for r in (1, 2)}


@erratum(
    "Assumption 6.1 for the inputs $x(t)$",
    Source.RECALLED,
    witness=at_time_one,
    reason="at $t = 1$, $d = 2$, $x(0) = 0$ the probability is 0.55 for a single sample",
    corrected=Control("a radius of 2 in place of 1", wider=True),
)
def assumption_6_1_printed(within_1, within_2, *, wider=False):
    r"""$$P\big( \|x(t)\|_2 \le 1 \big) \ge 0.9,\quad \|x(0)\|_2 \le 1,\ g = 1$$

    $x(0) = 0$ is the most favourable start (Anderson's inequality); the probability that all $n$
    samples obey is its $n$-th power at most. Corrected in claim assumption-6-1.
    """
    return 0.9, within_2 if wider else within_1
