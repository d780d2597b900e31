"""Flaws of the paper as text, with the claim that shows each, if any."""

from functools import partial

from attlas.claims.claim import Erratum, ErratumClass

_PAPER = "trauger2023sequence"


def _erratum(kind: ErratumClass, locator: str, text: str, claim: str = "") -> Erratum:
    """An erratum of this paper; `claim` is the part of the name after it."""
    return Erratum(_PAPER, locator, kind, text, f"{_PAPER}/{claim}" if claim else "")


_typo, _gap, _proof, _refuted = (
    partial(_erratum, ErratumClass(kind)) for kind in ("typo", "gap", "invalid proof", "refuted")
)

NOT_EQUAL = _gap(
    "Sections 1, 2.5 and 3.4, comparison with Edelman et al. 2022",
    "'Previously, the best known norm-based generalization bound scaled with the logarithm of "
    r"the sequence length': read of each bound in its own norms this is so. But the bounds without "
    r"$\log T$ ask for other norms, $\|W\|_{1,1}$ in place of $\|W^\top\|_{2,1}$, or "
    r"$l_1$-bounded tokens. For a dense $64 \times 64$ matrix the first is 6.4 times the second, "
    r"so that the entropy is 41 times larger, while $\log T$ costs 29 per cent at $T = 200$, "
    r"$m = 10^6$: on the same weights the bound is better only if $W_{QK}$ is sparse entry by "
    "entry.",
    "dense-weights-entropy",
)

NO_LOGARITHM = _gap(
    "Sections 1 and 4.1, comparison with Edelman et al. 2022",
    "'Previously, the best known norm-based generalization bound scaled with the logarithm of "
    "the sequence length': for the single layer with a [CLS] readout the earlier cover is "
    "needed at the $m$ [CLS] tokens alone, as the softmax is compared with $W_{QK} x_{cls}$: it "
    r"has $\log m$ in place of $\log(mT)$. The dependence on $T$ that Theorem 4.1 removes is not "
    "there in that case.",
    "sequence-length-cls",
)

INDICES = _typo(
    "Section 2.3", "The inequality of the gap has $n$ samples on the left and $m$ on the right."
)

SMALL_Q = _gap(
    "Section 2.4 and Lemma 3.2",
    r"Covers are defined for '$q \in \mathbb{R}_{>0}$', but Lemma 3.2 needs the triangle "
    r"inequality, $q \ge 1$, as the name of a norm suggests; $q = 2$ is used. For $q = 1/2$, the "
    r"zero and the identity matrix of order 2, $B_x = 1$ and $\epsilon = 3/2$ one centre is "
    "enough on $e_1$ and $e_2$ and not at $(1/2, 1/2)$.",
    "lemma-3-2-small-q",
)

OPEN_CONSTANT = _gap(
    "Section 2.4 (Dudley) and Theorem 4.1",
    r"The constant $c$ is left open and every bound is an $O(\dots)$, so that no number follows "
    r"from the paper. $c$ is at least $1 / \sqrt{\ln 2} = 1.201$ (all sign patterns), and the "
    r"explicit form has $2.414\, \delta + 8.243 / \sqrt m$ times the integral. In Appendix C the "
    r"first integral lacks $1 / m$ under $4 B_x^4 C / \epsilon^2$.",
    "dudley-tree",
)

SHAPES = _typo(
    "Section 2.6",
    r"'$W_Q, W_K \in \mathbb{R}^{d \times T}$': keys and queries usually have a width of their "
    r"own, $d \times k$. Harmless: the section goes on with the $d \times d$ product $W_{QK}$ "
    "alone, whose size does not depend on $T$.",
)

