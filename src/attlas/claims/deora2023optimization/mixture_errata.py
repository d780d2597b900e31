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
    ErratumClass.TYPO,
    r"$\alpha_h 1 (\frac{\zeta}{2} u_\star^\top + p^\top)$ is printed for $\frac{\zeta}{4}$: the "
    "slope $-1/2$ of the logistic loss at 0 is missing, and $p$ cannot stand for the difference, "
    r"since it vanishes with $n_1$. Equation (7), which is what follows, goes with $\zeta/4$.",
    claim=f"{_PAPER}/lemma-2-printed",
)

MARGIN_ORDER = erratum(
    "Sections 5.3 and 7, 'gamma_attn >= gamma_star'",
    ErratumClass.REFUTED,
    r"\"In particular, $\gamma_{attn} \ge \gamma_\star \ge \gamma_{lin}$\", of the limit "
    r"$\gamma_{attn} = S \sqrt T / \sqrt 2$. Read with the most room, without noise and with an "
    r"exact first step, it holds when $S^3 \le 4 \sqrt{M+1} / (\sqrt T \zeta^2)$ and fails beyond: "
    r"at $T = 10$, $\zeta = 1/2$, $M = 1$, $S = 4$ it is 8.94 against 44.5. The paper's own orders "
    r"say so: $\gamma_\star = \gamma_{lin} + \Omega(\zeta^2 (1-\zeta) S^4)$ below (7). That the "
    r"NTK margin is improved upon by attention, for which the sentence stands, is then open: "
    r"$\gamma_\star$ even exceeds every margin that the model has at the same norm (claim "
    "global-margin-ntk).",
    claim=f"{_PAPER}/margin-order",
)

LINEAR_ORDER = erratum(
    "Sections 5.3 and 7, 'gamma_star >= gamma_lin'",
    ErratumClass.GAP,
    r"\"$\gamma_\star \ge \gamma_{lin}$\" holds without noise and error of the first step, and "
    r"for $7 \bar Z S^2 + \ldots \le \zeta S^4$ and small $P$, which the paper has in mind. "
    "Beyond it the first two terms of (7) are negative together.",
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
    ErratumClass.TYPO,
    "$H^{p - 1/4}$ is printed for $H^{p - 3/4}$. The conclusion stands, and needs no cases (claim "
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
