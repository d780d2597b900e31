"""Flaws of the deep bound and of section 5, with the claims that show them."""

from attlas.core.claim import Erratum, ErratumClass

_PAPER = "trauger2023sequence"

GAMMA = Erratum(
    paper=_PAPER,
    locator="Theorem 4.2, Corollaries 4.2.1, F.0.1 and F.0.2",
    kind=ErratumClass.REFUTED,
    text=(
        "gamma and eta are not the optimum of Lemma E.1 for the theorem's own recursion: the "
        "third terms have B_v2 where B_c2 belongs, and gamma lacks the term of the first W_c and "
        "alpha_1 in that of the first W_v. With B_c = 2 and all else 1 the entropy is 2.5, 4.4 "
        "and 5.1 times the printed one at 1, 2 and 4 layers. All three corollaries inherit it."
    ),
    claim=f"{_PAPER}/theorem-4-2-printed",
)

FIRST_QUERY_KEY = Erratum(
    paper=_PAPER,
    locator="Lemma E.2 and Theorem 4.2 at the first layer",
    kind=ErratumClass.REFUTED,
    text=(
        "For B_x > 1 the cost of the first W_QK lacks a factor B_x^2 besides the B_x in its "
        "cover: keys and values are tokens of norm B_x. The factor is attained (16 at B_x = 4), "
        "with 1 for the softmax. Right for B_x <= 1, as in Edelman et al."
    ),
    claim=f"{_PAPER}/lemma-e-2-first-layer",
)

FIRST_VALUE = Erratum(
    paper=_PAPER,
    locator="Theorem 4.2, cover of the first W_v",
    kind=ErratumClass.REFUTED,
    text=(
        "The first W_v acts on tokens of norm B_x and needs C_Bx like the first W_QK; C_1 is "
        "printed. Right for B_x <= 1."
    ),
    claim=f"{_PAPER}/theorem-4-2-first-values",
)

OUTPUT_REACH = Erratum(
    paper=_PAPER,
    locator="Theorem 4.2, cover of W_c",
    kind=ErratumClass.REFUTED,
    text=(
        "W_c acts on sigma of unit rows, whose norm is up to L_sigma: its cover is needed on "
        "inputs of norm L_sigma, C_1 max(1, L_sigma^2). Right for L_sigma <= 1."
    ),
    claim=f"{_PAPER}/theorem-4-2-output-reach",
)

ROWS = Erratum(
    paper=_PAPER,
    locator="Corollaries F.0.1 and F.0.2, inputs of inner layers",
    kind=ErratumClass.REFUTED,
    text=(
        "Lemmas 3.3 and 3.4 cover inputs with ||x||_1 <= B_x, but behind Pi_norm only "
        "||x||_2 <= 1 is known: ||x||_1 may be sqrt(d), which costs a factor d in the entropy."
    ),
    claim=f"{_PAPER}/corollary-f-0-rows",
)

LOGARITHM = Erratum(
    paper=_PAPER,
    locator="Corollaries 4.2.1 and F.0.1, logarithms",
    kind=ErratumClass.GAP,
    text=(
        "W_QK is d x d: its cover has ln(2d^2+1) and d ln(2d+1), which ln(2dk+1) and d ln(2k+1) "
        "do not reach where k < d. Right with max(d, k) for k."
    ),
    claim=f"{_PAPER}/corollary-4-2-1",
)

HEADS = Erratum(
    paper=_PAPER,
    locator="Section 4.3, dependence H^1.5",
    kind=ErratumClass.GAP,
    text=(
        "H^1.5 is right for one layer. In L layers heads of equal norms also multiply the "
        "amplification of every layer below: alpha_i gains H^(L-i), the complexity H^(L+1/2). "
        "H^1.5 is left only where the norms of a layer's heads add up to a fixed number."
    ),
    claim=f"{_PAPER}/section-4-3-heads-deep",
)

SWAPPED_COVERS = Erratum(
    paper=_PAPER,
    locator="Appendix E, the covers",
    kind=ErratumClass.TYPO,
    text=(
        "The text covers {x -> W_QK' x} under the name of W_c and {x -> W_c' x} under that of W_QK."
    ),
)

MASKED_FACTOR = Erratum(
    paper=_PAPER,
    locator="Theorem 5.1",
    kind=ErratumClass.GAP,
    text=(
        "The contraction pays sqrt(K), up to logarithms and an unknown constant, on the whole "
        "network. It is needed on the readout, whose rows are free for each word, but a cover of "
        "the scores pays for the network below once, at twice the cost."
    ),
    claim=f"{_PAPER}/theorem-5-1-recursion",
)
