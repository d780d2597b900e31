"""Flaws of the theorems on sample sizes as text, with the class of each and the claim for it."""

from functools import partial

from attlas.claims.claim import Erratum, ErratumClass

_flaw = partial(Erratum, "liu2021analyzing")

CONCENTRATION = _flaw(
    r"Theorem 1 and Corollary 1, $(\sqrt{s_0} + \tau \sqrt p)^4$ and $p^2$",
    ErratumClass.INVALID_PROOF,
    r"The dependence on $s_0$ and $p$ is the slack of one inequality: $\|x \odot f\|_2$ is "
    r"bounded by $\|x\|_2 \|f\|_2$, where $\max_j |x_j| \|f\|_2$ holds. With $\|f\|_2 = 1$, as "
    "the paper asks, the features are bounded by $C_1 C_x$ for all attention weights alike, and "
    r"both statements need $n$ of the order $(\eta^2/\gamma^2) \log(\eta/\gamma) (pd + d)$. The "
    "advantage $p^2/s_0^2$ (140 at $p = 130$, $s_0 = 11$) disappears, in the bound and in fits. "
    "Only the norm factor does: a known fixed support still reduces $pd$ to $s_0 d$. In Lemma 1 "
    "$s_0$ stays: masks in $[0, 1]^p$ are not normalised. And against section 2's baseline, "
    "$f = 1$, $p^2$ returns at equal $C_1$ (see the erratum on Corollary 1's baseline).",
    claim="liu2021analyzing/theorem-1-features-attained",
)

BASELINE = _flaw(
    "Corollary 1, 'then the model is the baseline one'",
    ErratumClass.GAP,
    r"$f = 1/\sqrt{p}$ is not section 2's baseline, where $f = 1$ has norm $\sqrt{p}$. With "
    r"$f = 1$ the features reach $\sqrt{p}\, C_1 C_x$, so that $\eta^2$ has the printed $p^2$ at "
    r"equal $C_1$. But the two are one model: $f = 1$ with $w^{(1)}$ is $f = 1/\sqrt{p}$ with "
    r"$\sqrt{p}\, w^{(1)}$, and which $C_1$ is to be compared the paper does not say. Compared "
    r"at equal outputs, the factor is in $C_1^4$, and not in the concentration.",
    claim="liu2021analyzing/corollary-1-baseline",
)

REST = _flaw(
    r"Proof of Theorem 1, $\|f\|_2 = \|f_{lead}\|_2 + \|f_{sub}\|_2$",
    ErratumClass.INVALID_PROOF,
    "Squares of norms add up; read with the squares, which print or extraction may have lost, "
    r"$\|f_{\mathrm{sub}}\|_2$ is at most $\sqrt{2 \tau - \tau^2}$, and equal to it for the "
    r"smallest $\tau$, not at most $\tau$: 0.436 at $\tau = .1$. The bound of the features that "
    "follows is true nevertheless (theorem-1-features-printed).",
    claim="liu2021analyzing/erratum-2",
)

NORMALISATION = _flaw(
    r"Section 3.1, '$\|f(x)\|_2 = 1$, as the sum one attention weights'",
    ErratumClass.GAP,
    "Either $f$ is a softmax divided by its Euclidean norm, which is no attention that anyone "
    "uses, or the weights sum to one: then their Euclidean norm lies between $p^{-1/2}$, for "
    "equal weights, and one, and in a bound through norms uniform attention is the best, not the "
    "worst. The paper's own comparison needs the first reading.",
    claim="liu2021analyzing/erratum-3-corrected",
)

REPEATED_UNITS = _flaw(
    "Theorems 1 and 2, 'any stationary point'",
    ErratumClass.VACUITY,
    "Not $(0, 0)$ alone has to be excluded: a stationary point of any narrower network, with a "
    "unit repeated, is one of the wider network, at every $n$, with features that are not "
    "constant and the error of an under-width student; in fits it is a plateau from $n = 512$ to "
    "262,144. (A3) at the point excludes it; (A3) at all points of a set $S$ that contains it "
    "excludes every teacher that needs its width (claim assumption-a3-at-zero).",
    claim="liu2021analyzing/theorem-1-embedded",
)

CENTRING = _flaw(
    "Appendix A.2, (A1.3)",
    ErratumClass.GAP,
    "Read as a free bias of the output, which the model lacks, it holds; that is what is used "
    "here. Of the model as printed $E h = 0$ for all parameters is impossible with ReLU units that "
    "are not negative: it fails for every $w^{(2)} > 0$ unless all units are dead, and 'can always "
    "be achieved by making the data centered' is true of $y$ only.",
)

