r"""Sample sizes in place of Theorems 1, 2, 6, Corollary 1 and Lemma 1 of liu2021analyzing.

With every constant: docs/proofs/liu2021_sample_size.md. Two things differ from the print. The
features are bounded through ||x o f||_2 <= C_x ||f||_2, so neither s0 nor p appears but in the
number of parameters. And a small gradient implies a small error only through the smallest
positive eigenvalue of the features' covariance, which the print bounds from the wrong side.
"""

import math
from typing import NamedTuple

from attlas.bounds.generalisation.conditions import require_at_least, require_positive
from attlas.core.errors import UserError


class Conditions(NamedTuple):
    """What the corrected theorems assume of all parameters in question.

    Attributes:
        smallest: lambda, the smallest positive eigenvalue of Cov(Phi).
        residual: largest eigenvalue of Var(Phi* | Phi), the left side of (A3).
        noise: C_3 of the sub-Gaussian noise.
        failure: probability with which the statement may fail.
    """

    smallest: float
    residual: float = 0.0
    noise: float = 0.0
    failure: float = 0.05


class Block(NamedTuple):
    """Parameters in a Euclidean ball, of which the features are a Lipschitz function.

    Attributes:
        parameters: how many.
        stretch: change of the features, relative to their bound, per change of the parameters
            relative to the ball's radius; what is below one counts as one.
    """

    parameters: int
    stretch: float = 1.0


def liu2021_error(gradient: float, C_2: float, conditions: Conditions) -> float:
    r"""Largest population error of a point whose population gradient in w2 is that small.

    $$E\,u^2\le\frac{\|E[u\Phi]\|^2}\lambda+C_2^2\,\lambda_{\max}(\mathrm{Var}(\Phi^*|\Phi))$$

    Args:
        gradient: ||E[u Phi]||.
        C_2: norm of the teacher's second layer.
        conditions: lambda and the residual.

    Returns:
        Bound of E u^2, for centred u.

    Source: derived, in place of Lemma 1.1 of liu2021analyzing.

    Examples:
        >>> liu2021_error(0.5, 1.0, Conditions(smallest=0.25, residual=0.1))
        1.1
    """
    require_positive(smallest=conditions.smallest)
    require_at_least(0, gradient=gradient, C_2=C_2, residual=conditions.residual)
    return gradient**2 / conditions.smallest + C_2**2 * conditions.residual


def liu2021_sample_size(
    features: float,
    C_2: float,
    d: int,
    blocks: list[Block],
    gamma: float,
    conditions: Conditions,
) -> float:
    r"""Samples from which every stationary point has a population error of at most gamma^2.

    $$n\ge\frac{128M^2}{s^2}\Big(d\log\frac3\rho+\sum_kP_k\log\frac{3L_k}\rho
    +\log\frac4\delta\Big),\qquad n\ge2\log\frac4\delta$$
    $$M=\max(2C_2B^2,C_3B),\quad s^2=\lambda(\gamma^2-C_2^2\,\mathrm{residual}),\quad
    \rho=\min\Big(1,\frac s{4(1+3K)M}\Big)$$

    Args:
        features: B, bound of ||Phi||_2.
        C_2: norm of the second layer, the teacher's too.
        d: hidden units.
        blocks: the other parameters, K blocks; L_k is their stretch.
        gamma: error allowed, not squared.
        conditions: lambda, residual, C_3, delta.

    Returns:
        The sample size, not rounded; infinite where the residual alone exceeds the error.

    Raises:
        UserError: if the probability is not between 0 and 1; every number's range is checked.

    Source: derived, in place of Theorem 1 of liu2021analyzing.

    Examples:
        >>> few, many = (liu2021_sample_size(1.0, 1.0, 1, [Block(p)], 0.1, Conditions(1.0))
        ...              for p in (10, 1000))
        >>> print(f"{few:.3g} {many:.3g}")
        4.09e+06 3.52e+08
    """
    smallest, residual, noise, failure = conditions
    require_positive(smallest=smallest, gamma=gamma, features=features, C_2=C_2)
    require_at_least(0, residual=residual, noise=noise)
    require_at_least(1, d=d)
    for block in blocks:
        require_at_least(0, parameters=block.parameters, stretch=block.stretch)
    if not 0 < failure < 1:
        raise UserError(f"failure = {failure} is no probability: choose 0 < failure < 1")
    level = smallest * (gamma**2 - C_2**2 * residual)
    if level <= 0:
        return math.inf
    M = max(2 * C_2 * features**2, noise * features)
    rho = min(1.0, math.sqrt(level) / (4 * (1 + 3 * len(blocks)) * M))
    entropy = d * math.log(3 / rho) + math.log(4 / failure)
    for block in blocks:
        entropy += block.parameters * math.log(3 * max(1.0, block.stretch) / rho)
    return max(128 * M**2 / level * entropy, 2 * math.log(4 / failure))


