"""Flaws in sections 5 and 7 of the paper as text, and the claims that show them."""

from attlas.core.claim import Erratum, ErratumClass

_PAPER = "deora2023optimization"

SOFTMAX_DERIVATIVE = Erratum(
    paper=_PAPER,
    locator="Section 5.2",
    kind=ErratumClass.TYPO,
    text=(
        "phi'(0) = I - 11'/T is printed for I/T - 11'/T^2. Equation (7) has the factor 1/T: with "
        "the printed derivative its first term would be T times as large."
    ),
    claim=f"{_PAPER}/ntk-w-part-noise-free",
)

FIRST_PHASE = Erratum(
    paper=_PAPER,
    locator="Lemma 2, sections 5.1 and 5.2",
    kind=ErratumClass.REFUTED,
    text=(
        "The decoders after the first step are alpha_h 1 (zeta/4 u_star + p)', not zeta/2: the "
        "slope of the logistic loss at 0 is -1/2. Equation (7) goes with zeta/4."
    ),
    claim=f"{_PAPER}/lemma-2-printed",
)

MARGIN_ORDER = Erratum(
    paper=_PAPER,
    locator="Sections 5.3 and 7, 'gamma_attn >= gamma_star'",
    kind=ErratumClass.REFUTED,
    text=(
        "Without noise this holds exactly when S^3 <= 4 sqrt(M+1) / (sqrt(T) zeta^2). At T = 10, "
        "zeta = 1/2, M = 1, S = 4 it is 8.94 against 44.5. gamma_star is a margin of linearised "
        "features and grows like S^4; it even exceeds every margin that the model has at the same "
        "norm (claim global-margin-ntk)."
    ),
    claim=f"{_PAPER}/margin-order",
)

LINEAR_ORDER = Erratum(
    paper=_PAPER,
    locator="Sections 5.3 and 7, 'gamma_star >= gamma_lin'",
    kind=ErratumClass.REFUTED,
    text=(
        "With noise or an error p of the first step the first two terms of (7) can be negative "
        "together. Right without both."
    ),
    claim=f"{_PAPER}/margin-order-linear",
)

SECTION_7 = Erratum(
    paper=_PAPER,
    locator="Section 7, margin of attention",
    kind=ErratumClass.TYPO,
    text=(
        "Z_mu / S is printed where (11) has Z_mu / S^2. With epsilon the mass that attention "
        "leaves for irrelevant tokens this is wrong for S < 1 and weaker for S > 1."
    ),
    claim=f"{_PAPER}/section-7-margin",
)

EXPONENT = Erratum(
    paper=_PAPER,
    locator="Section 5.3, second condition on H",
    kind=ErratumClass.REFUTED,
    text=(
        "H^(p - 1/4) should be H^(p - 3/4). The conclusion stands, and needs no cases (claim "
        "section-5-3). gamma_opt,n, which is not defined, is gamma_attn."
    ),
    claim=f"{_PAPER}/section-5-3-exponent",
)

ORDER_OF_SCORES = Erratum(
    paper=_PAPER,
    locator="Equation (8)",
    kind=ErratumClass.GAP,
    text=(
        "The scores of irrelevant tokens are O(S^2) only for Z_mu = O(1), which is not said. They "
        "are of order S^3 for the noise of order S in the example below (7), and of order S^4 at "
        "the Z_mu = S^2/8 that Proposition 3 allows."
    ),
    claim=f"{_PAPER}/equation-8",
)

ORDER_OF_THE_GAP = Erratum(
    paper=_PAPER,
    locator="Section 5.3, 'a gap of O(S^2)'",
    kind=ErratumClass.TYPO,
    text=(
        "The gap of the scores under W_star is of order S^4, between 17/32 and 25/16 of it for "
        "Z_mu = Z_nu <= S^2/8. Of order S^2 is that of the normalised W_opt."
    ),
    claim=f"{_PAPER}/equation-8-gap",
)

KEY_AND_QUERY = Erratum(
    paper=_PAPER,
    locator="Section 5.2, factors of W_star",
    kind=ErratumClass.TYPO,
    text=(
        "W_star = W_K W_Q' with the printed factors, but section 2 has W = W_Q W_K': the names of "
        "key and query are exchanged. With the model's own order W_star would be transposed."
    ),
    claim=f"{_PAPER}/ntk-w-part",
)

NOTHING_TO_CONCENTRATE = Erratum(
    paper=_PAPER,
    locator="Proposition 2, P3, and Lemmas 14 and 15",
    kind=ErratumClass.GAP,
    text=(
        "True, but the condition on H, the factor 1/2 and the probability are not needed: for "
        "alpha_h = +-1 and theta_star with its sign every head has the same margin, so that P3 "
        "holds with gamma_star surely for every H. P2 needs no union bound either."
    ),
    claim=f"{_PAPER}/proposition-2-p3-every-head",
)

UNION_BOUND = Erratum(
    paper=_PAPER,
    locator="Proposition 2, P2",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        "Hoeffding's inequality has two sides, so that a union bound gives sqrt(2 log(2n/delta)). "
        "The statement is true by the slack of S + P over zeta S / (2 sqrt(2)) + P and, better, "
        "because all outputs share one sum of signs."
    ),
    claim=f"{_PAPER}/proposition-2-p2-sharp",
)