SPARSIFICATION = _typo(
    "Lemma 3.1",
    r"'$\sum k_i \le k$' with the scale $1/k$ and the bound $(\gamma^2 b^2 - \|f\|^2) / k$ is "
    r"false for $\gamma < 1$: for $f = V / 2$, $\|V\| = b = 1$ and $k = 1$ the averages 0 and "
    r"$V$ are at squared distance $1/4$, and the bound is 0. Right is $\gamma b^2 - \|f\|^2$ "
    r"over $k$, or the printed bound with $(\gamma / k) \sum k_i V_i$, $\sum k_i = k$. The "
    r"covers of the paper use $\gamma = 1$, where all agree.",
    "lemma-3-1-printed",
)

NUMBER_OF_COUNTS = _typo(
    "Remark on Lemma 3.1",
    r"'The total amount of $(k_1, \dots, k_d)$'s' is at most $d^k$ for $\sum k_i = k$; with the "
    r"printed $\sum k_i \le k$ it is at most $(d+1)^k$: two atoms and one term have three "
    "counts. The covers count $2 k + 1$ choices, zero among them.",
    "lemma-3-1-count-printed",
)

ORIENTATION = _gap(
    "Section 2.1, Lemmas 3.2 to 3.5 and Theorem 4.1, norms of columns and of rows",
    "Each statement is true with norms in the orientation that its proof uses: of columns in Lemma "
    "3.3 and, without the two transposes, in Theorem 4.1; of rows, as Edelman et al. bound the "
    "transpose, in Lemmas 3.4 and 3.5, up to logarithms. What is missing is the orientation, and "
    r"no single one serves all. With norms of rows $\|W_c^\top\|_{1,\infty}$ bounds columns and "
    "the theorem and Lemmas 3.4 and 3.5 stand, but Lemma 3.3 is false: at $d = 1$ its class is a "
    "cube (claim lemma-3-3-rows, 89 against 4.9 at $k = 64$). With norms of columns, by the "
    "definition of Section 2.1 as far as our text of it can be read, Lemma 3.3 stands and the "
    "others are false: at $d = 1$ the class of Lemma 3.4 is a ball (claim lemma-3-4-printed, 44.4 "
    "against 16.6); and Theorem 4.1 then bounds rows, so that $W_c$ may have a first column of "
    r"ones, the outputs reach $\sqrt d\, B_w B_c B_v B_x$, and the complexity exceeds the bound by "
    r"$\sqrt{d / \ln d}$. No constant repairs any of the three. The proof of Lemma 3.2 makes the "
    "same slip: it expands $(W - \\hat W) x$ over $W_i$, a row by Section 2.1, where the column "
    "$W_{:,i}$ is needed (claim lemma-3-2-distance). Corollaries D.0.2 and F.0.2 then ask for "
    "norms of rows.",
    "theorem-4-1-transposes",
)

CEILING = _proof(
    "Lemmas 3.3 and 3.6, proofs",
    r"Maurey's lemma takes a whole number of terms, $\lceil B_w^2 B_x^2 / \epsilon^2 \rceil$, "
    r"and the proofs drop the ceiling, which just below $\epsilon = B_w B_x$ doubles the size. "
    "The lemmas hold as printed by another cover: greedy steps of lengths 1/2, 1/4, 3/16, ... "
    "reach a squared distance of $1 / (K + 3)$ after $K$ steps.",
    "lemma-3-6",
)

ALPHA = _typo(
    r"Corollary 4.1.1, $\alpha$",
    r"$\alpha$ must be $2 B_{QK} \sqrt{\ln(2 d^2 + 1)}$, as Appendix D would have it; printed is "
    r"$B_{QK} \sqrt{2 \ln(2 d^2 + 1)}$, $\sqrt 2$ smaller.",
    "corollary-4-1-1-alpha",
)

PRODUCT = _typo(
    "Corollary 4.1.1, $B$",
    r"$B$ must be $B_w B_c L_\sigma B_v$, as in Appendix D; printed is $B_c$ twice.",
    "corollary-4-1-1-product",
)

DISPLAYS = _typo(
    "Section 4.1, definition of $Y_{[CLS]}$",
    r"The first display has $W_{QK}^\top$, the second and the proof have $W_{QK}$.",
    "theorem-4-1-displays",
)

