r"""Sample sizes of liu2021analyzing, as printed and with every constant.

notation.md explains the letters. The "printed" bounds have a hidden constant c and, in Theorems 1
and 2, neither C_x nor `Conditions`. The proved bounds ("corrected" and "sharp" are the same here)
have no hidden constant, need both, and do not depend on how concentrated the attention is.
"""

import math
from collections.abc import Mapping

from attlas.bounds.closed_form import closed_form
from attlas.bounds.constants import Constants, require_constants
from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least, require_positive
from liu2021analyzing.library.bounds import liu2021_printed as printed
from liu2021analyzing.library.bounds.liu2021_union_bound import (
    Block,
    Conditions,
    liu2021_sample_size,
)


@closed_form
def liu2021_attention(
    p: int,
    d: int,
    gamma: float,
    norms: tuple[float, float, float],
    conditions: Conditions | None = None,
    *,
    s0: int | None = None,
    tau: float = 0.0,
    weight_norm: float = 1.0,
    c: float = 1.0,
    constants: Constants = "sharp",
) -> float:
    r"""Theorem 1: attention weights known, s0 of them holding all but tau of their l2 norm.

    $$c\,(\sqrt{s_0}+\tau\sqrt p)^4\frac{\eta^2}{\gamma^2}
    \log\frac{(\sqrt{s_0}+\tau\sqrt p)\eta}\gamma(pd+d),\qquad\eta=C_1^2C_2\qquad
    \text{(printed)}$$

    The proof's eta has a factor C_x^2 that the statement drops; the factor before eta is an
    artefact: ||x o f||_2 <= C_x whenever ||f||_2 <= 1. What is proved is `liu2021_sample_size`
    with features bounded by C_1 C_x ||f||_2.

    Args:
        p: inputs that may count: all, or a known support of s0.
        norms: C_x, C_1, C_2.
        conditions: assumptions on the features; ignored by the printed bound.
        s0: number of weights that count, in the printed bound; all p when None, 0 with tau = 1 for
            equal weights.
        tau: share of the norm on the other weights, in the printed bound.
        weight_norm: bound on ||f(x)||_2, ignored by the printed bound: 1 for any distribution,
            1/sqrt(p) for equal weights, sqrt(p) for no attention at all.
        c: hidden constant of the printed bound.
        constants: "printed", or what is proved.

    Returns:
        The sample size, not rounded; the printed one is negative where its logarithm is.

    Source: Theorem 1 of liu2021analyzing (found); corrected (derived).

    Examples:
        A known support of 11 inputs saves parameters:

        >>> one, known = (1.0, 1.0, 1.0), Conditions(smallest=1.0)
        >>> all_, few = (liu2021_attention(p, 10, 0.1, one, known) for p in (130, 11))
        >>> print(f"{all_ / few:.1f}")
        10.9
    """
    C_x, C_1, C_2 = norms
    positive = {"gamma": gamma, "C_x": C_x, "C_1": C_1, "C_2": C_2, "c": c}
    if _is_printed(constants, {"p": p, "d": d}, positive | {"weight_norm": weight_norm}):
        s0 = _support(p, s0, tau)
        return c * float(printed.printed_attention(p, d, gamma, C_1, C_2, s0, tau))
    return _proved(C_1 * C_x * weight_norm, C_2, d, [Block(p * d)], gamma, conditions)


