"""Flaws of the paper as text, with the claim that shows each, if any."""

from functools import partial

from attlas.claims.claim import Erratum, ErratumClass

_PAPER = "deora2023optimization"
erratum = partial(Erratum, _PAPER)

SOFTMAX_DERIVATIVE = erratum(
    "Section 2, notation",
    ErratumClass.TYPO,
    r"The derivative of the softmax is printed as $\mathrm{diag}(\varphi(v)) - v v^\top$; it is "
    r"$\mathrm{diag}(\varphi(v)) - \varphi(v) \varphi(v)^\top$. Lemma 1 is right with the latter "
    "and wrong with the former.",
    claim=f"{_PAPER}/softmax-derivative-printed",
)

POOLED_DECODER = erratum(
    "Footnote * of section 2",
    ErratumClass.GAP,
    '"Our results also apply to (ii) Pooling": true of every statement up to constants, when $T$ '
    "counts as one. With the printed powers of $T$ it is not: a decoder shared by all tokens has a "
    r"gradient of length up to $T R$ where Proposition 1 has $\sqrt T R$. $T^2$ in place of $T$ in "
    "all bounds is enough; for the last token 1 is.",
    claim=f"{_PAPER}/proposition-1-pooled",
)

ORDER_OF_RHO = erratum(
    "Theorem 1",
    ErratumClass.GAP,
    r"'$\rho \lesssim d^{3/2} T^{3/2} R^{13} \ldots$': the upper bound holds for $T$ of order "
    r"$d R^2$ at most. The term $T R^2 \alpha^2 / 4$ of section 6.1 is of order $d T^2 R^{12}$; "
    r"$d^{3/2} T^2 R^{13}$ covers both (claim order-of-rho).",
    claim=f"{_PAPER}/order-of-rho",
)

TAYLOR_SIGN = erratum(
    "Equations (14), (16) and (21)",
    ErratumClass.TYPO,
    r"(14) is Taylor's lower bound and needs $\ge$, as (16), which follows from it, has. (16) "
    r"writes $\theta_1$ and $\theta_2$ for $\theta$ and $\theta_k$. In (21) a parenthesis closes "
    r"early: the factor is $1 + (\eta \beta_3 / \sqrt H) \max \widehat L$.",
    claim=f"{_PAPER}/equation-14-printed",
)

HEADS_AND_LARGEST_HEAD = erratum(
    r"Theorem 1, equation (3), and $\rho$",
    ErratumClass.GAP,
    r"(3) has the order $\|\theta\|_{2,\infty} D^3$, $D = \|\theta - \theta_0\|$. The proof of "
    r"section 6.1 needs $\beta_3(3 D + \|\theta\|_{2,\infty}) D^2$, of order "
    r"$d T^{1/2} R^5 (3 D + \|\theta\|_{2,\infty}) D^2$: at most of the printed order only where "
    r"both norms are bounded below. For $H$ equal heads that start at zero "
    r"$\|\theta\|_{2,\infty}$ is $D / \sqrt H$, and (3) would require $H$ of order $D^4$ where the "
    r"proof requires $D^6$. In the same way $\rho$ needs $(3 D + \|\theta\|_{2,\infty})^2$, not "
    r"$\|\theta\|_{2,\infty}^2 D^2$.",
    claim=f"{_PAPER}/order-of-rho",
)

VACUITY = erratum(
    "Theorem 1, equation (3); Corollary 2",
    ErratumClass.VACUITY,
    "At practical sizes the conditions require more heads than any model has: for $d = T = 10$, "
    r"$R = 1$, $\|\theta\|_{2,\infty} = 1$, $D = 10$ equation (3) without its constant gives "
    r"$H \ge 10^9$, and $10^{14}$ with the constants of the proof. For $T = d = 2$, "
    r"$R = D = 1$ these give $1.7 \cdot 10^6$ heads, and steps so short that the bound on the loss "
    "is below its initial value only late.",
    claim=f"{_PAPER}/theorem-1-informative",
)

