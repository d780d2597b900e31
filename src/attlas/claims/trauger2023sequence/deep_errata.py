"""Errata of the deep bound and of Section 5, with the claims that show them."""

from functools import partial

from attlas.core.claim import Erratum, ErratumClass

_erratum = partial(Erratum, paper="trauger2023sequence")

GAMMA = _erratum(
    locator="Theorem 4.2, last step of the proof; Corollaries 4.2.1, F.0.1 and F.0.2",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        r"'We can use lemma E.1 to get our desired sizes': the printed $\gamma$ and $\eta$ are not "
        "the optimum of Lemma E.1 for the recursion displayed above that sentence. The third "
        r"terms have $B_{v2}$ where $B_{c2}$ belongs, and $\gamma$ lacks the term of the first "
        r"$W_c$ and $\alpha_1$ in that of the first $W_v$. With $B_c = 2$ and all else 1 the "
        "optimum is 2.5, 4.4 and 5.1 times the printed entropy at 1, 2 and 4 layers. No class "
        "whose covers exceed the printed entropy is known. All three corollaries inherit it."
    ),
    claim="trauger2023sequence/theorem-4-2-printed",
)

FIRST_QUERY_KEY = _erratum(
    locator="Lemma E.2 and Theorem 4.2 at the first layer",
    kind=ErratumClass.REFUTED,
    text=(
        r"The lemma is stated for every $i$ and tokens within 'our norm bounds', $\|x\|_2 \le "
        r"B_x$. At $i = 1$ its term $2 L_\sigma B_{c2} B_{v2} \|(W_{QK} - \hat W_{QK})^\top "
        r"g^\top\|_{2,\infty}$ lacks $B_x^2$ where $B_x > 1$: keys and values are tokens of norm "
        "$B_x$. The factor is attained (16 at $B_x = 4$), with 1 for the softmax. Read with $B_x "
        r"\le 1$, as in Edelman et al., the lemma is right; Theorem 4.2 allows any $B_x$, and its "
        r"$\gamma$ lacks the factor."
    ),
    claim="trauger2023sequence/lemma-e-2-first-layer",
)

FIRST_VALUE = _erratum(
    locator="Theorem 4.2, cover of the first $W_v$",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        r"All covers but that of the first $W_{QK}$ are taken on $\|x\|_2 \le 1$. The first $W_v$ "
        r"acts on tokens of norm $B_x$ and needs $C_{B_x}$ as well. Right for $B_x \le 1$."
    ),
    claim="trauger2023sequence/theorem-4-2-first-values",
)

OUTPUT_REACH = _erratum(
    locator="Theorem 4.2, cover of $W_c$",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        r"$W_c$ is covered on $\|x\|_2 \le 1$ and acts on $\sigma$ of unit rows, whose norm is up "
        r"to $L_\sigma$: needed is $C_1 \max(1, L_\sigma^2)$. Right for $L_\sigma \le 1$."
    ),
    claim="trauger2023sequence/theorem-4-2-output-reach",
)

ROWS = _erratum(
    locator="Corollaries F.0.1 and F.0.2, inputs of inner layers",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        r"Lemmas 3.3 and 3.4 cover inputs with $\|x\|_1 \le B_x$, and the corollaries ask for the "
        r"lemmas' norms of the matrices alone. After $\Pi_{norm}$ only $\|x\|_2 \le 1$ is known: "
        r"$\|x\|_1$ may be $\sqrt d$, which costs a factor $d$ in the entropy."
    ),
    claim="trauger2023sequence/corollary-f-0-rows",
)

LOGARITHM = _erratum(
    locator="Corollaries 4.2.1 and F.0.1, logarithms",
    kind=ErratumClass.GAP,
    text=(
        r"$W_{QK}$ is $d \times d$: its cover has $\ln(2d^2+1)$ and $d \ln(2d+1)$, which "
        r"$\ln(2dk+1)$ and $d \ln(2k+1)$ do not reach where $k < d$. Right for $k \ge d$, and with "
        r"$\max(d, k)$ for $k$."
    ),
    claim="trauger2023sequence/corollary-4-2-1",
)

SWAPPED_COVERS = _erratum(
    locator="Appendix E, the covers",
    kind=ErratumClass.TYPO,
    text=(
        r"The text covers $\{x \mapsto W_{QK}^\top x\}$ under the name of $W_c$ and $\{x \mapsto "
        r"W_c^\top x\}$ under that of $W_{QK}$."
    ),
)

MASKED_DISPLAY = _erratum(
    locator="Theorem 5.1, the displayed inequality",
    kind=ErratumClass.REFUTED,
    text=(
        r"'$\mathbb{E} \sup \sum \epsilon_i \ell_i \le \tilde{\mathcal{O}}(\sqrt K) \max_s "
        r"\mathbb{E} \sup \sum \epsilon_i (W (Y_L^{(i)})_\tau)_s$', the same sample on both sides, "
        "is false for every power of logarithms. Witness: $m = K$ samples with $Y_i = e_i$ and "
        "true word $i$ (one token each, $W_v = W_c = I$; a further sample at 0 makes $m > d$), "
        "rows of $W$ in the $l_1$ ball of Theorem 4.1. A word has complexity $B / m$, the losses "
        r"up to $K - 1$ times that: 4.99999 at $K = 6$ by enumeration, $2 \sqrt 6 = 4.899$. $K$ is "
        "the right order, as $2 K$ always holds. The theorem of Foster and Rakhlin has the worst "
        r"sample on the right, where words have $B\, \mathbb{E}|S_m| / m$: read so, the display "
        "and the bounds of Theorems 4.1 and 4.2, which hold for every sample, stand; what falls "
        "is the complexity of the sample at hand, that of Section 2.3."
    ),
    claim="trauger2023sequence/theorem-5-1-printed",
)
