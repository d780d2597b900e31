"""Flaws of the theorems on sample sizes as text, with the class of each and the claim for it."""

from functools import partial

from attlas.core.claim import Erratum, ErratumClass

_flaw = partial(Erratum, "liu2021analyzing")

CONCENTRATION = _flaw(
    "Theorem 1 and Corollary 1, (sqrt(s0) + tau sqrt(p))^4 and p^2",
    ErratumClass.INVALID_PROOF,
    r"The dependence on $s_0$ and $p$ is the slack of one inequality: $\|x \odot f\|_2$ is "
    r"bounded by $\|x\|_2 \|f\|_2$, where $\max_j |x_j| \|f\|_2$ holds. With $\|f\|_2 = 1$, as "
    "the paper asks, the features are bounded by $C_1 C_x$ for all attention weights alike, and "
    r"both statements need $n$ of the order $(\eta^2/\gamma^2) \log(\eta/\gamma) (pd + d)$. The "
    "advantage $p^2/s_0^2$ (140 at $p = 130$, $s_0 = 11$) disappears, in the bound and in fits. "
    "Only the norm factor does: a known fixed support still reduces $pd$ to $s_0 d$. In Lemma 1 "
    "$s_0$ stays: masks in $[0, 1]^p$ are not normalised.",
    claim="liu2021analyzing/theorem-1-features-attained",
)

REST = _flaw(
    "Proof of Theorem 1, ||f||_2 = ||f_lead||_2 + ||f_sub||_2",
    ErratumClass.REFUTED,
    r"Squares of norms add up: $\|f_{\mathrm{sub}}\|_2$ is at most $\sqrt{2 \tau - \tau^2}$, and "
    r"equal to it for the smallest $\tau$. At $\tau = .1$ it is .436.",
    claim="liu2021analyzing/erratum-2",
)

NORMALISATION = _flaw(
    "Section 3.1, ||f(x)||_2 = 1",
    ErratumClass.REFUTED,
    "A softmax sums to one; its Euclidean norm lies between $p^{-1/2}$, for equal weights, and "
    "one. In a bound through norms uniform attention is then the best, not the worst.",
    claim="liu2021analyzing/erratum-3",
)

REPEATED_UNITS = _flaw(
    "Theorems 1 and 2, 'any stationary point'",
    ErratumClass.VACUITY,
    "Not $(0, 0)$ alone has to be excluded: a stationary point of any narrower network, with a "
    "unit repeated, is one of the wider network, at every $n$, with features that are not "
    "constant and the error of an under-width student; in fits it is a plateau from $n = 512$ to "
    "131,072. (A3) at the point excludes it; (A3) at all points excludes every teacher (claim "
    "assumption-a3-at-zero).",
    claim="liu2021analyzing/theorem-1-embedded",
)

CENTRING = _flaw(
    "Appendix A.2, (A1.3)",
    ErratumClass.VACUITY,
    "$E h = 0$ for all parameters is impossible with ReLU units that are not negative: it fails "
    "for every $w^{(2)} > 0$ unless all units are dead. 'Can be achieved by making the data "
    "centred' is true of $y$ only. A free bias of the output fixes it, and is used here.",
)

C_X = _flaw(
    "Theorem 1, eta = C_1^2 C_2",
    ErratumClass.GAP,
    r"The proof's $\xi^2$ has $C_x^4$, so that $\eta = C_1^2 C_2 C_x^2$; as printed the sample "
    "size changes when inputs are doubled and $w^{(1)}$ is halved, unless the hidden constant is "
    "meant to depend on $C_x$, though not on $C_1$ and $C_2$. Lemma 1 and Theorem 6 define "
    r"$\eta$ as $C_1 C_2 C_x$ with $C_1 C_x$ outside. The proof ends with "
    r"$\log(s_0 \eta / \gamma)$.",
    claim="liu2021analyzing/theorem-1-eta",
)

LOGARITHM = _flaw(
    "Corollary 1, log(p eta / gamma)",
    ErratumClass.TYPO,
    r"Theorem 1 at $s_0 = 0$, $\tau = 1$ has $\sqrt{p}$ there, at most a factor 2 of the "
    r"logarithm where $\eta$ exceeds $\gamma$. (A2) requires $s_0 > 0$ and $\tau < 1$.",
    claim="liu2021analyzing/corollary-1-logarithm",
)

