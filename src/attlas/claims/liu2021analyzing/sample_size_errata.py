"""Flaws of the theorems on sample sizes as text, with the class of each and the claim for it."""

from attlas.core.claim import Erratum, ErratumClass

_PAPER = "liu2021analyzing"

CONCENTRATION = Erratum(
    paper=_PAPER,
    locator="Theorem 1 and Corollary 1, (sqrt(s0) + tau sqrt(p))^4 and p^2",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        "The dependence on s0 and p is the slack of one inequality: ||x o f||_2 is bounded by "
        "||x||_2 ||f||_2, where max|x| ||f||_2 holds. With ||f||_2 = 1, as the paper asks, the "
        "features are bounded by C_1 C_x for all attention weights alike, and both statements "
        "need n of the order (eta^2/gamma^2) log(eta/gamma) (pd + d). The advantage p^2/s0^2 (140 "
        "at p = 130, s0 = 11) disappears, in the bound and in fits. Only the norm factor does: a "
        "known fixed support still reduces pd to s0 d. In Lemma 1 s0 stays: masks in [0, 1]^p "
        "are not normalised."
    ),
    claim=f"{_PAPER}/theorem-1-features-attained",
)

REST = Erratum(
    paper=_PAPER,
    locator="Proof of Theorem 1, ||f||_2 = ||f_lead||_2 + ||f_sub||_2",
    kind=ErratumClass.REFUTED,
    text=(
        "Squares of norms add up: ||f_sub||_2 is at most sqrt(2 tau - tau^2), and equal to it for "
        "the smallest tau. At tau = .1 it is .436."
    ),
    claim=f"{_PAPER}/erratum-2",
)

NORMALISATION = Erratum(
    paper=_PAPER,
    locator="Section 3.1, ||f(x)||_2 = 1",
    kind=ErratumClass.REFUTED,
    text=(
        "A softmax sums to one; its Euclidean norm lies between p^(-1/2), for equal weights, and "
        "one. In a bound through norms uniform attention is then the best, not the worst."
    ),
    claim=f"{_PAPER}/erratum-3",
)

REPEATED_UNITS = Erratum(
    paper=_PAPER,
    locator="Theorems 1 and 2, 'any stationary point'",
    kind=ErratumClass.VACUITY,
    text=(
        "Not (0, 0) alone has to be excluded: a stationary point of any narrower network, with a "
        "unit repeated, is one of the wider network, at every n, with features that are not "
        "constant and the error of an under-width student; in fits it is a plateau from n = 512 "
        "to 131,072. (A3) at the point excludes it; (A3) at all points excludes every teacher "
        "(claim assumption-a3-at-zero)."
    ),
    claim=f"{_PAPER}/theorem-1-embedded",
)

CENTRING = Erratum(
    paper=_PAPER,
    locator="Appendix A.2, (A1.3)",
    kind=ErratumClass.VACUITY,
    text=(
        "E h = 0 for all parameters is impossible with ReLU units that are not negative: it "
        "fails for every w2 > 0 unless all units are dead. 'Can be achieved by making the data "
        "centred' is true of y only. A free bias of the output mends it, and is used here."
    ),
)

C_X = Erratum(
    paper=_PAPER,
    locator="Theorem 1, eta = C_1^2 C_2",
    kind=ErratumClass.GAP,
    text=(
        "The proof's xi^2 has C_x^4, so that eta = C_1^2 C_2 C_x^2; as printed the sample size "
        "changes when inputs are doubled and w1 is halved, unless the hidden constant is meant to "
        "depend on C_x, though not on C_1 and C_2. Lemma 1 and Theorem 6 define eta as "
        "C_1 C_2 C_x with C_1 C_x outside. The proof ends with log(s0 eta / gamma)."
    ),
    claim=f"{_PAPER}/theorem-1-eta",
)

LOGARITHM = Erratum(
    paper=_PAPER,
    locator="Corollary 1, log(p eta / gamma)",
    kind=ErratumClass.TYPO,
    text=(
        "Theorem 1 at s0 = 0, tau = 1 has sqrt(p) there, at most a factor 2 of the logarithm where "
        "eta exceeds gamma. (A2) asks for s0 > 0 and tau < 1."
    ),
    claim=f"{_PAPER}/corollary-1-logarithm",
)

DOMINANCE = Erratum(
    paper=_PAPER,
    locator="After Theorem 2, 'proportional to (sqrt(s0) + tau sqrt(p))^4'",
    kind=ErratumClass.REFUTED,
    text=(
        "The term sqrt(p) t dominates: at p = 130, t = 100 the printed size falls by 1.22 from "
        "s0 = p to s0 = 11, not by 140. That term is itself a slack: softmax is 1/sqrt(2)-"
        "Lipschitz from l_inf to l_2 (claim theorem-2-softmax), without sqrt(p)."
    ),
    claim=f"{_PAPER}/theorem-2-dominance",
)

