"""Flaws of sections 4.1 and 4.2 and appendix C as text, with the claims that show them."""

from attlas.core.claim import Erratum, ErratumClass

_PAPER = "liu2021analyzing"

NO_BIASES = Erratum(
    paper=_PAPER,
    locator="Theorem 4",
    kind=ErratumClass.REFUTED,
    text=(
        "The model has no biases, the proof's units have. Without them all hyperplanes meet at 0, "
        "the maximum is 2 sum_{j < s0} C(n1 - 1, j), and floor(n1 / s0)^s0 exceeds it: 3 > 2 at "
        "s0 = 1, n1 = 3, and 25 > 20 at s0 = 2, n1 = 10. With biases the construction has "
        "(floor(n1 / s0) + 1)^s0 regions, and the maximum is sum_{j <= s0} C(n1, j)."
    ),
    claim=f"{_PAPER}/theorem-4",
)

LOWER_BOUNDS = Erratum(
    paper=_PAPER,
    locator="Section 4.1 and appendix C.1, comparison of the bounds",
    kind=ErratumClass.REFUTED,
    text=(
        "'The bound of attention model is smaller than the one of baseline model' compares lower "
        "bounds of two maxima, which says nothing about the maxima, and is false: the bound is "
        "not monotone in s0, because n1 / s0 is rounded down. At n1 = 200 it is 10^30.1, 10^22.0 "
        "and 10^30.1 for s0 = 50, 73 and 100. The maxima grow with s0, so that the conclusion "
        "holds for weights that do not depend on x."
    ),
    claim=f"{_PAPER}/theorem-4-comparison",
)

HARD_ATTENTION = Erratum(
    paper=_PAPER,
    locator="Section 4.1, attention reduces the number of regions",
    kind=ErratumClass.REFUTED,
    text=(
        "The proof leaves out the inputs with weight 0 as if they were the same for every x. For "
        "a softmax of x the function has no linear regions (theorem-4-soft-attention) and no "
        "weight is 0; for hard attention to the largest of p inputs one unit makes p + 1 regions, "
        "against 2 without attention."
    ),
    claim=f"{_PAPER}/theorem-4-hard-attention",
)

BREAKPOINTS = Erratum(
    paper=_PAPER,
    locator="Proof of Theorem 4, intervals",
    kind=ErratumClass.REFUTED,
    text=(
        "The units max(0, 2 w x - (i - 1)) have breakpoints (i - 1) / 2, not i - 1; q units make "
        "q + 1 pieces, not q; the bounded pieces are mapped onto (0, 1/2), not (0, 1)."
    ),
    claim=f"{_PAPER}/theorem-4-breakpoints",
)

CLOSE_TO_P = Erratum(
    paper=_PAPER,
    locator="Appendix C.1",
    kind=ErratumClass.TYPO,
    text=(
        "'p / (p - s0) is close to p when s0 is relatively small' must be 'close to 1'. The bound "
        "p log p / (p - s0) is loose for large s0; 1 + log p holds for all (appendix-c-1-sharp)."
    ),
    claim=f"{_PAPER}/appendix-c-1",
)

SOFTPLUS = Erratum(
    paper=_PAPER,
    locator="Section 2 and Theorem 5, softplus for ReLU",
    kind=ErratumClass.REFUTED,
    text=(
        "T_alpha leaves the function unchanged for exactly homogeneous activations only. Theorem 5 "
        "says ReLU and is right; section 2 says that phi is a softplus and that all results hold "
        "for it. There T_alpha multiplies the sharpness tau_0 by "
        "alpha: for alpha below 1 the orbit leaves every flat set, and with it go the sharp "
        "minima; for alpha above 1 it tends to the ReLU network, and the infinite volume remains "
        "once epsilon exceeds the difference of the two risks."
    ),
    claim=f"{_PAPER}/theorem-5-softplus",
)

VOLUME = Erratum(
    paper=_PAPER,
    locator="Proof of Theorem 5, volume",
    kind=ErratumClass.GAP,
    text=(
        "'Since p d_v d >= d, the determinant goes to infinity' fails for p d_v = 1, where it is "
        "1; and the volume of one image of a neighbourhood is not yet that of the flat set. "
        "Mended: the orbit lies in the set, so that T_alpha maps the set onto itself, and its "
        "volume, which is positive, equals alpha^((p d_v - 1) d) times itself; for p d_v = 1 the "
        "orbit has infinitely many disjoint images of one ball."
    ),
    claim=f"{_PAPER}/theorem-5-jacobian",
)

DEAD_UNITS = Erratum(
    paper=_PAPER,
    locator="Proof of Theorem 5, Hessian",
    kind=ErratumClass.GAP,
    text=(
        "The proof assumes a positive diagonal element of the Hessian in w1; weights that are not "
        "zero do not give one: units that are off on all samples have none."
    ),
    claim=f"{_PAPER}/theorem-5-dead-units",
)

ALMOST_SURELY = Erratum(
    paper=_PAPER,
    locator="Appendix C.3 after Theorem 7, 'almost surely'",
    kind=ErratumClass.REFUTED,
    text=(
        "The arguments of the features have rank p d_v at most, whatever d >= n, and with ReLU the "
        "features of an open set of first layers have rank 0 (theorem-7-almost-surely). True "
        "for softplus if no two attended values are equal or opposite. It does not help either "
        "way: stationary points are a null set. Copies of one unit are stationary in a network of "
        "any width, with rank 1 and a loss (control of theorem-7)."
    ),
    claim=f"{_PAPER}/theorem-7-preactivation",
)
