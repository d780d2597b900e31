"""Flaws of the assumptions, of Lemma 1 and of its proof as text, with the claims that show them."""

from attlas.core.claim import Erratum, ErratumClass

_PAPER = "liu2021analyzing"

WRONG_INVERSE = Erratum(
    paper=_PAPER,
    locator="Section 3.1, definition of var(z_1 | z_2)",
    kind=ErratumClass.REFUTED,
    text=(
        "The formula inverts the covariance of z_1 where that of z_2 belongs: for z_1 = 2 z_2 it "
        "leaves 3 of the variance 4 instead of 0. The proof of Lemma 1.1 has it right."
    ),
    claim=f"{_PAPER}/conditional-variance-printed",
)

SAME_SAMPLE = Erratum(
    paper=_PAPER,
    locator="Appendix A.1, numerical check of (A3)",
    kind=ErratumClass.VACUITY,
    text=(
        "The conditional covariance 3.13e-8 at n = 500 is computed on the sample that the "
        "regression was fitted on. From width n - 1 on it is zero for any features, those of "
        "independent inputs included. On fresh data the check says something: there it bounds the "
        "left side of (A3) from above."
    ),
    claim=f"{_PAPER}/conditional-variance-wide",
)

CONCENTRATION_NAMED = Erratum(
    paper=_PAPER,
    locator="(A2) and (A4)",
    kind=ErratumClass.VACUITY,
    text=(
        "'There exist 0 < s_0 < p and 0 < tau < 1 with ||f_(1..s_0)||_2 >= 1 - tau' holds for any "
        "weights of length one, uniform ones included, with s_0 = 1 and tau = 1 - 1/sqrt(p). And "
        "softmax does not concentrate by itself: it does if the s_0-th logit leads the next."
    ),
    claim=f"{_PAPER}/assumption-a2-trivial",
)

NORM_IS_NOT_SHARE = Erratum(
    paper=_PAPER,
    locator="Experiment 1 and Figure 1",
    kind=ErratumClass.GAP,
    text=(
        "'The top sqrt(p) weights contribute to 90.9 % of attention weights' reads an l2 norm as "
        "a share. A plain l2 norm of 0.909 forces one weight of at least 0.826; one relative to "
        "the row leaves a share of at most 0.826. Which of the two was plotted is not said."
    ),
    claim=f"{_PAPER}/largest-weight",
)

ZERO_IS_STATIONARY = Erratum(
    paper=_PAPER,
    locator="Theorems 1, 2 and 6, 'any stationary point'",
    kind=ErratumClass.VACUITY,
    text=(
        "The point (0, 0) is stationary for every teacher, with the error E[E(y|x)^2] of "
        "predicting nothing. (A3), assumed of all first layers, excludes it: at W = 0 the features "
        "are constant, and (A3) then bounds E[E(y|x)^2] itself by C_2^2 o(gamma^2). No nontrivial "
        "teacher satisfies (A3) on a set that contains 0. What remains holds point by point: where "
        "the population gradient in w2 vanishes, E u^2 is at most "
        "||w*||^2 lambda_max(Var(Phi*|Phi)) (claim lemma-1-1-stationary)."
    ),
    claim=f"{_PAPER}/zero-point",
)

EIGENVALUE_FROM_ABOVE = Erratum(
    paper=_PAPER,
    locator="Lemma 1.1 and (A.L.5)",
    kind=ErratumClass.REFUTED,
    text=(
        "The proof inverts the covariance of the features, of which the assumptions bound the "
        "largest eigenvalue. It needs the smallest: for one unit, W = s W* and w = 0 the features "
        "span the teacher's, the error is fixed, and the gradient is of order s. Right is "
        "E u^2 <= ||g||^2 / lambda_min + ||w*||^2 lambda_max(Var(Phi*|Phi)), so that the sample "
        "sizes have lambda gamma^2 in place of gamma^2."
    ),
    claim=f"{_PAPER}/lemma-1-1-printed",
)

COVER_CONDITION = Erratum(
    paper=_PAPER,
    locator="Lemma 1.2, covering numbers",
    kind=ErratumClass.TYPO,
    text=(
        "(3 R / epsilon)^d needs epsilon <= 3 R; Vershynin's Lemma 5.2 has (1 + 2 R / epsilon)^d. "
        "The proof takes epsilon small. B_p(0, s_0^2) is a ball of radius s_0, covered as one of "
        "radius s_0^2; the masks lie in one of radius sqrt(s_0)."
    ),
    claim=f"{_PAPER}/lemma-1-2-cover-printed",
)

EXCHANGED_RADII = Erratum(
    paper=_PAPER,
    locator="Lemma 1.2, balls of the parameters",
    kind=ErratumClass.TYPO,
    text=(
        "C_1 bounds the first layer, with p d entries, and C_2 the second, with d; the covering "
        "numbers (3 C_1 / epsilon)^d and (3 C_2 / epsilon)^(p d) have them exchanged."
    ),
    claim=f"{_PAPER}/lemma-1-2-cover-exchanged",
)

MIXED_POWERS = Erratum(
    paper=_PAPER,
    locator="(A3), (A.L.3), Lemmas 1.1 to 1.3, Theorem 1",
    kind=ErratumClass.TYPO,
    text=(
        "(A3) has k^4 / gamma^2, (A.L.3) k^2 / gamma^2; E u^2 >= gamma and >= gamma^2 are mixed; "
        "eta is C_1 C_2 C_x in Lemma 1 and C_1^2 C_2 in Theorem 1, whose proof carries C_x^2 and "
        "ends with log(s_0 eta / gamma). Counted through, the error is gamma^2, the gradient of "
        "order sqrt(lambda) gamma, and eta = C_1^2 C_2 C_x^2 (claim lemma-1)."
    ),
    claim=f"{_PAPER}/lemma-1",
)