ATTENDED_FEATURES = Erratum(
    paper=_PAPER,
    locator="Proof of Theorem 2, the norm of the features",
    kind=ErratumClass.REFUTED,
    text=(
        "sqrt(2)(sqrt(s0) + tau sqrt(p)) C_1 C_8 bounds, with C_x, one attended word of one value; "
        "p of them are flattened, with d_v values each. With one-hot attention of p = 4 words to "
        "themselves the features have norm 2, the print sqrt(2). Right is sqrt(p d_v) C_1 C_8 C_x, "
        "whatever the attention."
    ),
    claim=f"{_PAPER}/theorem-2-features-printed",
)

PARAMETERS = Erratum(
    paper=_PAPER,
    locator="Theorem 2 and its proof, the number of parameters",
    kind=ErratumClass.REFUTED,
    text=(
        "w_Q and w_K have 2 t d_q entries, not 2 p d_q, and w_V has d_v t, which is missing; the "
        "theorem has p d_v d alone. The arguments of the logarithm differ as well: k eta_a eta_b "
        "in the theorem, k C_1 C_2 C_5 C_6 C_8 C_x in the proof, a sum and a product of C_5, C_6."
    ),
    claim=f"{_PAPER}/theorem-2-parameters-printed",
)

DEEP = Erratum(
    paper=_PAPER,
    locator="Theorem 3",
    kind=ErratumClass.REFUTED,
    text=(
        "The factor c_K / gamma^2 is missing that its own tail bound exp(-n c^2 gamma^2 / c_K) "
        "needs. As printed errors would fall exponentially in n / P, while a regression on P "
        "parameters has sigma^2 P / n."
    ),
    claim=f"{_PAPER}/theorem-3",
)

DEEP_ASSUMPTION = Erratum(
    paper=_PAPER,
    locator="Appendix A.4, (A6)",
    kind=ErratumClass.VACUITY,
    text=(
        "cov(grad h, u) >= c gamma^2 fails at the true parameters, where u = 0, and (A3.2) asks "
        "that they exist: read for all parameters, no network satisfies both. Asked only where "
        "E u^2 >= gamma^2, it is the theorem but for the sampling; and it gives a gradient of "
        "c gamma^2, where the proof has c gamma, so that 1/gamma^4 samples would follow."
    ),
    claim=f"{_PAPER}/assumption-a6",
)

DEEP_COUNT = Erratum(
    paper=_PAPER,
    locator="Appendix A.4, d_self + D (d_k + d_v) q_k",
    kind=ErratumClass.GAP,
    text=(
        "The last layer flattens p words: its w_D1 has p d_v q_D entries, where the print has "
        "1 x d_v and the count d_v q_k. The proof has D (d_k + d_v q_k), a misplaced bracket. "
        "Sizes of the layers do not fit either: g_k yields d_k x d_(k-1), the next reads t x d_k."
    ),
    claim=f"{_PAPER}/theorem-3-parameters",
)

RECURRENT_WEIGHTS = Erratum(
    paper=_PAPER,
    locator="Appendix B, alpha_kj = e_kj / sum_j e_kj",
    kind=ErratumClass.TYPO,
    text="The exponential function is missing, in numerator and denominator.",
    claim=f"{_PAPER}/appendix-b-weights",
)

RECURRENT_NORM = Erratum(
    paper=_PAPER,
    locator="Theorem 6, C_1^2 C_x^2 eta^2",
    kind=ErratumClass.GAP,
    text=(
        "With entries bounded by C_x, as in (A1.1), a word of t entries has norm sqrt(t) C_x, and "
        "a factor t^2 is missing. The formula of the proof is not in our text."
    ),
    claim=f"{_PAPER}/theorem-6-features",
)

REFERENCES = Erratum(
    paper=_PAPER,
    locator="Appendices A and B, references",
    kind=ErratumClass.TYPO,
    text=(
        "'Centered as (A6)' means (A1.3); 'parallel to (A3) to (A6)' (A1) to (A3); '(A9)', for "
        "which the proof of Theorem 2 has a lower bound of ||QK||, (A2.1), and no such bound is "
        "needed; '(A15)' (A8); (A8)'s '(A2)' (A3); 'as Theorem 7 says' Theorem 6; a(x) maps to "
        "p weights, not to a 't-dimensional vector'."
    ),
)
