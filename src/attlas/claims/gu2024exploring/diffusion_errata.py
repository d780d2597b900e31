"""Flaws of section 6 as text, with the class of each and the claim that shows it."""

from attlas.core.claim import Erratum, ErratumClass

_PAPER = "gu2024exploring"

SCORE_BOUND = Erratum(
    paper=_PAPER,
    locator="Theorem 6.6",
    kind=ErratumClass.VACUITY,
    text=(
        "On 8 samples of planar mixtures, with hidden constants 1 and even $C = 1$, the width is "
        r"$10^{21}$ to $10^{60}$. The bound itself, as recalled, is 350 to $3 \cdot 10^6$: "
        r"$1/(\lambda \sqrt n)$ and $\Gamma$ each exceed the error of the zero function, which is "
        r"at most 1 by Assumption 6.1. $\Gamma$ falls below 1 at $n = 1.3 \cdot 10^5$ for $d = 2$, "
        r"$1.2 \cdot 10^8$ for $d = 8$."
    ),
    claim=f"{_PAPER}/theorem-6-6-any-width",
)

COUPLING = Erratum(
    paper=_PAPER,
    locator="Claim G.1 and Theorem 6.6, the coupling",
    kind=ErratumClass.GAP,
    text=(
        "What the paper adds to its source is the coupling of network and kernel. Measured, it is "
        r"the one term that does not matter: about $5 \cdot 10^{-8}$ at width 64, where the label "
        "mismatch is 0.1. It falls like $m^{-4}$ (widths 8 to 128), but in the theorem a larger "
        "width does not lessen it."
    ),
    claim=f"{_PAPER}/claim-g-1",
)

INTERVALS = Erratum(
    paper=_PAPER,
    locator="Section 6.1, (5) and (6)",
    kind=ErratumClass.GAP,
    text=(
        "(6) is said to be equivalent to (5), but integrates over $[T_0, T]$ where (5) has "
        "$[0, T]$. At each time their difference does not depend on $s$, so that they are "
        "equivalent on one interval; it grows as $1/t$ towards $t = 0$, and (6) on $[0, T]$ would "
        r"be infinite unless $\lambda(t)$ vanishes there."
    ),
    claim=f"{_PAPER}/denoising-score-matching",
)
