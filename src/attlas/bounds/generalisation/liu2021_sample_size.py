r"""Sample sizes of liu2021analyzing as printed; the hidden constant is an argument.

Symbols: C_x bounds the entries of x, C_1 and C_2 the norms of the two layers, C_5 and C_6 those
of query and key, C_8 the largest row sum of |w_V|; gamma^2 is the error allowed. What a proof
of these statements gives instead is in `attlas.bounds.generalisation.liu2021_corrected`.
"""

import math

from attlas.bounds.generalisation.conditions import require_at_least, require_positive
from attlas.core.errors import UserError


def liu2021_attention(
    p: int, d: int, s0: int, tau: float, gamma: float, C_1: float, C_2: float, c: float = 1.0
) -> float:
    r"""Theorem 1: attention weights known, s0 of them holding all but tau of their l2 norm.

    $$c\,(\sqrt{s_0}+\tau\sqrt p)^4\frac{\eta^2}{\gamma^2}
    \log\frac{(\sqrt{s_0}+\tau\sqrt p)\eta}\gamma(pd+d),\qquad\eta=C_1^2C_2$$

    The proof's eta has a factor C_x^2 that the statement drops; the factor before eta is an
    artefact: ||x o f||_2 <= C_x whenever ||f||_2 <= 1.

    Args:
        p: inputs.
        d: hidden units.
        s0: weights that count; 0 with tau = 1 for equal weights.
        tau: what the others hold.
        gamma: error allowed, not squared.
        C_1: norm of the first layer.
        C_2: norm of the second layer.
        c: hidden constant.

    Returns:
        The sample size, not rounded; negative where the logarithm is.

    Raises:
        UserError: if s0 is not in 0 ... p or tau not in [0, 1], or if both are 0.

    Source: Theorem 1 of liu2021analyzing (found).

    Examples:
        >>> same = dict(p=130, d=1, gamma=1.0, C_1=1.0, C_2=math.e)
        >>> few, all_ = liu2021_attention(s0=11, tau=0.0, **same), liu2021_baseline(**same)
        >>> print(f"{all_ / few / (1 + math.log(130)) * (1 + math.log(11) / 2):.1f}")
        139.7
    """
    require_positive(p=p, d=d, gamma=gamma, C_1=C_1, C_2=C_2, c=c)
    if not (0 <= s0 <= p and 0 <= tau <= 1 and s0 + tau > 0):
        raise UserError(
            f"s0 = {s0} of p = {p}, tau = {tau}: choose 0 <= s0 <= p, 0 <= tau <= 1, not both 0"
        )
    spread = math.sqrt(s0) + tau * math.sqrt(p)
    eta = C_1**2 * C_2
    return c * spread**4 * (eta / gamma) ** 2 * math.log(spread * eta / gamma) * (p * d + d)


def liu2021_baseline(p: int, d: int, gamma: float, C_1: float, C_2: float, c: float = 1.0) -> float:
    r"""Corollary 1: all weights 1/sqrt(p).

    $$c\,p^2\frac{\eta^2}{\gamma^2}\log\frac{p\eta}\gamma(pd+d),\qquad\eta=C_1^2C_2$$

    Args:
        p: inputs.
        d: hidden units.
        gamma: error allowed, not squared.
        C_1: norm of the first layer.
        C_2: norm of the second layer.
        c: hidden constant.

    Returns:
        The sample size. Theorem 1 at s0 = 0, tau = 1 has sqrt(p) in the logarithm.

    Source: Corollary 1 of liu2021analyzing (found).

    Examples:
        >>> print(f"{liu2021_baseline(2, 1, 1.0, 1.0, math.e / 2):.4f}")
        22.1672
    """
    require_positive(p=p, d=d, gamma=gamma, C_1=C_1, C_2=C_2, c=c)
    eta = C_1**2 * C_2
    return c * (p * eta / gamma) ** 2 * math.log(p * eta / gamma) * (p * d + d)


def liu2021_self_attention(
    p: int,
    t: int,
    d: int,
    d_v: int,
    s0: int,
    tau: float,
    gamma: float,
    norms: tuple[float, float, float, float, float],
    c: float = 1.0,
) -> float:
    r"""Theorem 2: self-attention that is learned.

    $$c\,k^2\,pd_vd\frac{\eta_a^2}{\gamma^2}\log\frac{k\,\eta_a\eta_b}\gamma,\qquad
    k=(\sqrt{s_0}+\tau\sqrt p)^2+\sqrt p\,t,\ \eta_a=C_1^2C_2C_8,\ \eta_b=C_5+C_6$$

    sqrt(p) t dominates k; w_Q, w_K and w_V are not counted among the parameters.

    Args:
        p: words.
        t: entries a word.
        d: hidden units.
        d_v: entries of a value.
        s0: weights that count.
        tau: what the others hold.
        gamma: error allowed, not squared.
        norms: C_1, C_2, C_5, C_6, C_8.
        c: hidden constant.

    Returns:
        The sample size.

    Raises:
        UserError: if s0 is not in 0 ... p or tau not in [0, 1].

    Source: Theorem 2 of liu2021analyzing (found).

    Examples:
        >>> ones = (1.0, 1.0, 1.0, 1.0, 1.0)
        >>> few, all_ = (liu2021_self_attention(130, 100, 1, 1, s0, 0.0, 1e-9, ones)
        ...              for s0 in (11, 130))
        >>> print(f"{all_ / few:.2f}")
        1.22
    """
    C_1, C_2, C_5, C_6, C_8 = norms
    require_positive(p=p, t=t, d=d, d_v=d_v, gamma=gamma, c=c)
    require_positive(C_1=C_1, C_2=C_2, C_5=C_5, C_6=C_6, C_8=C_8)
    if not (0 <= s0 <= p and 0 <= tau <= 1):
        raise UserError(f"s0 = {s0} of p = {p}, tau = {tau}: choose 0 <= s0 <= p, 0 <= tau <= 1")
    k = (math.sqrt(s0) + tau * math.sqrt(p)) ** 2 + math.sqrt(p) * t
    eta_a, eta_b = C_1**2 * C_2 * C_8, C_5 + C_6
    return c * (k * eta_a / gamma) ** 2 * p * d_v * d * math.log(k * eta_a * eta_b / gamma)


