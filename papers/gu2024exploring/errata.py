"""Flaws of the definitions, the kernel, the width and Section 6, and the claims that show them."""

from attlas.claims.claim import Erratum, ErratumClass

_PAPER = "gu2024exploring"

WIDTH = Erratum(
    paper=_PAPER,
    locator="Theorem 4.2, the width",
    kind=ErratumClass.VACUITY,
    text=(
        r"Read as an order in $nd$ at fixed $\delta$, $\sigma$, $e^{18B}$ is $(nd)^{o(1)}$ and "
        r"'$n^{2+o(1)}$' is right. With every hidden constant 1, even with $C = 1$ in place of "
        r"$C > 10$, $\sigma = 1$, $\delta = 0.1$ and $\lambda = 0.1$ the width is "
        r"$1.8 \cdot 10^{23}$ ($n = 5$, $d = 3$), "
        r"$1.1 \cdot 10^{24}$ ($n = 10$, $d = 2$), $4.5 \cdot 10^{33}$ ($n = 100$, $d = 10$). With "
        r"$C = 10$ it is $5 \cdot 10^{180}$, $10^{186}$, $10^{247}$, and with a $B$ that holds for "
        r"all units $10^{294}$, $10^{295}$, $10^{303}$: the limit is one that no data reach."
    ),
    claim=f"{_PAPER}/b-of-the-width",
)

SMALLEST_EIGENVALUE = Erratum(
    paper=_PAPER,
    locator=r"Theorem 4.2, $\lambda > 0$ 'as in previous works'",
    kind=ErratumClass.VACUITY,
    text=(
        r"In a dimension that grows with $n$ the least eigenvalue may stay of order 1, as for "
        r"orthogonal inputs. In a fixed one $\lambda$ is positive but tiny, and falls faster than "
        r"any power of $n$: below 0.031, $1.2 \cdot 10^{-7}$, $6.6 \cdot 10^{-22}$ for any 10, 20, "
        r"40 unit inputs in the plane at $\sigma = 1$. Width and steps proportional to "
        r"$\lambda^{-2}$ are then not polynomial in $n$."
    ),
    claim=f"{_PAPER}/smallest-eigenvalue",
)

B_WITHOUT_WIDTH = Erratum(
    paper=_PAPER,
    locator="Definition 4.1 and Lemma B.1, Part 1",
    kind=ErratumClass.INVALID_PROOF,
    text=(
        r"$B = \max\{C \sigma \sqrt{\log(nd/\delta)}, 1\}$, $C > 10$, is to bound "
        r"$|\langle w_r, x_i \rangle|$ for all $m$ units. Read as 'there is a sufficiently large "
        r"$C$' it bounds them while $m$ is below $\exp(B^2 / (2 \sigma^2))$, and for any one $m$ "
        r"some $C$ is large enough. Theorem 4.2 is for every $m$ above its width: at any fixed $C$ "
        r"the probability tends to 0 as $m \to \infty$, so that the event of the proof is lost, "
        r"while the theorem may well be true. $\sigma \sqrt{2 \log(nm / (2 \delta))}$ is right; it "
        r"makes the width the solution of an equation: $B \ge 35 \sigma^2$, "
        r"$m \ge \exp(630 \sigma^2)$."
    ),
    claim=f"{_PAPER}/lemma-b-1-part-1-printed",
)

NOISY_INPUTS = Erratum(
    paper=_PAPER,
    locator="Assumption 6.1",
    kind=ErratumClass.GAP,
    text=(
        r"'Based on normalization, we assume' $\|x_i\| \le 1$ of the noisy inputs $x(t)$, which "
        "are Gaussian given $x(0)$: dividing by the largest of the training set satisfies it. "
        "That scale depends on the sample, and a new input exceeds it with probability "
        r"$1/(n+1)$. The paper does not say how much the division lowers $\lambda$."
    ),
    claim=f"{_PAPER}/assumption-6-1",
)

MOVED_GAUSSIAN = Erratum(
    paper=_PAPER,
    locator="Lemma B.1, Parts 2 and 5",
    kind=ErratumClass.GAP,
    text=(
        r"'Let $w$ and $\tilde w$ be random Gaussian vectors', and parts 2 and 5 'by Gaussian tail "
        r"bound': true as we reconstruct it. The lemma is used for trained weights "
        r"$\tilde w$, which are not Gaussian; for them part 3 gives what is needed, "
        r"$B + R$ in place of $B$."
    ),
    claim=f"{_PAPER}/lemma-b-1-part-2",
)

CONCENTRATION = Erratum(
    paper=_PAPER,
    locator="Lemmas E.3 and E.4",
    kind=ErratumClass.GAP,
    text=(
        "'We can use concentration': Hoeffding and Hanson-Wright are applied to the second layer "
        r"at time $\tau$. At the start the pairs are independent; later the softmax depends on "
        "their signs through training, and independence is not argued in the text that we could "
        "read, whose formulas are lost. lemma-e-3-sharp and lemma-e-4-sharp need no probability."
    ),
    claim=f"{_PAPER}/lemma-e-3-sharp",
)


SCORE_BOUND = Erratum(
    paper=_PAPER,
    locator="Theorem 6.6",
    kind=ErratumClass.VACUITY,
    text=(
        "Read as orders in $n$, the terms fall as they should. "
        "On 5 to 16 samples of mixtures, with hidden constants 1 and even $C = 1$, the width is "
        r"above $10^{12}$ for $\lambda \le 1$. The bound itself, as recalled, is vacuous: "
        r"$1/(\lambda \sqrt n)$ and $\Gamma$ each exceed the error of the zero function, which is "
        r"at most 1 by Assumption 6.1. $\Gamma$ falls below 1 at $n = 1.35 \cdot 10^5$ for "
        r"$d = 2$, $1.24 \cdot 10^8$ for $d = 8$."
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
