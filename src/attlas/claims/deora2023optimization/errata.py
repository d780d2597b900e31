"""Flaws of the paper's sections 2 to 4 and 6 as text, with the claim that shows each, if any."""

from attlas.core.claim import Erratum, Flaw

_PAPER = "deora2023optimization"

SOFTMAX_DERIVATIVE = Erratum(
    paper=_PAPER,
    locator="Section 2, notation",
    flaw=Flaw.TYPO,
    text=(
        "The derivative of the softmax is printed as diag(phi(v)) - v v'; it is diag(phi(v)) - "
        "phi(v) phi(v)'. Lemma 1 is right with the latter and wrong with the former."
    ),
    claim=f"{_PAPER}/softmax-derivative-printed",
)

POOLED_DECODER = Erratum(
    paper=_PAPER,
    locator="Footnote * of section 2",
    flaw=Flaw.REFUTED,
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
    flaw=Flaw.TYPO,
    text=(
        "The norms ||A||_{1,2} and ||A||_{1,inf} are printed as maxima over j of norms of the "
        "number A_ij; the columns are meant: max_j ||A_{:,j}||, max_j ||A_{:,j}||_inf."
    ),
)

ORDER_OF_RHO = Erratum(
    paper=_PAPER,
    locator="Theorem 1",
    flaw=Flaw.GAP,
    text=(
        "The order d^(3/2) T^(3/2) R^13 of rho covers only one of its two terms: T R^2 alpha^2 / 4 "
        "is of order d T^2 R^12, which is the larger one for T above d R^2, and the other is "
        "divided by sqrt(H). d^(3/2) T^2 R^13 covers both."
    ),
)

TAYLOR_SIGN = Erratum(
    paper=_PAPER,
    locator="Equations (14), (16) and (21)",
    flaw=Flaw.TYPO,
    text=(
        "(14) is Taylor's lower bound and needs >=, as (16), which follows from it, has. (16) "
        "writes theta_1 and theta_2 for theta and theta_k. In (21) a parenthesis closes early: "
        "the factor is 1 + (eta beta_3 / sqrt(H)) max L."
    ),
    claim=f"{_PAPER}/equation-14-printed",
)