NORM_OF_THE_DIRECTION = erratum(
    r"Corollary 2, $g_0$",
    ErratumClass.GAP,
    r"P3 has a direction of norm $\sqrt 2$, so that the target of Proposition 7 is "
    r"$\sqrt 2 (2 B_\Phi + \log K) / \gamma$ away, while Corollary 2 takes $g_0$ without "
    r"$\sqrt 2$. Its squared terms would need a factor 2; the slack of Theorem 1's proof absorbs "
    "it.",
    claim=f"{_PAPER}/proposition-7",
)

DERIVATIVE_AT_ZERO = erratum(
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
    r"Sections 5.3 and 7, '$\gamma_{attn} \ge \gamma_\star$'",
    ErratumClass.REFUTED,
    r"'In particular, $\gamma_{attn} \ge \gamma_\star \ge \gamma_{lin}$', of the limit "
    r"$\gamma_{attn} = S \sqrt T / \sqrt 2$. Read with the most room, without noise and with an "
    r"exact first step, it holds when $S^3 \le 4 \sqrt{M+1} / (\sqrt T \zeta^2)$ and fails beyond: "
    r"at $T = 10$, $\zeta = 1/2$, $M = 1$, $S = 4$ it is 8.94 against 44.5. The paper's own orders "
    r"say so: $\gamma_\star = \gamma_{lin} + \Omega(\zeta^2 (1-\zeta) S^4)$ below (7). That the "
    r"NTK margin is improved upon by attention, for which the sentence stands, is then open: "
    r"$\gamma_\star$ even exceeds every margin that the model has at the same norm (claim "
    "global-margin-ntk).",
    claim=f"{_PAPER}/margin-order",
)

GAP_OF_MARGINS = erratum(
    "Sections 5.3 and 7, 'the gap increases with decreasing sparsity'",
    ErratumClass.GAP,
    r"Of the three gaps between $\gamma_{attn} \ge \gamma_\star \ge \gamma_{lin}$ the two of "
    r"$\gamma_{attn}$ do, at least like $1 - \zeta$ and as far as the order holds (claim "
    r"gap-increases). $\gamma_\star - \gamma_{lin}$ is "
    r"$T \zeta^2 (1 - \zeta) S^4 / (4 \sqrt{2(M+1)})$, which falls as $\zeta$ falls below 2/3.",
    claim=f"{_PAPER}/gap-increases-printed",
)

LINEAR_ORDER = erratum(
    r"Sections 5.3 and 7, '$\gamma_\star \ge \gamma_{lin}$'",
    ErratumClass.GAP,
    r"'$\gamma_\star \ge \gamma_{lin}$' holds without noise and error of the first step, and "
    r"for $7 \bar Z S^2 + \ldots \le \zeta S^4$ and small $P$, which the paper has in mind. "
    "Beyond it the first two terms of (7) are negative together.",
    claim=f"{_PAPER}/margin-order-linear",
)

SECTION_7 = erratum(
    "Section 7, margin of attention",
    ErratumClass.TYPO,
    r"Our text has $Z_\mu / S$ where (11) has $Z_\mu / S^2$. That is one exponent of a text that "
    "was converted and has lost characters elsewhere: if the paper prints $S^2$ there is no "
    r"erratum. With $\epsilon$ the mass that attention leaves for irrelevant tokens $Z_\mu / S$ is "
    "wrong for $S < 1$ and weaker for $S > 1$.",
    claim=f"{_PAPER}/section-7-margin",
)

EXPONENT = erratum(
    "Section 5.3, second condition on H",
    ErratumClass.TYPO,
    "Our text has $H^{p - 1/4}$ where $H^{p - 3/4}$ follows. That is one digit of a text that was "
    "converted and has lost characters elsewhere: if the paper prints 3 there is no erratum. The "
    "conclusion stands either way, and needs no cases (claim section-5-3). "
    r"$\gamma_{opt,n}$, which is not defined, is $\gamma_{attn}$.",
    claim=f"{_PAPER}/section-5-3-exponent",
)

