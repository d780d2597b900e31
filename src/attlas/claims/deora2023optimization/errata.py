"""Flaws of the paper's sections 2 to 4 and 6 as text, with the claim that shows each, if any."""

from functools import partial

from attlas.core.claim import Erratum, ErratumClass

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

MATRIX_NORMS = erratum(
    "Section 2, notation",
    ErratumClass.TYPO,
    r"The norms $\|A\|_{1,2}$ and $\|A\|_{1,\infty}$ are printed as maxima over $j$ of norms of "
    r"the number $A_{ij}$; the columns are meant: $\max_j \|A_{:,j}\|$, "
    r"$\max_j \|A_{:,j}\|_\infty$. This may be damage of the text that we have: the colon of "
    r"$A_{:,j}$, which the paper defines a line before, is easily lost.",
)

ORDER_OF_RHO = erratum(
    "Theorem 1",
    ErratumClass.GAP,
    r"\"$\rho \lesssim d^{3/2} T^{3/2} R^{13} \ldots$\": the upper bound holds for $T$ of order "
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
    "Theorem 1, equation (3), and rho",
    ErratumClass.GAP,
    r"(3) has the order $\|\theta\|_{2,\infty} D^3$, $D = \|\theta - \theta_0\|$. The proof of "
    r"section 6.1 needs $\beta_3(3 D + \|\theta\|_{2,\infty}) D^2$, of order "
    r"$d T^{1/2} R^5 (3 D + \|\theta\|_{2,\infty}) D^2$: at most of the printed order only where "
    r"both norms are bounded below. For $H$ equal heads that start at zero "
    r"$\|\theta\|_{2,\infty}$ is $D / \sqrt H$, and (3) would require $H$ of order $D^4$ where the "
    r"proof requires $D^6$. In the same way $\rho$ needs $(3 D + \|\theta\|_{2,\infty})^2$, not "
    r"$\|\theta\|_{2,\infty}^2 D^2$.",
    claim=f"{_PAPER}/theorem-1-heads",
)

VACUITY = erratum(
    "Theorem 1, equation (3); Corollary 2",
    ErratumClass.VACUITY,
    "At practical sizes the conditions require more heads than any model has: for $d = T = 10$, "
    r"$R = 1$, $\|\theta\|_{2,\infty} = 1$, $D = 10$ equation (3) without its constant gives "
    r"$H \ge$ 1e9, and 1e14 with the constants of the proof. For $T = d = 2$, $R = D = 1$ these "
    "give 1.7e6 heads and, in the cases met, a step size of 7e-4, so that the bound on the loss "
    "is below its initial value only after some ten thousand steps.",
    claim=f"{_PAPER}/theorem-1-informative",
)

NORM_OF_THE_DIRECTION = erratum(
    "Corollary 2, g_0",
    ErratumClass.GAP,
    r"P3 has a direction of norm $\sqrt 2$, so that the target of Proposition 7 is "
    r"$\sqrt 2 (2 B_\Phi + \log K) / \gamma$ away, while Corollary 2 takes $g_0$ without "
    r"$\sqrt 2$. Its squared terms would need a factor 2; the slack of Theorem 1's proof absorbs "
    "it.",
    claim=f"{_PAPER}/proposition-7",
)