C_X = _flaw(
    r"Theorem 1, $\eta = C_1^2 C_2$",
    ErratumClass.GAP,
    "With a hidden constant that may depend on $C_x$, though not on $C_1$ and $C_2$, it stands. "
    r"The proof's $\xi^2$ has $C_x^4$, so that $\eta = C_1^2 C_2 C_x^2$: as printed the sample "
    "size changes when inputs are doubled and $w^{(1)}$ is halved. Lemma 1 and Theorem 6 define "
    r"$\eta$ as $C_1 C_2 C_x$ with $C_1 C_x$ outside. The proof ends with "
    r"$\log(s_0 \eta / \gamma)$.",
    claim="liu2021analyzing/theorem-1-eta",
)

LOGARITHM = _flaw(
    r"Corollary 1, $\log(p \eta / \gamma)$",
    ErratumClass.TYPO,
    r"Theorem 1 at $s_0 = 0$, $\tau = 1$ has $\sqrt{p}$ there, at most a factor 2 of the "
    r"logarithm where $\eta$ exceeds $\gamma$. (A2) requires $s_0 > 0$ and $\tau < 1$.",
    claim="liu2021analyzing/corollary-1-logarithm",
)

DOMINANCE = _flaw(
    r"After Theorem 2, 'proportional to $(\sqrt{s_0} + \tau \sqrt p)^4$'",
    ErratumClass.REFUTED,
    r"True of the first term of $k = (\sqrt{s_0} + \tau \sqrt{p})^2 + \sqrt{p}\, t$ alone, which "
    r"counts only if $s_0$ exceeds $\sqrt{p}\, t$, hence $t < \sqrt{p}$. At the paper's own "
    "$p = 130$, $t = 100$ the second dominates: the printed size falls by 1.23 from $s_0 = p$ to "
    "$s_0 = 11$, not by 140, so that 'a properly small $s_0$ and $\\tau$ can significantly "
    r"reduce' it fails there. That term is itself a slack: softmax is $1/\sqrt{2}$-Lipschitz from "
    r"$\ell_\infty$ to $\ell_2$ (claim theorem-2-softmax), without $\sqrt{p}$.",
    claim="liu2021analyzing/theorem-2-dominance",
)

ATTENDED_FEATURES = _flaw(
    "Proof of Theorem 2, the norm of the features",
    ErratumClass.INVALID_PROOF,
    r"$\sqrt{2} (\sqrt{s_0} + \tau \sqrt{p}) C_1 C_8$ bounds, with $C_x$, one attended word of "
    "one value; $p$ of them are flattened, with $d_v$ values each. With one-hot attention of "
    r"$p = 4$ words to themselves the features have norm 2, the print $\sqrt{2}$; for $p$ words "
    r"$\sqrt{p}$, so that no hidden constant helps. Right is $\sqrt{p d_v}\, C_1 C_8 C_x$, "
    "whatever the attention.",
    claim="liu2021analyzing/theorem-2-features-printed",
)

EXPONENTIALS = _flaw(
    "Proof of Theorem 2, softmax 'is Lipschitz when the sum has a lower bound'",
    ErratumClass.INVALID_PROOF,
    r"The bound of $\sum_i e^{\beta_i}$ does not follow from (A2.1)'s $\|Q^z K^\top\|_2 \ge C_9$: "
    "logits far below 0 have both a large norm and small exponentials. It is not needed: softmax "
    r"is $1/\sqrt{2}$-Lipschitz everywhere (claim theorem-2-softmax), and the assumption, which "
    "excludes equal weights, goes.",
    claim="liu2021analyzing/assumption-a2-1-below",
)

PARAMETERS = _flaw(
    "Theorem 2 and its proof, the number of parameters",
    ErratumClass.GAP,
    "$w_Q$ and $w_K$ have $2 t d_q$ entries, not the proof's $2 p d_q$, and $w_V$ has $d_v t$, "
    "which is missing. The theorem has $p d_v d$ alone, which stands for all of them where "
    "$t (2 d_q + d_v)$ is not larger. The arguments of the logarithm differ as well: "
    r"$k \eta_a \eta_b$ in the theorem, $k C_1 C_2 C_5 C_6 C_8 C_x$ in the proof, a sum and a "
    "product of $C_5$, $C_6$.",
    claim="liu2021analyzing/theorem-2-parameters-printed",
)

