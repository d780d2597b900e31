"""Flaws of sections 2 and 3 and of Appendix C as text, with the claim that shows each, if any."""

from attlas.core.claim import Erratum, ErratumClass

_PAPER = "trauger2023sequence"

SPARSIFICATION = Erratum(
    paper=_PAPER,
    locator="Lemma 3.1",
    kind=ErratumClass.REFUTED,
    text=(
        "False for gamma < 1: for f = V / 2, ||V|| = b = 1 and k = 1 the two averages 0 and V are "
        "at squared distance 1/4, while the bound is 0. Right is gamma b^2 - ||f||^2 over k, or "
        "the printed bound with the average (gamma / k) sum k_i V_i, sum k_i = k. The covers of "
        "the paper use gamma = 1, where all agree."
    ),
    claim=f"{_PAPER}/lemma-3-1-printed",
)

NUMBER_OF_COUNTS = Erratum(
    paper=_PAPER,
    locator="Remark on Lemma 3.1",
    kind=ErratumClass.REFUTED,
    text=(
        "'The total amount of (k_1, ..., k_d) is at most d^k' holds for sum k_i = k; with "
        "sum k_i <= k it is (d+1)^k: two atoms and one term have three counts."
    ),
    claim=f"{_PAPER}/lemma-3-1-count-printed",
)

SMALL_Q = Erratum(
    paper=_PAPER,
    locator="Section 2.4 and Lemma 3.2",
    kind=ErratumClass.REFUTED,
    text=(
        "Covers are defined for every q > 0, but Lemma 3.2 needs the triangle inequality, q >= 1. "
        "For q = 1/2 and the class of the zero and the identity matrix of order 2, B_x = 1 and "
        "epsilon = 3/2, one centre is enough on e_1 and e_2 and not at (1/2, 1/2)."
    ),
    claim=f"{_PAPER}/lemma-3-2-small-q",
)

ORIENTATION = Erratum(
    paper=_PAPER,
    locator="Lemmas 3.4 and 3.5",
    kind=ErratumClass.REFUTED,
    text=(
        "||W||_{2,1} is the sum of the lengths of columns in section 2.1. With it both lemmas are "
        "false: for d = 1 the class is a ball in R^k, and its covers have at least "
        "(B_w B_x / epsilon)^k centres, k = 64 and B_w B_x / epsilon = 2 give 44.4 against 16.6, "
        "and no hidden constant or logarithm helps. Edelman et al. bound the transpose, the sum "
        "of the lengths of rows: with it the lemmas hold, and the log is that of 2 k N + 1."
    ),
    claim=f"{_PAPER}/lemma-3-4-printed",
)

CEILING = Erratum(
    paper=_PAPER,
    locator="Lemmas 3.3 and 3.6, proofs",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        "Maurey's lemma takes a whole number of terms, ceil(B_w^2 B_x^2 / epsilon^2), and the "
        "proofs drop the ceiling, which just below epsilon = B_w B_x doubles the size. The lemmas "
        "hold as printed by another cover: greedy steps of lengths 1/2, 1/4, 3/16, ... reach a "
        "squared distance of 1 / (K + 3) after K steps."
    ),
    claim=f"{_PAPER}/lemma-3-6",
)

OPEN_CONSTANT = Erratum(
    paper=_PAPER,
    locator="Section 2.4 (Dudley) and Theorem 4.1",
    kind=ErratumClass.GAP,
    text=(
        "The constant c is left open and every bound is an O(...), so that no number follows from "
        "the paper. c is at least 1 / sqrt(ln 2) = 1.201 (all sign patterns), and the explicit "
        "form has 2.414 delta + 8.243 / sqrt(m) times the integral. In Appendix C the first "
        "integral lacks 1 / m under 4 B_x^4 C / epsilon^2."
    ),
    claim=f"{_PAPER}/dudley-tree",
)

LOST_FACTOR = Erratum(
    paper=_PAPER,
    locator="Appendix C, first display",
    kind=ErratumClass.TYPO,
    text=(
        "'v' u <= B_v max_j |e_j u| = max_{j,s} s e_j u' loses B_v in its last expression; the "
        "proof carries the factor. The powers of Appendix A lack absolute values."
    ),
    claim=f"{_PAPER}/appendix-c-norms",
)

COLUMNS = Erratum(
    paper=_PAPER,
    locator="Appendix B, proof of Lemma 3.2",
    kind=ErratumClass.TYPO,
    text=(
        "The proof expands (W - W^) x as a sum over x_i (W_i - W^_i), and W_i is a row by section "
        "2.1; the columns W_{:,i} are meant."
    ),
    claim=f"{_PAPER}/lemma-3-2-distance",
)