def liu2021_deep(gamma: float, c_k: float, parameters: int, c: float = 1.0) -> float:
    r"""Theorem 3: D layers.

    $$c\,\log\Big(\frac{c_k}\gamma\Big)(d_{self}+D(d_k+d_v)q_k)$$

    The proof's own tail bound exp(-n c^2 gamma^2 / c_K) needs a factor c_K / gamma^2 besides.

    Args:
        gamma: error allowed, not squared.
        c_k: Lipschitz constant of the gradient of the network.
        parameters: d_self + D (d_k + d_v) q_k.
        c: hidden constant.

    Returns:
        The sample size.

    Source: Theorem 3 of liu2021analyzing (found).

    Examples:
        >>> liu2021_deep(1.0, math.e, 7)
        7.0
    """
    require_positive(gamma=gamma, c_k=c_k, parameters=parameters, c=c)
    return c * math.log(c_k / gamma) * parameters


def liu2021_recurrent(
    t: int,
    d: int,
    d_a: int,
    d_f: int,
    gamma: float,
    norms: tuple[float, float, float, float, float],
    c: float = 1.0,
) -> float:
    r"""Theorem 6: recurrent attention.

    $$c\frac{C_1^2C_x^2\eta^2}{\gamma^2}\log\frac{\eta C_8C_9}\gamma(td+d+d_a+d_f),\qquad
    \eta=C_1C_2C_x$$

    Args:
        t: entries a word.
        d: hidden units.
        d_a: parameters of the score.
        d_f: parameters of the state's update.
        gamma: error allowed, not squared.
        norms: C_x, C_1, C_2, C_8, C_9; the last two of the parameters of score and update.
        c: hidden constant.

    Returns:
        The sample size.

    Source: Theorem 6 of liu2021analyzing (found).

    Examples:
        >>> liu2021_recurrent(2, 1, 1, 1, 1.0, (1.0, 1.0, 1.0, math.e, 1.0))
        5.0
    """
    C_x, C_1, C_2, C_8, C_9 = norms
    require_positive(t=t, d=d, gamma=gamma, c=c)
    require_positive(C_x=C_x, C_1=C_1, C_2=C_2, C_8=C_8, C_9=C_9)
    require_at_least(0, d_a=d_a, d_f=d_f)
    eta = C_1 * C_2 * C_x
    size = (C_1 * C_x * eta / gamma) ** 2
    return c * size * math.log(eta * C_8 * C_9 / gamma) * (t * d + d + d_a + d_f)


def liu2021_mask(
    p: int, d: int, s0: int, gamma: float, norms: tuple[float, float, float], c: float = 1.0
) -> float:
    r"""Lemma 1: one mask in [0, 1]^p for all samples, learned, with s0 entries that are not 0.

    $$c\frac{s_0^2C_1^2C_x^2\eta^2}{\gamma^2}\log\frac{s_0\eta}\gamma(pd+p+d),\qquad
    \eta=C_1C_2C_x$$

    Args:
        p: inputs.
        d: hidden units.
        s0: entries of the mask that are not zero, at most p.
        gamma: error allowed, not squared.
        norms: C_x, C_1, C_2.
        c: hidden constant.

    Returns:
        The sample size; here s0^2 is right, for masks are not normalised.

    Raises:
        UserError: unless 1 <= s0 <= p.

    Source: Lemma 1 of liu2021analyzing (found).

    Examples:
        >>> liu2021_mask(1, 1, 1, 1.0, (1.0, 1.0, math.e)) == 3 * math.e**2
        True
    """
    if not 1 <= s0 <= p:
        raise UserError(f"s0 = {s0} of p = {p} inputs: choose s0 from 1 to p")
    C_x, C_1, C_2 = norms
    require_positive(d=d, gamma=gamma, C_x=C_x, C_1=C_1, C_2=C_2, c=c)
    eta = C_1 * C_2 * C_x
    size = (s0 * C_1 * C_x * eta / gamma) ** 2
    return c * size * math.log(s0 * eta / gamma) * (p * d + p + d)