@closed_form
def liu2021_baseline(
    p: int,
    d: int,
    gamma: float,
    norms: tuple[float, float, float],
    conditions: Conditions | None = None,
    *,
    c: float = 1.0,
    constants: Constants = "sharp",
) -> float:
    r"""Corollary 1: all weights 1/sqrt(p).

    $$c\,p^2\frac{\eta^2}{\gamma^2}\log\frac{p\eta}\gamma(pd+d),\qquad\eta=C_1^2C_2\qquad
    \text{(printed)}$$

    Theorem 1 at s0 = 0, tau = 1 has sqrt(p) in the logarithm. What is proved is the same as for
    any other weights of norm one.

    Args:
        norms: C_x, C_1, C_2.
        conditions: assumptions on the features; ignored by the printed bound.
        c: hidden constant of the printed bound.
        constants: "printed", or what is proved.

    Source: Corollary 1 of liu2021analyzing (found); corrected (derived).

    Examples:
        The printed advantage of 11 concentrated weights of 130 is p^2 / s0^2 = 139.7:

        >>> norms, printed = (1.0, 1.0, math.e), "printed"
        >>> few = liu2021_attention(130, 1, 1.0, norms, s0=11, constants=printed)
        >>> all_ = liu2021_baseline(130, 1, 1.0, norms, constants=printed)
        >>> print(f"{all_ / few / (1 + math.log(130)) * (1 + math.log(11) / 2):.1f}")
        139.7
    """
    C_x, C_1, C_2 = norms
    positive = {"gamma": gamma, "C_x": C_x, "C_1": C_1, "C_2": C_2, "c": c}
    if not _is_printed(constants, {"p": p, "d": d}, positive):
        return liu2021_attention(p, d, gamma, norms, conditions, constants=constants)
    return c * float(printed.printed_baseline(p, d, gamma, C_1, C_2))


@closed_form
def liu2021_self_attention(
    sizes: tuple[int, int, int, int, int],
    gamma: float,
    norms: tuple[float, float, float, float, float, float, float],
    conditions: Conditions | None = None,
    *,
    s0: int | None = None,
    tau: float = 0.0,
    c: float = 1.0,
    constants: Constants = "sharp",
) -> float:
    r"""Theorem 2: self-attention that is learned.

    $$c\,k^2\,pd_vd\frac{\eta_a^2}{\gamma^2}\log\frac{k\,\eta_a\eta_b}\gamma,\qquad
    k=(\sqrt{s_0}+\tau\sqrt p)^2+\sqrt p\,t,\ \eta_a=C_1^2C_2C_8,\ \eta_b=C_5+C_6\qquad
    \text{(printed)}$$

    sqrt(p) t dominates k; w_Q, w_K and w_V are not counted among the parameters. What is proved
    has B = C_1 C_7 C_x sqrt(p t) and counts all of them: queries and keys move the attention
    weights by at most C_5 C_6 t C_x^2 / sqrt(d_q) in l1 for a change as large as their balls, for
    softmax is 1-Lipschitz from l_inf to l1.

    Args:
        sizes: p words, t entries of each, d hidden units, d_v of a value, d_q of a query.
        norms: C_x, C_1, C_2, C_5, C_6, C_7, C_8, Frobenius norms from C_1 to C_7.
        conditions: assumptions on the features; ignored by the printed bound.
        s0: number of weights that count, in the printed bound; all p when None.
        tau: share of the norm on the other weights, in the printed bound.
        c: hidden constant of the printed bound.
        constants: "printed", or what is proved.

    Returns:
        The sample size; what is proved does not depend on the concentration of the weights.

    Source: Theorem 2 of liu2021analyzing (found); corrected (derived).

    Examples:
        >>> ones = (1.0,) * 7
        >>> narrow, wide = (liu2021_self_attention((4, 3, 5, 3, q), 0.1, ones, Conditions(1.0))
        ...                 for q in (3, 12))
        >>> 1 < wide / narrow < 2
        True
    """
    p, t, d, d_v, d_q = sizes
    C_x, C_1, C_2, C_5, C_6, C_7, C_8 = norms
    named = ("C_x", "C_1", "C_2", "C_5", "C_6", "C_7", "C_8")
    positive = {"gamma": gamma, "c": c, **dict(zip(named, norms, strict=True))}
    if _is_printed(constants, {"p": p, "t": t, "d": d, "d_v": d_v, "d_q": d_q}, positive):
        layers, s0 = (C_1, C_2, C_5, C_6, C_8), _support(p, s0, tau)
        return c * float(printed.printed_self_attention((p, t, d, d_v), gamma, layers, s0, tau))
    stretch = C_5 * C_6 * t * C_x**2 / math.sqrt(d_q)
    blocks = [Block(p * d_v * d), Block(d_v * t), Block(t * d_q, stretch), Block(t * d_q, stretch)]
    return _proved(C_1 * C_7 * C_x * math.sqrt(p * t), C_2, d, blocks, gamma, conditions)