def liu2021_known_attention(
    p: int,
    d: int,
    gamma: float,
    norms: tuple[float, float, float],
    conditions: Conditions,
    weight_norm: float = 1.0,
) -> float:
    r"""In place of Theorem 1 and of Corollary 1: B = C_1 C_x ||f||_2.

    Args:
        p: inputs that may count: all, or a known support of s0.
        d: hidden units.
        gamma: error allowed, not squared.
        norms: C_x, C_1, C_2.
        conditions: of the features.
        weight_norm: bound of ||f(x)||_2: 1 for any distribution, 1/sqrt(p) for equal ones,
            sqrt(p) for no attention at all.

    Returns:
        The sample size, the same for all weights of one norm however concentrated.

    Source: derived, in place of Theorem 1 and Corollary 1 of liu2021analyzing.

    Examples:
        >>> known = Conditions(smallest=1.0)
        >>> n = liu2021_known_attention(130, 10, 0.1, (1.0, 1.0, 1.0), known)
        >>> support = liu2021_known_attention(11, 10, 0.1, (1.0, 1.0, 1.0), known)
        >>> print(f"{n / support:.1f}")
        10.9
    """
    C_x, C_1, C_2 = norms
    require_at_least(1, p=p)
    require_positive(C_x=C_x, C_1=C_1, C_2=C_2, weight_norm=weight_norm)
    features = C_1 * C_x * weight_norm
    return liu2021_sample_size(features, C_2, d, [Block(p * d)], gamma, conditions)


def liu2021_learned_mask(
    p: int, d: int, s0: int, gamma: float, norms: tuple[float, float, float], conditions: Conditions
) -> float:
    r"""In place of Lemma 1: B = C_1 C_x sqrt(s0), for masks in [0, 1]^p with s0 entries.

    Args:
        p: inputs.
        d: hidden units.
        s0: entries that are not zero, at most p.
        gamma: error allowed, not squared.
        norms: C_x, C_1, C_2.
        conditions: of the features.

    Returns:
        The sample size.

    Raises:
        UserError: unless 1 <= s0 <= p.

    Source: derived, in place of Lemma 1 of liu2021analyzing.

    Examples:
        >>> one = (1.0, 1.0, 1.0)
        >>> ratio = [liu2021_learned_mask(9, 1, s0, 1.0, one, Conditions(1.0)) for s0 in (9, 3)]
        >>> 9 < ratio[0] / ratio[1] < 14
        True
    """
    if not 1 <= s0 <= p:
        raise UserError(f"s0 = {s0} of p = {p} inputs: choose s0 from 1 to p")
    C_x, C_1, C_2 = norms
    require_positive(C_x=C_x, C_1=C_1, C_2=C_2)
    blocks = [Block(p * d), Block(p)]
    return liu2021_sample_size(C_1 * C_x * math.sqrt(s0), C_2, d, blocks, gamma, conditions)


