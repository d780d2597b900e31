"""Flaws of section 6 as text, with the class of each and the claim that shows it."""

from attlas.claims.claim import Erratum, ErratumClass

_PAPER = "gu2024exploring"

SCORE_BOUND = Erratum(
    paper=_PAPER,
    locator="Theorem 6.6",
    kind=ErratumClass.VACUITY,
    text=(
        "Read as orders in $n$, the terms fall as they should. "
        "On 5 to 16 samples of mixtures, with hidden constants 1 and even $C = 1$, the width is "
        r"$10^{15}$ to $10^{69}$. The bound itself, as recalled, is 200 to $10^{10}$: "
        r"$1/(\lambda \sqrt n)$ and $\Gamma$ each exceed the error of the zero function, which is "
        r"at most 1 by Assumption 6.1. $\Gamma$ falls below 1 at $n = 1.3 \cdot 10^5$ for $d = 2$, "
        r"$1.2 \cdot 10^8$ for $d = 8$."
    ),
    claim=f"{_PAPER}/theorem-6-6-any-width",
)

INTERVALS = Erratum(
    paper=_PAPER,
    locator="Section 6.1, (5) and (6)",
    kind=ErratumClass.GAP,
    text=(
        "'Equivalently, we minimize': at each time the two differ by a number without $s$, so "
        "that they are equivalent on one interval, which is how the sentence is meant. As they "
        "stand, (5) integrates over $[0, T]$ and (6) over $[T_0, T]$; the difference grows as "
        r"$1/t$ towards $t = 0$, and (6) on $[0, T]$ would be infinite unless $\lambda(t)$ "
        "vanishes there."
    ),
    claim=f"{_PAPER}/denoising-score-matching",
)
