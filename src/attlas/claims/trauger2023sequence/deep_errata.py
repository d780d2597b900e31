"""Errata of the deep bound and of Section 5, with the claims that show them."""

from functools import partial

from attlas.core.claim import Erratum, ErratumClass

_erratum = partial(Erratum, paper="trauger2023sequence")

GAMMA = _erratum(
    locator="Theorem 4.2, Corollaries 4.2.1, F.0.1 and F.0.2",
    kind=ErratumClass.REFUTED,
    text=(
        r"$\gamma$ and $\eta$ are not the optimum of Lemma E.1 for the theorem's own recursion: "
        r"the third terms have $B_{v2}$ where $B_{c2}$ belongs, and $\gamma$ lacks the term of "
        r"the first $W_c$ and $\alpha_1$ in that of the first $W_v$. With $B_c = 2$ and all else "
        r"1 the entropy is 2.5, 4.4 and 5.1 times the printed one at 1, 2 and 4 layers. All three "
        r"corollaries inherit it."
    ),
    claim="trauger2023sequence/theorem-4-2-printed",
)

FIRST_QUERY_KEY = _erratum(
    locator="Lemma E.2 and Theorem 4.2 at the first layer",
    kind=ErratumClass.REFUTED,
    text=(
        r"For $B_x > 1$ the cost of the first $W_{QK}$ lacks a factor $B_x^2$ besides the $B_x$ "
        r"in its cover: keys and values are tokens of norm $B_x$. The factor is attained (16 at "
        r"$B_x = 4$), with 1 for the softmax. Right for $B_x \le 1$, as in Edelman et al."
    ),
    claim="trauger2023sequence/lemma-e-2-first-layer",
)

FIRST_VALUE = _erratum(
    locator="Theorem 4.2, cover of the first $W_v$",
    kind=ErratumClass.REFUTED,
    text=(
        r"The first $W_v$ acts on tokens of norm $B_x$ and needs $C_{B_x}$ like the first "
        r"$W_{QK}$; $C_1$ is printed. Right for $B_x \le 1$."
    ),
    claim="trauger2023sequence/theorem-4-2-first-values",
)

OUTPUT_REACH = _erratum(
    locator="Theorem 4.2, cover of $W_c$",
    kind=ErratumClass.REFUTED,
    text=(
        r"$W_c$ acts on $\sigma$ of unit rows, whose norm is up to $L_\sigma$: its cover is "
        r"needed on inputs of norm $L_\sigma$, $C_1 \max(1, L_\sigma^2)$. Right for "
        r"$L_\sigma \le 1$."
    ),
    claim="trauger2023sequence/theorem-4-2-output-reach",
)

ROWS = _erratum(
    locator="Corollaries F.0.1 and F.0.2, inputs of inner layers",
    kind=ErratumClass.REFUTED,
    text=(
        r"Lemmas 3.3 and 3.4 cover inputs with $\|x\|_1 \le B_x$, but after $\Pi_{norm}$ only "
        r"$\|x\|_2 \le 1$ is known: $\|x\|_1$ may be $\sqrt d$, which costs a factor $d$ in the "
        r"entropy."
    ),
    claim="trauger2023sequence/corollary-f-0-rows",
)

LOGARITHM = _erratum(
    locator="Corollaries 4.2.1 and F.0.1, logarithms",
    kind=ErratumClass.GAP,
    text=(
        r"$W_{QK}$ is $d \times d$: its cover has $\ln(2d^2+1)$ and $d \ln(2d+1)$, which "
        r"$\ln(2dk+1)$ and $d \ln(2k+1)$ do not reach where $k < d$. Right with $\max(d, k)$ for "
        r"$k$."
    ),
    claim="trauger2023sequence/corollary-4-2-1",
)

HEADS = _erratum(
    locator="Section 4.3, dependence $H^{1.5}$",
    kind=ErratumClass.GAP,
    text=(
        r"$H^{1.5}$ is right for one layer. In $L$ layers heads of equal norms also multiply the "
        r"amplification of every layer below: $\alpha_i$ gains $H^{L-i}$, the complexity "
        r"$H^{L+1/2}$. $H^{1.5}$ is left only where the norms of a layer's heads add up to a "
        r"fixed number."
    ),
    claim="trauger2023sequence/section-4-3-heads-deep",
)

SWAPPED_COVERS = _erratum(
    locator="Appendix E, the covers",
    kind=ErratumClass.TYPO,
    text=(
        r"The text covers $\{x \mapsto W_{QK}^\top x\}$ under the name of $W_c$ and "
        r"$\{x \mapsto W_c^\top x\}$ under that of $W_{QK}$."
    ),
)

MASKED_FACTOR = _erratum(
    locator="Theorem 5.1",
    kind=ErratumClass.GAP,
    text=(
        r"The contraction pays $\sqrt K$, up to logarithms and an unknown constant, on the whole "
        r"network. It is needed on the readout, whose rows are free for each word, but a cover of "
        r"the scores pays for the network below once, at twice the cost."
    ),
    claim="trauger2023sequence/theorem-5-1-recursion",
)
