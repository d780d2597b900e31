"""Flaws of sections 4.1 and 4.2 and appendix C as text, with the claims that show them."""

from functools import partial

from attlas.claims.claim import Erratum, ErratumClass

_flaw = partial(Erratum, "liu2021analyzing")

NO_BIASES = _flaw(
    "Theorem 4",
    ErratumClass.GAP,
    "Section 2's model has no biases, the proof's units have; with biases the theorem holds, and "
    r"the construction has $(\lfloor n_1 / s_0 \rfloor + 1)^{s_0}$ regions of a maximum of "
    r"$\sum_{j \le s_0} \binom{n_1}{j}$. For the model as printed all hyperplanes meet at 0, the "
    r"maximum is $2 \sum_{j < s_0} \binom{n_1 - 1}{j}$, and $\lfloor n_1 / s_0 \rfloor^{s_0}$ "
    "exceeds it: $3 > 2$ at $s_0 = 1$, $n_1 = 3$, and $25 > 20$ at $s_0 = 2$, $n_1 = 10$.",
    claim="liu2021analyzing/theorem-4",
)

LOWER_BOUNDS = _flaw(
    "Section 4.1 and appendix C.1, comparison of the bounds",
    ErratumClass.INVALID_PROOF,
    "'In general, we see the bound of attention model is smaller than the one of baseline model' "
    "compares lower bounds of two maxima, which does not order the maxima. 'In general' may allow "
    "exceptions, and without rounding C.1 is right; rounded down the bound is not monotone in "
    "$s_0$: at $n_1 = 200$ it is $10^{30.1}$, $10^{22.0}$ and $10^{30.1}$ for $s_0 = 50$, 73 and "
    "100. The conclusion stands: the maxima grow with $s_0$ (claim theorem-4-monotone), for "
    "weights that do not depend on $x$.",
    claim="liu2021analyzing/theorem-4-comparison",
)

HARD_ATTENTION = _flaw(
    "Section 4.1, attention reduces the number of regions",
    ErratumClass.GAP,
    "The proof omits 'the inputs with corresponding $a_i = 0$' as if they were the same for every "
    "$x$, and for such a mask the theorem holds. For a softmax of $x$ the function has no linear "
    "regions (theorem-4-soft-attention) and no weight is 0; for hard attention to the largest of "
    "$p$ inputs one unit makes $p + 1$ regions, against 2 without attention.",
    claim="liu2021analyzing/theorem-4-hard-attention",
)

BREAKPOINTS = _flaw(
    "Proof of Theorem 4, intervals",
    ErratumClass.TYPO,
    r"The units $\max(0, 2 w x - (i - 1))$ have breakpoints $(i - 1) / 2$, not $i - 1$; $q$ units "
    "make $q + 1$ pieces, not $q$; the bounded pieces are mapped onto $(0, 1/2)$, not $(0, 1)$. "
    "The theorem only gains by it (claim theorem-4-construction).",
    claim="liu2021analyzing/theorem-4-breakpoints",
)

CLOSE_TO_P = _flaw(
    "Appendix C.1",
    ErratumClass.TYPO,
    "'$p / (p - s_0)$ is close to $p$ when $s_0$ is relatively small': right of $p$ to this power, "
    r"$p^{p / (p - s_0)}$, the width from which on C.1's inequality gives its condition. It is "
    r"between $p$ and $e p$ for $s_0 \le p / (1 + \log p)$. Our text of the appendix has lost "
    "formulas and sets exponents on the line, so that the paper may print this. Of the fraction "
    r"itself, as our text has it, 'close to 1' is right. The bound $p \log p / (p - s_0)$ is loose "
    r"for large $s_0$; $1 + \log p$ holds for all (appendix-c-1-sharp).",
    claim="liu2021analyzing/appendix-c-1-power",
)

SOFTPLUS = _flaw(
    "Section 2 and Theorem 5, softplus for ReLU",
    ErratumClass.GAP,
    r"$T_\alpha$ leaves the function unchanged for exactly homogeneous activations only. Theorem "
    r"5 says ReLU and is right; section 2 has 'we still use $\phi(x)$ to denote the softplus' and "
    r"results that hold 'for any arbitrarily large $\tau_0$'. There $T_\alpha$ multiplies the "
    r"sharpness $\tau_0$ by $\alpha$: for $\alpha \to 0$ the outputs diverge and the orbit leaves "
    r"every flat set, unless $\sum_i w^{(2)}_i = 0$; for $\alpha > 1$ it tends to the ReLU "
    r"network, and the infinite volume remains once $\epsilon$ exceeds the difference of the two "
    "risks.",
    claim="liu2021analyzing/theorem-5-softplus",
)

VOLUME = _flaw(
    "Proof of Theorem 5, volume",
    ErratumClass.GAP,
    r"'Since $p d_v d \ge d$, the determinant goes to infinity' fails for $p d_v = 1$, where it "
    "is 1; and the volume of one image of a neighbourhood is not yet that of the flat set. Fixed: "
    r"the orbit lies in the set, so that $T_\alpha$ maps the set onto itself, and its volume, "
    r"which is positive, equals $\alpha^{(p d_v - 1) d}$ times itself; for $p d_v = 1$ the orbit "
    "has infinitely many disjoint images of one ball.",
    claim="liu2021analyzing/theorem-5-jacobian",
)

DEAD_UNITS = _flaw(
    "Proof of Theorem 5, Hessian",
    ErratumClass.GAP,
    "The proof assumes a positive diagonal element of the Hessian in $w^{(1)}$; weights that are "
    "not zero do not give one: units that are off on all samples have none.",
    claim="liu2021analyzing/theorem-5-dead-units",
)

ALMOST_SURELY = _flaw(
    "Appendix C.3 after Theorem 7, 'almost surely'",
    ErratumClass.INVALID_PROOF,
    r"'The linear dependence of $\langle w^{(1)}, x_i a \rangle$ holds with measure zero ... thus "
    "after the nonlinear activation': the arguments have rank $p d_v$ at most, whatever "
    r"$d \ge n$, so that the rank cannot come from them. With the softplus of section 2 the "
    "conclusion holds if no two attended values are equal or opposite (theorem-7-softplus-rank); "
    "with ReLU the features of an open set of first layers have rank 0 (theorem-7-almost-surely). "
    "It does not help either way: stationary points are a null set. Copies of one unit are "
    "stationary in a network of any width, with rank 1 and a loss (control of theorem-7).",
    claim="liu2021analyzing/theorem-7-preactivation",
)
