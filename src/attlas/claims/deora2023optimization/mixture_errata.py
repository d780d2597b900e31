"""Flaws in sections 5 and 7 of the paper as text, and the claims that show them."""

from functools import partial

from attlas.core.claim import Erratum, ErratumClass

_PAPER = "deora2023optimization"
erratum = partial(Erratum, _PAPER)

SOFTMAX_DERIVATIVE = erratum(
    "Section 5.2",
    ErratumClass.TYPO,
    r"$\varphi'(0) = I - 11^\top/T$ is printed for $I/T - 11^\top/T^2$. Equation (7) has the "
    "factor $1/T$: with the printed derivative its first term would be $T$ times as large.",
    claim=f"{_PAPER}/ntk-w-part-noise-free",
)

FIRST_PHASE = erratum(
    "Lemma 2, sections 5.1 and 5.2",
    ErratumClass.REFUTED,
    r"The decoders after the first step are $\alpha_h 1 (\frac{\zeta}{4} u_\star + p)^\top$, not "
    r"$\frac{\zeta}{2}$: the slope of the logistic loss at 0 is $-1/2$. Equation (7) goes with "
    r"$\zeta/4$.",
    claim=f"{_PAPER}/lemma-2-printed",
)

MARGIN_ORDER = erratum(
    "Sections 5.3 and 7, 'gamma_attn >= gamma_star'",
    ErratumClass.REFUTED,
    r"Without noise this holds exactly when $S^3 \le 4 \sqrt{M+1} / (\sqrt T \zeta^2)$. At "
    r"$T = 10$, $\zeta = 1/2$, $M = 1$, $S = 4$ it is 8.94 against 44.5. $\gamma_\star$ is a "
    "margin of linearised features and grows like $S^4$; it even exceeds every margin that the "
    "model has at the same norm (claim global-margin-ntk).",
    claim=f"{_PAPER}/margin-order",
)

LINEAR_ORDER = erratum(
    "Sections 5.3 and 7, 'gamma_star >= gamma_lin'",
    ErratumClass.REFUTED,
    "With noise or an error $p$ of the first step the first two terms of (7) can be negative "
    "together. Right without both.",
    claim=f"{_PAPER}/margin-order-linear",
)

SECTION_7 = erratum(
    "Section 7, margin of attention",
    ErratumClass.TYPO,
    r"$Z_\mu / S$ is printed where (11) has $Z_\mu / S^2$. With $\epsilon$ the mass that attention "
    "leaves for irrelevant tokens this is wrong for $S < 1$ and weaker for $S > 1$.",
    claim=f"{_PAPER}/section-7-margin",
)

EXPONENT = erratum(
    "Section 5.3, second condition on H",
    ErratumClass.REFUTED,
    "$H^{p - 1/4}$ should be $H^{p - 3/4}$. The conclusion stands, and needs no cases (claim "
    r"section-5-3). $\gamma_{opt,n}$, which is not defined, is $\gamma_{attn}$.",
    claim=f"{_PAPER}/section-5-3-exponent",
)

ORDER_OF_SCORES = erratum(
    "Equation (8)",
    ErratumClass.GAP,
    r"The scores of irrelevant tokens are $O(S^2)$ only for $Z_\mu = O(1)$, which is not said. "
    "They are of order $S^3$ for the noise of order $S$ in the example below (7), and of order "
    r"$S^4$ at the $Z_\mu = S^2/8$ that Proposition 3 allows.",
    claim=f"{_PAPER}/equation-8",
)

ORDER_OF_THE_GAP = erratum(
    "Section 5.3, 'a gap of O(S^2)'",
    ErratumClass.TYPO,
    r"The gap of the scores under $W_\star$ is of order $S^4$, between 17/32 and 25/16 of it for "
    r"$Z_\mu = Z_\nu \le S^2/8$. Of order $S^2$ is that of the normalised $W_{opt}$.",
    claim=f"{_PAPER}/equation-8-gap",
)

KEY_AND_QUERY = erratum(
    "Section 5.2, factors of W_star",
    ErratumClass.TYPO,
    r"$W_\star = W_K W_Q^\top$ with the printed factors, but section 2 has $W = W_Q W_K^\top$: "
    r"the names of key and query are exchanged. With the model's own order $W_\star$ would be "
    "transposed.",
    claim=f"{_PAPER}/ntk-w-part",
)

NOTHING_TO_CONCENTRATE = erratum(
    "Proposition 2, P3, and Lemmas 14 and 15",
    ErratumClass.GAP,
    "True, but the condition on $H$, the factor 1/2 and the probability are not needed: for "
    r"$\alpha_h = \pm 1$ and $\theta_\star$ with its sign every head has the same margin, so that "
    r"P3 holds with $\gamma_\star$ surely for every $H$. P2 needs no union bound either.",
    claim=f"{_PAPER}/proposition-2-p3-every-head",
)

UNION_BOUND = erratum(
    "Proposition 2, P2",
    ErratumClass.INVALID_PROOF,
    "Hoeffding's inequality has two sides, so that a union bound gives "
    r"$\sqrt{2 \log(2n/\delta)}$. The statement is true by the slack of $S + P$ over "
    r"$\zeta S / (2 \sqrt 2) + P$ and, better, because all outputs share one sum of signs.",
    claim=f"{_PAPER}/proposition-2-p2-sharp",
)