def liu2021_learned_attention(
    sizes: tuple[int, int, int, int, int],
    gamma: float,
    norms: tuple[float, float, float, float, float, float],
    conditions: Conditions,
) -> float:
    r"""In place of Theorem 2: B = C_1 C_7 C_x sqrt(p t), and all parameters counted.

    Queries and keys move the attention weights by at most C_5 C_6 t C_x^2 / sqrt(d_q) in l1 for
    a change as large as their balls: softmax is 1-Lipschitz from l_inf to l1.

    Args:
        sizes: p words, t entries of each, d hidden units, d_v of a value, d_q of a query.
        gamma: error allowed, not squared.
        norms: C_x, C_1, C_2, C_5, C_6, C_7, Frobenius norms from C_1 on.
        conditions: of the features.

    Returns:
        The sample size; no concentration of the weights changes it.

    Source: derived, in place of Theorem 2 of liu2021analyzing.

    Examples:
        >>> one = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
        >>> narrow, wide = (liu2021_learned_attention((4, 3, 5, 3, q), 0.1, one, Conditions(1.0))
        ...                 for q in (3, 12))
        >>> 1 < wide / narrow < 2
        True
    """
    p, t, d, d_v, d_q = sizes
    C_x, C_1, C_2, C_5, C_6, C_7 = norms
    require_at_least(1, p=p, t=t, d=d, d_v=d_v, d_q=d_q)
    require_positive(C_x=C_x, C_1=C_1, C_2=C_2, C_5=C_5, C_6=C_6, C_7=C_7)
    stretch = C_5 * C_6 * t * C_x**2 / math.sqrt(d_q)
    blocks = [Block(p * d_v * d), Block(d_v * t), Block(t * d_q, stretch), Block(t * d_q, stretch)]
    features = C_1 * C_7 * C_x * math.sqrt(p * t)
    return liu2021_sample_size(features, C_2, d, blocks, gamma, conditions)


def liu2021_learned_recurrence(
    sizes: tuple[int, int, int, int],
    gamma: float,
    norms: tuple[float, float, float],
    stretches: tuple[float, float],
    conditions: Conditions,
) -> float:
    r"""In place of Theorem 6: B = C_1 C_x sqrt(t), a context being a mean of words.

    Args:
        sizes: t entries a word, d hidden units, d_a and d_f parameters of score and update.
        gamma: error allowed, not squared.
        norms: C_x, C_1, C_2.
        stretches: l1 change of the attention weights for a change of the parameters of score
            and update as large as their balls; the print has C_8 and C_9 alone.
        conditions: of the features.

    Returns:
        The sample size.

    Source: derived, in place of Theorem 6 of liu2021analyzing.

    Examples:
        >>> found = liu2021_learned_recurrence(
        ...     (2, 1, 1, 1), 1.0, (1.0, 1.0, 1.0), (1.0, 1.0), Conditions(1.0))
        >>> found > 1000
        True
    """
    t, d, d_a, d_f = sizes
    C_x, C_1, C_2 = norms
    require_at_least(1, t=t, d=d)
    require_at_least(0, d_a=d_a, d_f=d_f)
    require_positive(C_x=C_x, C_1=C_1, C_2=C_2)
    blocks = [Block(t * d), Block(d_a, stretches[0]), Block(d_f, stretches[1])]
    return liu2021_sample_size(C_1 * C_x * math.sqrt(t), C_2, d, blocks, gamma, conditions)


def liu2021_deep_corrected(
    gamma: float, c_k: float, parameters: int, margin: float = 1.0, c: float = 1.0
) -> float:
    r"""Theorem 3 with the factor that its own tail bound needs.

    $$c\,\frac{c_K}{m^2\gamma^2}\log\Big(\frac{c_K}{m\gamma}\Big)(d_{self}+D(d_k+d_v)q_k)$$

    Args:
        gamma: error allowed, not squared.
        c_k: c_K of the tail bound exp(-n m^2 gamma^2 / c_K).
        parameters: d_self + D (d_k + d_v) q_k.
        margin: m of (A6), by which the gradient exceeds m gamma.
        c: hidden constant.

    Returns:
        The order of the sample size; (A6) is an assumption on the result, so that constants
        would mean little.

    Source: the proof of Theorem 3 of liu2021analyzing.

    Examples:
        >>> liu2021_deep_corrected(1.0, math.e, 7) == 7 * math.e
        True
    """
    require_positive(gamma=gamma, c_k=c_k, parameters=parameters, margin=margin, c=c)
    level = margin * gamma
    return c * c_k / level**2 * math.log(c_k / level) * parameters
