"""Errata of Sections 2 and 3 and of Appendix C, with the claim that shows each, if any."""

from functools import partial

from attlas.core.claim import Erratum, ErratumClass

_erratum = partial(Erratum, paper="trauger2023sequence")

SPARSIFICATION = _erratum(
    locator="Lemma 3.1",
    kind=ErratumClass.TYPO,
    text=(
        r"'$\sum k_i \le k$' with the scale $1/k$ and the bound $(\gamma^2 b^2 - \|f\|^2) / k$ is "
        r"false for $\gamma < 1$: for $f = V / 2$, $\|V\| = b = 1$ and $k = 1$ the averages 0 and "
        r"$V$ are at squared distance $1/4$, and the bound is 0. Right is $\gamma b^2 - \|f\|^2$ "
        r"over $k$, or the printed bound with $(\gamma / k) \sum k_i V_i$, $\sum k_i = k$. The "
        r"covers of the paper use $\gamma = 1$, where all agree."
    ),
    claim="trauger2023sequence/lemma-3-1-printed",
)

NUMBER_OF_COUNTS = _erratum(
    locator="Remark on Lemma 3.1",
    kind=ErratumClass.TYPO,
    text=(
        r"'The total amount of $(k_1, \dots, k_d)$'s' is at most $d^k$ for $\sum k_i = k$; with "
        r"the printed $\sum k_i \le k$ it is at most $(d+1)^k$: two atoms and one term have three "
        "counts. The covers count $2 k + 1$ choices, zero among them."
    ),
    claim="trauger2023sequence/lemma-3-1-count-printed",
)

SMALL_Q = _erratum(
    locator="Section 2.4 and Lemma 3.2",
    kind=ErratumClass.GAP,
    text=(
        r"Covers are defined for '$q \in \mathbb{R}_{>0}$', but Lemma 3.2 needs the triangle "
        r"inequality, $q \ge 1$, as the name of a norm suggests; $q = 2$ is used. For $q = 1/2$, "
        r"the zero and the identity matrix of order 2, $B_x = 1$ and $\epsilon = 3/2$ one centre "
        "is enough on $e_1$ and $e_2$ and not at $(1/2, 1/2)$."
    ),
    claim="trauger2023sequence/lemma-3-2-small-q",
)

ORIENTATION = _erratum(
    locator="Lemmas 3.4 and 3.5",
    kind=ErratumClass.REFUTED,
    text=(
        r"$\|W\|_{2,1}$ is the sum of the lengths of columns by the definition of Section 2.1 (as "
        "far as our text of it can be read), on which Lemma 3.3 rests. With it both lemmas are "
        r"false: for $d = 1$ the class is a ball in $\mathbb{R}^k$, and its covers have at least "
        r"$(B_w B_x / \epsilon)^k$ centres, $k = 64$ and $B_w B_x / \epsilon = 2$ give 44.4 "
        "against 16.6, and no hidden constant or logarithm helps. Edelman et al. bound the "
        "transpose, the sum of the lengths of rows: read so, both lemmas hold, and the log is "
        "that of $2 k N + 1$; Corollaries D.0.2 and F.0.2 then ask for other norms."
    ),
    claim="trauger2023sequence/lemma-3-4-printed",
)

CEILING = _erratum(
    locator="Lemmas 3.3 and 3.6, proofs",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        r"Maurey's lemma takes a whole number of terms, $\lceil B_w^2 B_x^2 / \epsilon^2 \rceil$, "
        r"and the proofs drop the ceiling, which just below $\epsilon = B_w B_x$ doubles the size. "
        "The lemmas hold as printed by another cover: greedy steps of lengths 1/2, 1/4, 3/16, ... "
        "reach a squared distance of $1 / (K + 3)$ after $K$ steps."
    ),
    claim="trauger2023sequence/lemma-3-6",
)

OPEN_CONSTANT = _erratum(
    locator="Section 2.4 (Dudley) and Theorem 4.1",
    kind=ErratumClass.GAP,
    text=(
        r"The constant $c$ is left open and every bound is an $O(\dots)$, so that no number "
        r"follows from the paper. $c$ is at least $1 / \sqrt{\ln 2} = 1.201$ (all sign patterns), "
        r"and the explicit form has $2.414\, \delta + 8.243 / \sqrt m$ times the integral. In "
        r"Appendix C the first integral lacks $1 / m$ under $4 B_x^4 C / \epsilon^2$."
    ),
    claim="trauger2023sequence/dudley-tree",
)

LOST_FACTOR = _erratum(
    locator="Appendix C, first display",
    kind=ErratumClass.TYPO,
    text=(
        r"'$v^\top u \le B_v \max_j |e_j u| = \max_{j,s} s\, e_j u^\top$' loses $B_v$ in its last "
        "expression; the proof carries the factor. The powers of Appendix A lack absolute values."
    ),
    claim="trauger2023sequence/appendix-c-norms",
)

COLUMNS = _erratum(
    locator="Appendix B, proof of Lemma 3.2",
    kind=ErratumClass.TYPO,
    text=(
        r"The proof expands $(W - \hat W) x$ as a sum over $x_i (W_i - \hat W_i)$, and $W_i$ is a "
        "row by Section 2.1; the columns $W_{:,i}$ are meant."
    ),
    claim="trauger2023sequence/lemma-3-2-distance",
)
