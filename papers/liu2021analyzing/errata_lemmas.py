"""Flaws of the assumptions, of Lemma 1 and of its proof as text, with the claims that show them."""

from functools import partial

from attlas.claims.claim import Erratum, ErratumClass

_flaw = partial(Erratum, "liu2021analyzing")

WRONG_INVERSE = _flaw(
    r"Section 3.1, definition of $\mathrm{var}(z_1 | z_2)$",
    ErratumClass.TYPO,
    "The formula inverts the covariance of $z_1$ where that of $z_2$ belongs: for $z_1 = 2 z_2$ "
    "it leaves 3 of the variance 4 instead of 0. The proof of Lemma 1.1 has it right.",
    claim="liu2021analyzing/conditional-variance-printed",
)

SAME_SAMPLE = _flaw(
    "Appendix A.1, numerical check of (A3)",
    ErratumClass.GAP,
    r"'The empirical conditional covariance $3.13 \cdot 10^{-8}$' at $n = 500$ is, as far as the "
    "text goes, computed on the sample that the regression was fitted on. From width $n - 1$ on "
    "it is zero for any features, those of independent inputs included. On fresh data the check "
    "is informative: there it bounds the left side of (A3) from above.",
    claim="liu2021analyzing/conditional-variance-wide",
)

CONCENTRATION_NAMED = _flaw(
    "(A2) and (A4)",
    ErratumClass.VACUITY,
    r"'There exist positive integer $0 < s_0 < p$ and $0 < \tau < 1$' with "
    r"$\|f_{(1..s_0)}\|_2 \ge 1 - \tau$: read as the names of the bound's $s_0$ and $\tau$ it is "
    "harmless. As an assumption it restricts nothing, and holds for any weights of length one, "
    r"uniform ones included, with $s_0 = 1$ and $\tau = 1 - 1/\sqrt{p}$. And 'naturally holds "
    "since softmax', for small ones, is a property of the logits: it does if the $s_0$-th leads "
    "the next.",
    claim="liu2021analyzing/assumption-a2-trivial",
)

NORM_IS_NOT_SHARE = _flaw(
    "Experiment 1 and Figure 1",
    ErratumClass.GAP,
    r"'The top $\sqrt{p}$ weights contribute to 90.9 % of attention weights': read as an $\ell_2$ "
    r"norm, that of (A2), the number may be right; it is no share of attention. A plain $\ell_2$ "
    "norm of 0.909 forces one weight of at least 0.826; one relative to the row leaves a share of "
    "at most 0.826. Which of the two was plotted is not stated.",
    claim="liu2021analyzing/largest-weight",
)

ZERO_IS_STATIONARY = _flaw(
    "Theorems 1, 2 and 6, 'any stationary point'",
    ErratumClass.VACUITY,
    "The point $(0, 0)$ is stationary for every teacher, with the error $E[E(y|x)^2]$ of "
    "predicting nothing. (A3), assumed of all first layers, excludes it: at $W = 0$ the features "
    r"are constant, and (A3) then bounds $E[E(y|x)^2]$ itself by $C_2^2\, o(\gamma^2)$. No "
    "nontrivial teacher satisfies (A3) on a set that contains 0. (A1.2) bounds the norms of "
    "parameters 'in $S$', a set that is not specified: if it is meant to leave out 0, and the "
    "networks of theorem-1-embedded, the theorem is about the stationary points in $S$ and not "
    "about any. What remains holds point by point: where the population gradient in $w^{(2)}$ "
    r"vanishes, $E u^2$ is at most $\|w^*\|^2 \lambda_{\max}(\mathrm{Var}(\Phi^*|\Phi))$ (claim "
    "lemma-1-1-stationary).",
    claim="liu2021analyzing/zero-point",
)

CENTRED_DATA = _flaw(
    "A.2, (A1.3)",
    ErratumClass.GAP,
    r"'(A1.3) can always be achieved by making the data centered': centred inputs and outputs do "
    r"not make $E(w^{(2)\top} \phi) = 0$ for all weights in $S$, since ReLU features are not "
    "negative; and a network without biases, which is 0 at $x = 0$, cannot have a teacher that was "
    "shifted to mean zero (claim b1-centred-outputs). An output bias, or features less their mean, "
    "achieves it.",
    claim="liu2021analyzing/b1-centred",
)

EIGENVALUE_FROM_ABOVE = _flaw(
    "Lemma 1.1 and (A.L.5)",
    ErratumClass.REFUTED,
    r"'By (A.L.5)' the proof inverts the covariance of the features, of which (A.L.5) bounds the "
    r"largest eigenvalue, $C_\lambda$. If $S$ is meant to keep the smallest away from 0, the lemma "
    r"stands, as $E u^2 \le \|g\|^2 / \lambda_{\min} + \|w^*\|^2 "
    r"\lambda_{\max}(\mathrm{Var}(\Phi^*|\Phi))$; that assumption is missing, and the sample sizes "
    r"have $\lambda \gamma^2$ in place of $\gamma^2$. Without it: for one unit, $W = s W^*$ and "
    "$w = 0$ the features span the teacher's, all of (A.L.1) to (A.L.6) hold, the error is fixed, "
    r"and the gradient is of order $s$, so that no hidden constant makes it $O(\gamma)$.",
    claim="liu2021analyzing/lemma-1-1-printed",
)

COVER_CONDITION = _flaw(
    "Lemma 1.2, covering numbers",
    ErratumClass.TYPO,
    r"$(3 R / \epsilon)^d$ needs $\epsilon \le 3 R$; Vershynin's Lemma 5.2 has "
    r"$(1 + 2 R / \epsilon)^d$. The proof takes $\epsilon$ small. $B_p(0, s_0^2)$ is a ball of "
    r"radius $s_0$, covered as one of radius $s_0^2$; the masks lie in one of radius $\sqrt{s_0}$.",
    claim="liu2021analyzing/lemma-1-2-cover-printed",
)

EXCHANGED_RADII = _flaw(
    "Lemma 1.2, balls of the parameters",
    ErratumClass.TYPO,
    "$C_1$ bounds the first layer, with $p d$ entries, and $C_2$ the second, with $d$; the "
    r"covering numbers $(3 C_1 / \epsilon)^d$ and $(3 C_2 / \epsilon)^{p d}$ have them exchanged.",
    claim="liu2021analyzing/lemma-1-2-cover-exchanged",
)

MIXED_POWERS = _flaw(
    "(A3), (A.L.3), Lemmas 1.1 to 1.3, Theorem 1",
    ErratumClass.TYPO,
    r"(A3) has $k^4 / \gamma^2$, (A.L.3) $k^2 / \gamma^2$; $E u^2 \ge \gamma$ and $\ge \gamma^2$ "
    r"are mixed; $\eta$ is $C_1 C_2 C_x$ in Lemma 1 and $C_1^2 C_2$ in Theorem 1, whose proof "
    r"carries $C_x^2$ and ends with $\log(s_0 \eta / \gamma)$. Counted through, the error is "
    r"$\gamma^2$, the gradient of order $\sqrt{\lambda}\, \gamma$, and $\eta = C_1^2 C_2 C_x^2$ "
    "(claim lemma-1).",
    claim="liu2021analyzing/lemma-1",
)