DOMINANCE = _flaw(
    "After Theorem 2, 'proportional to (sqrt(s0) + tau sqrt(p))^4'",
    ErratumClass.REFUTED,
    r"The term $\sqrt{p}\, t$ dominates: at $p = 130$, $t = 100$ the printed size falls by 1.22 "
    "from $s_0 = p$ to $s_0 = 11$, not by 140. That term is itself a slack: softmax is "
    r"$1/\sqrt{2}$-Lipschitz from $\ell_\infty$ to $\ell_2$ (claim theorem-2-softmax), without "
    r"$\sqrt{p}$.",
    claim="liu2021analyzing/theorem-2-dominance",
)

ATTENDED_FEATURES = _flaw(
    "Proof of Theorem 2, the norm of the features",
    ErratumClass.REFUTED,
    r"$\sqrt{2} (\sqrt{s_0} + \tau \sqrt{p}) C_1 C_8$ bounds, with $C_x$, one attended word of "
    "one value; $p$ of them are flattened, with $d_v$ values each. With one-hot attention of "
    r"$p = 4$ words to themselves the features have norm 2, the print $\sqrt{2}$. Right is "
    r"$\sqrt{p d_v}\, C_1 C_8 C_x$, whatever the attention.",
    claim="liu2021analyzing/theorem-2-features-printed",
)

PARAMETERS = _flaw(
    "Theorem 2 and its proof, the number of parameters",
    ErratumClass.REFUTED,
    "$w_Q$ and $w_K$ have $2 t d_q$ entries, not $2 p d_q$, and $w_V$ has $d_v t$, which is "
    "missing; the theorem has $p d_v d$ alone. The arguments of the logarithm differ as well: "
    r"$k \eta_a \eta_b$ in the theorem, $k C_1 C_2 C_5 C_6 C_8 C_x$ in the proof, a sum and a "
    "product of $C_5$, $C_6$.",
    claim="liu2021analyzing/theorem-2-parameters-printed",
)

DEEP = _flaw(
    "Theorem 3",
    ErratumClass.REFUTED,
    r"The factor $c_K / \gamma^2$ is missing that its own tail bound $e^{-n c^2 \gamma^2 / c_K}$ "
    "needs. As printed errors would fall exponentially in $n / P$, while a regression on $P$ "
    r"parameters has $\sigma^2 P / n$.",
    claim="liu2021analyzing/theorem-3",
)

DEEP_ASSUMPTION = _flaw(
    "Appendix A.4, (A6)",
    ErratumClass.VACUITY,
    r"$\mathrm{cov}(\nabla h, u) \ge c \gamma^2$ fails at the true parameters, where $u = 0$, and "
    "(A3.2) asks that they exist: read for all parameters, no network satisfies both. Asked only "
    r"where $E u^2 \ge \gamma^2$, it is the theorem but for the sampling; and it gives a gradient "
    r"of $c \gamma^2$, where the proof has $c \gamma$, so that $1/\gamma^4$ samples would follow.",
    claim="liu2021analyzing/assumption-a6",
)

DEEP_COUNT = _flaw(
    "Appendix A.4, d_self + D (d_k + d_v) q_k",
    ErratumClass.GAP,
    "The last layer flattens $p$ words: its $w_{D1}$ has $p d_v q_D$ entries, where the print has "
    r"$1 \times d_v$ and the count $d_v q_k$. The proof has $D (d_k + d_v q_k)$, a misplaced "
    r"bracket. Sizes of the layers do not fit either: $g_k$ yields $d_k \times d_{k-1}$, the next "
    r"reads $t \times d_k$.",
    claim="liu2021analyzing/theorem-3-parameters",
)

RECURRENT_WEIGHTS = _flaw(
    "Appendix B, alpha_kj = e_kj / sum_j e_kj",
    ErratumClass.TYPO,
    "The exponential function is missing, in numerator and denominator.",
    claim="liu2021analyzing/appendix-b-weights",
)

RECURRENT_NORM = _flaw(
    "Theorem 6, C_1^2 C_x^2 eta^2",
    ErratumClass.GAP,
    "With entries bounded by $C_x$, as in (A1.1), a word of $t$ entries has norm "
    r"$\sqrt{t}\, C_x$, and a factor $t^2$ is missing. The formula of the proof is not in our "
    "text.",
    claim="liu2021analyzing/theorem-6-features",
)

REFERENCES = _flaw(
    "Appendices A and B, references",
    ErratumClass.TYPO,
    "'Centered as (A6)' means (A1.3); 'parallel to (A3) to (A6)' (A1) to (A3); '(A9)', for which "
    r"the proof of Theorem 2 has a lower bound of $\|QK\|$, (A2.1), and no such bound is needed; "
    "'(A15)' (A8); (A8)'s '(A2)' (A3); 'as Theorem 7 says' Theorem 6; $a(x)$ maps to $p$ weights, "
    "not to a '$t$-dimensional vector'.",
)