DEEP = _flaw(
    "Theorem 3",
    ErratumClass.INVALID_PROOF,
    r"With $\gamma$ fixed, a factor $c_K / \gamma^2$ may hide in $\gtrsim$, and the sentence "
    r"stands. As a bound in $\gamma$ it is missing, and its own tail bound "
    r"$e^{-n c^2 \gamma^2 / c_K}$ needs it: errors would fall exponentially in "
    r"$n / P$, while a regression on $P$ parameters has $\sigma^2 P / n$. Run on two layers of "
    r"attention, with (A6) asked at the stationary point alone and hidden constants 10 for $n$ and "
    r"100 for $\gamma^2$, the conclusion fails at $\gamma = 10^{-5}$; with the factor it holds.",
    claim="liu2021analyzing/theorem-3-run",
)

DEEP_ASSUMPTION = _flaw(
    "Appendix A.4, (A6)",
    ErratumClass.GAP,
    r"$\mathrm{cov}(\nabla h, u) \ge c \gamma^2$ has no 'for which weights'. Asked at the "
    "stationary point alone it can be met. At the true parameters of (A3.2), where $u = 0$, it "
    r"fails (assumption-a6). As the proof uses it, where $E u^2 \ge \gamma^2$, it is the theorem "
    r"but for the sampling, and fails at $w = 0$, which the balls of (A3.1) contain, unless "
    r"predicting nothing has an error below $\gamma^2$. And it gives a gradient of $c \gamma^2$, "
    r"where the proof has $c \gamma$, so that $1/\gamma^4$ samples would follow.",
    claim="liu2021analyzing/assumption-a6-at-zero",
)

DEEP_COUNT = _flaw(
    r"Appendix A.4, $d_{self} + D (d_k + d_v) q_k$",
    ErratumClass.GAP,
    "The last layer flattens $p$ words: its $w_{D1}$ has $p d_v q_D$ entries, where the print has "
    r"$1 \times d_v$ and the count $d_v q_k$. The proof has $D (d_k + d_v q_k)$, a misplaced "
    r"bracket. Sizes of the layers do not fit either: $g_k$ yields $d_k \times d_{k-1}$, the next "
    r"reads $t \times d_k$.",
    claim="liu2021analyzing/theorem-3-parameters",
)

RECURRENT_WEIGHTS = _flaw(
    r"Appendix B, $\alpha_{kj} = e_{kj} / \sum_j e_{kj}$",
    ErratumClass.TYPO,
    "The exponential function is missing, in numerator and denominator.",
    claim="liu2021analyzing/appendix-b-weights",
)

RECURRENT_NORM = _flaw(
    r"Theorem 6, $C_1^2 C_x^2 \eta^2$",
    ErratumClass.GAP,
    "With entries bounded by $C_x$, as in (A1.1), a word of $t$ entries has norm "
    r"$\sqrt{t}\, C_x$, and a factor $t^2$ is missing. The formula of the proof is not in our "
    "text.",
    claim="liu2021analyzing/theorem-6-features",
)

REFERENCES = _flaw(
    "Appendices A, B and D, references",
    ErratumClass.TYPO,
    "'Centered as (A6)' means (A1.3); 'parallel to (A3) to (A6)' (A1) to (A3); '(A9)', for which "
    r"the proof of Theorem 2 has a lower bound of $\|QK\|$, (A2.1), and no such bound is needed; "
    "'(A15)' (A8); (A8)'s '(A2)' (A3); 'as Theorem 7 says' Theorem 6; $a(x)$ maps to $p$ weights, "
    "not to a '$t$-dimensional vector'. Lemma 1 is about 'the objective function (4)', that of "
    "self-attention, in place of its own, which has no number.",
)

SIZES = _flaw(
    "(A5), (A2.1) and section 6, sizes",
    ErratumClass.TYPO,
    r"(A5) has $k^2 d_v d$ where Theorem 2 has $p d_v d$; (A2.1) sums a row of $w_V$ to $p$, "
    "but it has $t$ entries (and needs their absolute values); section 6 has $w_V$ in "
    r"$R^{100 \times 130}$, which does not multiply words of $t = 100$ entries: "
    r"$R^{100 \times 100}$, as its $f_{att} \in R^{100 \times 130}$ says.",
)
