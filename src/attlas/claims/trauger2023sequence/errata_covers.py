"""Errata of Sections 2 and 3 and of Appendix C, with the claim that shows each, if any."""

from functools import partial

from attlas.core.claim import Erratum, ErratumClass

_erratum = partial(Erratum, paper="trauger2023sequence")

SPARSIFICATION = _erratum(
    locator="Lemma 3.1",
    kind=ErratumClass.REFUTED,
    text=(
        r"False for $\gamma < 1$: for $f = V / 2$, $\|V\| = b = 1$ and $k = 1$ the two averages 0 "
        r"and $V$ are at squared distance $1/4$, while the bound is 0. Right is "
        r"$\gamma b^2 - \|f\|^2$ over $k$, or the printed bound with the average "
        r"$(\gamma / k) \sum k_i V_i$, $\sum k_i = k$. The covers of the paper use $\gamma = 1$, "
        r"where all agree."
    ),
    claim="trauger2023sequence/lemma-3-1-printed",
)

NUMBER_OF_COUNTS = _erratum(
    locator="Remark on Lemma 3.1",
    kind=ErratumClass.REFUTED,
    text=(
        r"'The total amount of $(k_1, \dots, k_d)$ is at most $d^k$' holds for $\sum k_i = k$; "
        r"with $\sum k_i \le k$ it is $(d+1)^k$: two atoms and one term have three counts."
    ),
    claim="trauger2023sequence/lemma-3-1-count-printed",
)

SMALL_Q = _erratum(
    locator="Section 2.4 and Lemma 3.2",
    kind=ErratumClass.REFUTED,
    text=(
        r"Covers are defined for every $q > 0$, but Lemma 3.2 needs the triangle inequality, "
        r"$q \ge 1$. For $q = 1/2$ and the class of the zero and the identity matrix of order 2, "
        r"$B_x = 1$ and $\epsilon = 3/2$, one centre is enough on $e_1$ and $e_2$ and not at "
        r"$(1/2, 1/2)$."
    ),
    claim="trauger2023sequence/lemma-3-2-small-q",
)

ORIENTATION = _erratum(
    locator="Lemmas 3.4 and 3.5",
    kind=ErratumClass.REFUTED,
    text=(
        r"$\|W\|_{2,1}$ is the sum of the lengths of columns in Section 2.1. With it both lemmas "
        r"are false: for $d = 1$ the class is a ball in $\mathbb{R}^k$, and its covers have at "
        r"least $(B_w B_x / \epsilon)^k$ centres, $k = 64$ and $B_w B_x / \epsilon = 2$ give 44.4 "
        r"against 16.6, and no hidden constant or logarithm helps. Edelman et al. bound the "
        r"transpose, the sum of the lengths of rows: with it the lemmas hold, and the log is that "
        r"of $2 k N + 1$."
    ),
    claim="trauger2023sequence/lemma-3-4-printed",
)

CEILING = _erratum(
    locator="Lemmas 3.3 and 3.6, proofs",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        r"Maurey's lemma takes a whole number of terms, $\lceil B_w^2 B_x^2 / \epsilon^2 \rceil$, "
        r"and the proofs drop the ceiling, which just below $\epsilon = B_w B_x$ doubles the "
        r"size. The lemmas hold as printed by another cover: greedy steps of lengths 1/2, 1/4, "
        r"3/16, ... reach a squared distance of $1 / (K + 3)$ after $K$ steps."
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
        r"expression; the proof carries the factor. The powers of Appendix A lack absolute values."
    ),
    claim="trauger2023sequence/appendix-c-norms",
)

COLUMNS = _erratum(
    locator="Appendix B, proof of Lemma 3.2",
    kind=ErratumClass.TYPO,
    text=(
        r"The proof expands $(W - \hat W) x$ as a sum over $x_i (W_i - \hat W_i)$, and $W_i$ is a "
        r"row by Section 2.1; the columns $W_{:,i}$ are meant."
    ),
    claim="trauger2023sequence/lemma-3-2-distance",
)