ORDER_OF_SCORES = erratum(
    "Equation (8)",
    ErratumClass.GAP,
    r"The scores of irrelevant tokens are $O(S^2)$ only for $Z_\mu = O(1)$, "
    "which the paper does not state. They are of order $S^3$ for the noise of order $S$ in the "
    "example below (7), and of order "
    r"$S^4$ at the $Z_\mu = S^2/8$ that Proposition 3 allows.",
    claim=f"{_PAPER}/equation-8",
)

ORDER_OF_THE_GAP = erratum(
    r"Section 5.3, 'a gap of $O(S^2)$'",
    ErratumClass.TYPO,
    r"The gap of the scores under $W_\star$ is of order $S^4$, between 17/32 and 25/16 of it for "
    r"$Z_\mu = Z_\nu \le S^2/8$. Of order $S^2$ is that of the normalised $W_{opt}$.",
    claim=f"{_PAPER}/equation-8-gap",
)

KEY_AND_QUERY = erratum(
    r"Section 5.2, factors of $W_\star$",
    ErratumClass.TYPO,
    r"$W_\star = W_K W_Q^\top$ with the printed factors, but section 2 has $W = W_Q W_K^\top$: "
    r"the names of key and query are exchanged. With the model's own order $W_\star$ would be "
    "transposed.",
    claim=f"{_PAPER}/ntk-w-part",
)

MARGIN_FROM_BELOW = erratum(
    r"Below Corollary 2, '$\gamma = O_K(1)$'",
    ErratumClass.TYPO,
    r"A margin must be bounded from below, $\gamma = \Omega_K(1)$, for the loss to be "
    r"$\widetilde O_K(1/K)$: the bounds have $\gamma^2$ in the denominator. Margins that vanish "
    r"with $K$ are $O_K(1)$ too, and with $\gamma = 1/\sqrt K$ the bound does not fall.",
    claim=f"{_PAPER}/section-7-losses",
)

LOGARITHMS_OF_THE_TEST_LOSS = erratum(
    "Below Corollary 2, 'the expected test loss is $O(1/n)$'",
    ErratumClass.TYPO,
    r"Right with the tilde that section 2 has for hidden logarithms, $\widetilde O(1/n)$, as the "
    r"same paragraph writes of the training loss: Corollary 2 gives the order "
    r"$\log^2(n) / (\eta \gamma^2 n)$.",
    claim=f"{_PAPER}/section-7-losses",
)

LESS_NEGATIVE = erratum(
    "End of section 3, 'the minimum eigenvalue becomes less positive'",
    ErratumClass.TYPO,
    r"'Less negative' is meant: the lower bound $-\beta_3 \widehat L / \sqrt H$ of Corollary 1 "
    "rises to 0 as $H$ grows, which is the approach to convexity that the sentence goes on with.",
    claim=f"{_PAPER}/corollary-1-3",
)

POOLED_SHAPE = erratum(
    r"Footnote * of section 2, '$U = u 1_T^\top$'",
    ErratumClass.TYPO,
    r"With $u \in R^d$ this is $d \times T$, and $U$ is $T \times d$: $U = 1_T u^\top$ is meant. "
    "The last-token decoder beside it is transposed as it should be.",
    claim=f"{_PAPER}/footnote-pooling",
)

HIDDEN_CONSTANTS = erratum(
    r"Sections 1 and 6.1, '$\ge$' and '$\le$' without constants",
    ErratumClass.TYPO,
    r"$H \ge \|\theta - \theta_0\|^6$ (section 1), $\beta_3(\theta) \vee \beta_3(\theta_k) \le "
    r"\|\theta - \theta_0\| + \|\theta\|_{2,\infty}$ and $\sqrt H \ge \|\theta\|_{2,\infty} "
    r"\|\theta - \theta_0\|^3$ (section 6.1) hold or suffice, for norms bounded from below, up to "
    r"the factors that (3) has or hides, $d$, $T$ and $R$ among them: $\gtrsim$ and $\lesssim$ are "
    r"meant. At $T = d = R = 1$ and norms 1 $\beta_3$ is 8 and its printed bound 2.",
    claim=f"{_PAPER}/section-6-1-beta-3",
)