@closed_form
def liu2021_deep(
    gamma: float,
    c_k: float,
    parameters: int,
    margin: float = 1.0,
    c: float = 1.0,
    *,
    constants: Constants = "sharp",
) -> float:
    r"""Theorem 3: D layers.

    $$c\,\log\Big(\frac{c_K}\gamma\Big)P\text{ (printed)},\quad
    c\,\frac{c_K}{m^2\gamma^2}\log\Big(\frac{c_K}{m\gamma}\Big)P\text{ (corrected)},\quad
    P=d_{self}+D(d_k+d_v)q_k$$

    The proof's own tail bound exp(-n m^2 gamma^2 / c_K) needs the second.

    Args:
        c_k: Lipschitz constant of the gradient of the network, c_K of the tail bound.
        parameters: number P of parameters.
        margin: m of (A6), where the gradient exceeds m gamma; ignored by the printed bound.
        constants: "printed", or what the proof gives.

    Returns:
        The order of the sample size; (A6) is an assumption on the result, so that constants
        would mean little.

    Source: Theorem 3 of liu2021analyzing (found); corrected by its proof.

    Examples:
        >>> [liu2021_deep(1.0, math.e, 7, constants=name) / 7 for name in ("printed", "sharp")]
        [1.0, 2.718281828459045]
    """
    positive = {"gamma": gamma, "c_k": c_k, "margin": margin, "c": c}
    if _is_printed(constants, {"parameters": parameters}, positive):
        return c * float(printed.printed_deep(gamma, c_k, parameters))
    level = margin * gamma
    return c * c_k / level**2 * math.log(c_k / level) * parameters


@closed_form
def liu2021_recurrent(
    sizes: tuple[int, int, int, int],
    gamma: float,
    norms: tuple[float, float, float],
    stretches: tuple[float, float],
    conditions: Conditions | None = None,
    *,
    c: float = 1.0,
    constants: Constants = "sharp",
) -> float:
    r"""Theorem 6: recurrent attention.

    $$c\frac{C_1^2C_x^2\eta^2}{\gamma^2}\log\frac{\eta C_8C_9}\gamma(td+d+d_a+d_f),\qquad
    \eta=C_1C_2C_x\qquad\text{(printed)}$$

    What is proved has B = C_1 C_x sqrt(t), a context being a mean of words.

    Args:
        sizes: t entries per word, d hidden units, d_a and d_f parameters of score and update.
        norms: C_x, C_1, C_2.
        stretches: l1 change of the attention weights for a change of the parameters of score
            and update as large as their balls; the print has the radii C_8 and C_9 alone.
        conditions: assumptions on the features; ignored by the printed bound.
        c: hidden constant of the printed bound.
        constants: "printed", or what is proved.

    Source: Theorem 6 of liu2021analyzing (found); corrected (derived).

    Examples:
        >>> sizes, one = (2, 1, 1, 1), (1.0, 1.0, 1.0)
        >>> liu2021_recurrent(sizes, 1.0, one, (math.e, 1.0), constants="printed")
        5.0
        >>> liu2021_recurrent(sizes, 1.0, one, (math.e, 1.0), Conditions(1.0)) > 1000
        True
    """
    (t, d, d_a, d_f), (C_x, C_1, C_2), (C_8, C_9) = sizes, norms, stretches
    positive = {"gamma": gamma, "C_x": C_x, "C_1": C_1, "C_2": C_2, "C_8": C_8, "C_9": C_9, "c": c}
    require_at_least(0, d_a=d_a, d_f=d_f)
    if _is_printed(constants, {"t": t, "d": d}, positive):
        return c * float(printed.printed_recurrent(sizes, gamma, norms, stretches))
    blocks = [Block(t * d), Block(d_a, C_8), Block(d_f, C_9)]
    return _proved(C_1 * C_x * math.sqrt(t), C_2, d, blocks, gamma, conditions)