NEGATIVE = _refuted(
    r"Theorem 4.1 and Appendix C, the best $\delta$",
    r"Read as an order for $m \to \infty$ the bound stands. It is stated for all $m > d$, "
    r"$m > \ln 2d$, where the hidden constant cannot serve: the proof inserts $\delta = 2 B_x^2 "
    r"\sqrt C / (\sqrt m - \sqrt{\ln 2d})$ into Dudley's integral over $[\delta, B_x]$ without "
    r"asking for $\delta \le B_x$, and beyond that the bracket turns negative: $-0.72$ for "
    r"$d = 64$, $B_x = 1$, $m = 300$, $B_{QK} = 10$. It holds for $2 B_x \sqrt C \le \sqrt m - "
    r"\sqrt{\ln 2d}$ alone; elsewhere the bound is $B_x$. The paper's own experiment ($m = 300$, "
    "$B_x$ about 6) lies outside.",
    "theorem-4-1-negative",
)

LOST_FACTOR = _typo(
    "Appendix C, first display",
    r"'$v^\top u \le B_v \max_j |e_j u| = \max_{j,s} s\, e_j u^\top$' loses $B_v$ in its last "
    "expression; the proof carries the factor. The powers of Appendix A lack absolute values.",
    "appendix-c-norms",
)

GAMMA = _proof(
    "Theorem 4.2, last step of the proof; Corollaries 4.2.1, F.0.1 and F.0.2",
    r"'We can use lemma E.1 to get our desired sizes': the printed $\gamma$ and $\eta$ are not "
    "the optimum of Lemma E.1 for the recursion displayed above that sentence. The third terms "
    r"have $B_{v2}$ where $B_{c2}$ belongs, and $\gamma$ lacks the term of the first $W_c$ and "
    r"$\alpha_1$ in that of the first $W_v$. With $B_c = 2$ and all else 1 the optimum is 2.5, "
    "4.4 and 5.1 times the printed entropy at 1, 2 and 4 layers. No class whose covers exceed "
    "the printed entropy is known. All three corollaries inherit it.",
    "theorem-4-2-printed",
)

FIRST_QUERY_KEY = _gap(
    "Lemma E.2 and Theorem 4.2 at the first layer",
    r"Read with $B_x \le 1$, as in Edelman et al., the lemma is right. It is stated for every "
    r"$i$ and tokens within 'our norm bounds', $\|x\|_2 \le B_x$, and Theorem 4.2 allows any "
    r"$B_x$: beyond 1 the term $2 L_\sigma B_{c2} B_{v2} \|(W_{QK} - \hat W_{QK})^\top "
    r"g^\top\|_{2,\infty}$ at $i = 1$ lacks $B_x^2$, for keys and values are tokens of norm "
    r"$B_x$, and so does the theorem's $\gamma$. The factor is attained (16 at $B_x = 4$), with 1 "
    "for the softmax.",
    "lemma-e-2-first-layer",
)

FIRST_VALUE = _proof(
    "Theorem 4.2, cover of the first $W_v$",
    r"Right for $B_x \le 1$; the theorem allows any $B_x$. All covers but that of the first "
    r"$W_{QK}$ are taken on $\|x\|_2 \le 1$. The first $W_v$ acts on tokens of norm $B_x$ and "
    "needs $C_{B_x}$ as well.",
    "theorem-4-2-first-values",
)

OUTPUT_REACH = _proof(
    "Theorem 4.2, cover of $W_c$",
    r"Right for $L_\sigma \le 1$, as of ReLU; the theorem allows any $L_\sigma$. $W_c$ is covered "
    r"on $\|x\|_2 \le 1$ and acts on $\sigma$ of unit rows, whose norm is up to $L_\sigma$: needed "
    r"is $C_1 \max(1, L_\sigma^2)$.",
    "theorem-4-2-output-reach",
)

