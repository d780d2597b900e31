"""Flaws of the paper's sections 2 to 4 and 6 as text, with the claim that shows each, if any."""

from attlas.core.claim import Erratum, ErratumClass

_PAPER = "deora2023optimization"

SOFTMAX_DERIVATIVE = Erratum(
    paper=_PAPER,
    locator="Section 2, notation",
    kind=ErratumClass.TYPO,
    text=(
        "The derivative of the softmax is printed as diag(phi(v)) - v v'; it is diag(phi(v)) - "
        "phi(v) phi(v)'. Lemma 1 is right with the latter and wrong with the former."
    ),
    claim=f"{_PAPER}/softmax-derivative-printed",
)

POOLED_DECODER = Erratum(
    paper=_PAPER,
    locator="Footnote * of section 2",
    kind=ErratumClass.REFUTED,
    text=(
        "'Our results also apply to pooling' fails with the printed constants: a decoder shared "
        "by all tokens has a gradient of length up to T R, not sqrt(T) R. With T^2 in place of T "
        "in all bounds the results hold; for the last token T may be 1."
    ),
    claim=f"{_PAPER}/proposition-1-pooled",
)

MATRIX_NORMS = Erratum(
    paper=_PAPER,
    locator="Section 2, notation",
    kind=ErratumClass.TYPO,
    text=(
        "The norms ||A||_{1,2} and ||A||_{1,inf} are printed as maxima over j of norms of the "
        "number A_ij; the columns are meant: max_j ||A_{:,j}||, max_j ||A_{:,j}||_inf."
    ),
)

ORDER_OF_RHO = Erratum(
    paper=_PAPER,
    locator="Theorem 1",
    kind=ErratumClass.GAP,
    text=(
        "The order d^(3/2) T^(3/2) R^13 of rho covers only one of its two terms: T R^2 alpha^2 / 4 "
        "is of order d T^2 R^12, which is the larger one for T above d R^2, and the other is "
        "divided by sqrt(H). d^(3/2) T^2 R^13 covers both."
    ),
)

TAYLOR_SIGN = Erratum(
    paper=_PAPER,
    locator="Equations (14), (16) and (21)",
    kind=ErratumClass.TYPO,
    text=(
        "(14) is Taylor's lower bound and needs >=, as (16), which follows from it, has. (16) "
        "writes theta_1 and theta_2 for theta and theta_k. In (21) a parenthesis closes early: "
        "the factor is 1 + (eta beta_3 / sqrt(H)) max L."
    ),
    claim=f"{_PAPER}/equation-14-printed",
)


HEADS_AND_LARGEST_HEAD = Erratum(
    paper=_PAPER,
    locator="Theorem 1, equation (3), and rho",
    kind=ErratumClass.GAP,
    text=(
        "(3) has the order ||theta||_{2,inf} D^3, D = ||theta - theta_0||. The proof of section "
        "6.1 needs beta_3(3 D + ||theta||_{2,inf}) D^2, of order d T^(1/2) R^5 (3 D + "
        "||theta||_{2,inf}) D^2: at most of the printed order only where both norms are bounded "
        "below. For H equal heads that start at zero ||theta||_{2,inf} is D / sqrt(H), and (3) "
        "would ask for H of order D^4 where the proof asks for D^6. In the same way rho needs "
        "(3 D + ||theta||_{2,inf})^2, not ||theta||_{2,inf}^2 D^2."
    ),
    claim=f"{_PAPER}/theorem-1-heads",
)

VACUITY = Erratum(
    paper=_PAPER,
    locator="Theorem 1, equation (3); Corollary 2",
    kind=ErratumClass.VACUITY,
    text=(
        "At practical sizes the conditions ask for more heads than any model has: for d = T = 10, "
        "R = 1, ||theta||_{2,inf} = 1, D = 10 equation (3) without its constant says H >= 1e9, "
        "and 1e14 with the constants of the proof. For T = d = 2, R = D = 1 these give "
        "1.7e6 heads and, in the cases met, a step size of 7e-4, so that the bound on the loss is "
        "below its initial value only after some ten thousand steps."
    ),
    claim=f"{_PAPER}/theorem-1-informative",
)

NORM_OF_THE_DIRECTION = Erratum(
    paper=_PAPER,
    locator="Corollary 2, g_0",
    kind=ErratumClass.GAP,
    text=(
        "P3 has a direction of norm sqrt(2), so that the target of Proposition 7 is "
        "sqrt(2) (2 B_Phi + log K) / gamma away, while Corollary 2 takes g_0 without sqrt(2). Its "
        "squared terms would need a factor 2; the slack of Theorem 1's proof absorbs it."
    ),
    claim=f"{_PAPER}/proposition-7",
)