@closed_form
def liu2021_mask(
    p: int,
    d: int,
    s0: int,
    gamma: float,
    norms: tuple[float, float, float],
    conditions: Conditions | None = None,
    *,
    c: float = 1.0,
    constants: Constants = "sharp",
) -> float:
    r"""Lemma 1: one mask in [0, 1]^p for all samples, learned, with s0 entries that are not 0.

    $$c\frac{s_0^2C_1^2C_x^2\eta^2}{\gamma^2}\log\frac{s_0\eta}\gamma(pd+p+d),\qquad
    \eta=C_1C_2C_x\qquad\text{(printed)}$$

    Here s0^2 is right, for masks are not normalised: what is proved has B = C_1 C_x sqrt(s0).

    Args:
        s0: entries of the mask that are not zero, at most p.
        norms: C_x, C_1, C_2.
        conditions: assumptions on the features; ignored by the printed bound.
        c: hidden constant of the printed bound.
        constants: "printed", or what is proved.

    Source: Lemma 1 of liu2021analyzing (found); corrected (derived).

    Examples:
        >>> liu2021_mask(1, 1, 1, 1.0, (1.0, 1.0, math.e), constants="printed") == 3 * math.e**2
        True
        >>> one, known = (1.0, 1.0, 1.0), Conditions(1.0)
        >>> 9 < liu2021_mask(9, 1, 9, 1.0, one, known) / liu2021_mask(9, 1, 3, 1.0, one, known) < 14
        True
    """
    C_x, C_1, C_2 = norms
    positive = {"gamma": gamma, "C_x": C_x, "C_1": C_1, "C_2": C_2, "c": c}
    as_printed = _is_printed(constants, {"p": p, "d": d}, positive)
    if not 1 <= s0 <= p:
        raise UserError(f"s0 = {s0} of p = {p} inputs: choose s0 from 1 to p")
    if as_printed:
        return c * float(printed.printed_mask(p, d, s0, gamma, norms))
    blocks = [Block(p * d), Block(p)]
    return _proved(C_1 * C_x * math.sqrt(s0), C_2, d, blocks, gamma, conditions)


def _is_printed(
    constants: Constants, sizes: Mapping[str, object], positive: Mapping[str, object]
) -> bool:
    """Whether the print is asked for, once the numbers of a theorem are checked."""
    require_constants(constants)
    require_at_least(1, **sizes)
    require_positive(**positive)
    return constants == "printed"


def _support(p: int, s0: int | None, tau: float) -> int:
    """The number of weights that count in the print, once it is checked; all p when None."""
    s0 = p if s0 is None else s0
    if not (0 <= s0 <= p and 0 <= tau <= 1 and s0 + tau > 0):
        raise UserError(
            f"s0 = {s0} of p = {p}, tau = {tau}: choose 0 <= s0 <= p, 0 <= tau <= 1, not both 0"
        )
    return s0


def _proved(
    features: float,
    C_2: float,
    d: int,
    blocks: list[Block],
    gamma: float,
    conditions: Conditions | None,
) -> float:
    if conditions is None:
        raise UserError(
            "conditions are missing: give conditions=Conditions(smallest=...), the smallest "
            'eigenvalue of the features\' covariance, or constants="printed"'
        )
    return liu2021_sample_size(features, C_2, d, blocks, gamma, conditions)