ROWS = _proof(
    "Corollaries F.0.1 and F.0.2, inputs of inner layers",
    r"Lemmas 3.3 and 3.4 cover inputs with $\|x\|_1 \le B_x$, and the corollaries ask for the "
    r"lemmas' norms of the matrices alone. After $\Pi_{norm}$ only $\|x\|_2 \le 1$ is known: "
    r"$\|x\|_1$ may be $\sqrt d$, which costs a factor $d$ in the entropy.",
    "corollary-f-0-rows",
)

LOGARITHM = _gap(
    "Corollaries 4.2.1 and F.0.1, logarithms",
    r"$W_{QK}$ is $d \times d$: its cover has $\ln(2d^2+1)$ and $d \ln(2d+1)$, which "
    r"$\ln(2dk+1)$ and $d \ln(2k+1)$ do not reach where $k < d$. Right for $k \ge d$, and with "
    r"$\max(d, k)$ for $k$.",
    "corollary-4-2-1",
)

SWAPPED_COVERS = _typo(
    "Appendix E, the covers",
    r"The text covers $\{x \mapsto W_{QK}^\top x\}$ under the name of $W_c$ and $\{x \mapsto "
    r"W_c^\top x\}$ under that of $W_{QK}$.",
)

MASKED_DISPLAY = _refuted(
    "Theorem 5.1, the displayed inequality",
    r"'$\mathbb{E} \sup \sum \epsilon_i \ell_i \le \tilde{\mathcal{O}}(\sqrt K) \max_s "
    r"\mathbb{E} \sup \sum \epsilon_i (W (Y_L^{(i)})_\tau)_s$'. Read as the theorem of Foster and "
    "Rakhlin (recalled) with the worst sample on the right, the display stands, and with it the "
    "bounds by Theorems 4.1 and 4.2, which hold for every sample. With the same sample on both "
    "sides, as in Section 2.3, $2 K$ in place of the root always holds, but the root is false for "
    "every power of logarithms. Witness: $m = K$ samples with $Y_i = e_i$ and true "
    "word $i$ (two tokens, the mask 0 and $2 e_i$, so that attention is uniform; $W_v = W_c = "
    "I$; a further sample at 0 makes $m > d$), rows of $W$ in the $l_1$ ball of Theorem 4.1. A "
    "word has complexity $B / m$, the losses up to $K - 1$ times that: 4.99999 at $K = 6$ by "
    r"enumeration, where $2 \sqrt 6 = 4.899$. On the worst sample, one input repeated, a word has "
    r"$B\, \mathbb{E}|S_m| / m$, and the witness is no contradiction.",
    "theorem-5-1-printed",
)

TEXT_AND_CODE = _gap(
    "Section 6, against the released code",
    "The text trains for 200,000 epochs by cross-entropy. The code stops at the first epoch of "
    "training accuracy 1 and keeps the epoch of least validation loss; its loss is the mean of "
    r"two binary cross-entropies, one per logit. The label rule '$> |I|/2$' is '$\ge s/2$' in "
    "the code, the same for $s = 9$. The printed gap is training minus test loss.",
    "section-6-loss",
)

POWER_GAP = _gap(
    "Section 6, Figure 2",
    "'There is no discernible trend in the plot' describes the plot, and the plot does not "
    "contradict a bound without $T$. It is no evidence for one: when the figure is repeated at the "
    "paper's size (experiment `sparse_majority`), the loss gap grows with $T$, by more than "
    r"$\sqrt{\log T}$, though the shortest length carries much of that. The maximum of five runs "
    r"is shown, and the bound with $\log T$ predicts a change of $\ln(64 \cdot 300 \cdot 200)/"
    r"\ln(64 \cdot 300 \cdot 20) = 1.18$ in the entropy and 1.086 in the gap, which five runs "
    "cannot show; $m$ is held fixed throughout.",
    "section-6-power",
)
