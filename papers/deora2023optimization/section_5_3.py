r"""Section 5.3: attention of the best margin is out of reach of the theory from zero.

With U_h = log(n) H^(-1/2) U_opt / gamma and W_h = C H^(-p) W_opt the paper requires
S^2 ||W_h|| >= 1 (saturation, constants left out) and sqrt(H) >= S^5 ||theta||^3, (12). The
product of the second slack and the square of the first is at most
2 / (3 sqrt(3 H) log n), by ||W||^2 ||U|| <= 2 ||theta||^3 / (3 sqrt(3)): no p, C, S meets both
once sqrt(H) log n > 0.385.
"""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import erratum, inequality


def orders_of_magnitude(rng, count):
    """Exponents p of both signs, C and S over many orders, H up to a million, n up to e^30."""
    numbers = {
        "p": rng.uniform(-1, 2, count),
        "log_C": rng.uniform(-5, 5, count),
        "log_S": rng.uniform(-3, 5, count),
        "log_H": rng.uniform(0, 14, count),
        "log_n": rng.uniform(0.7, 30, count),
        "c": rng.uniform(0, 2, count),
    }
    # Every second instance balances ||W|| and ||U||, the tightest case.
    even = np.arange(count) % 2 == 0
    gap = numbers["log_H"] * (numbers["p"] - 0.5) + np.log(numbers["log_n"]) - numbers["log_S"]
    return {**numbers, "log_C": np.where(even, gap, numbers["log_C"])}


def _both_bounds(p, log_C, log_S, log_H, log_n, c, cube) -> Sides:
    """Product of the slacks of (12) and of saturation squared over its bound, against 1.

    The model is H^(-c) times the sum of the heads; the curvature of a head then has the weight
    H^(-c), and (12) reads H^c >= S^5 ||theta||^cube, with the cube of the norm.
    """
    log_W = log_C - p * log_H
    # The outputs need H^(1-c) ||U_h|| = log(n) / S, with gamma_attn of order S.
    decoder = jnp.log(log_n) - log_S + (c - 0.5) * log_H
    attention = log_W + 0.5 * log_H
    log_theta = 0.5 * jnp.logaddexp(2 * decoder, 2 * attention)
    saturation = 2 * log_S + log_W
    heads = c * log_H - 5 * log_S - cube * log_theta
    left = heads + 2 * saturation
    right = -0.5 * log_H - jnp.log(log_n) + np.log(2 / 27**0.5)
    # Exponents up to 10 times logarithms up to 30.
    return Sides(jnp.exp(left - right), jnp.ones_like(left), magnitude=100 * jnp.ones_like(left))


@inequality(
    "Section 5.3, no p and C satisfy both conditions",
    sample=orders_of_magnitude,
    search_over=("p", "log_C", "log_S"),
    controls=[Control("a head condition with the distance to the power 2.9", cube=2.9)],
    status=Status.SHARPENED,
)
def section_5_3(p, log_C, log_S, log_H, log_n, *, cube=3.0):
    r"""$$\frac{\sqrt H}{S^5 \|\widetilde\theta\|^3} \big( S^2 \|W_h\| \big)^2 \le
    \frac{2}{3 \sqrt{3 H} \log n} \quad (p, C, S \ \text{arbitrary})$$

    (12) asks that the first factor is at least 1 up to a constant, saturation that the
    second is: impossible for large $H$ or $n$. The paper's conclusion is $\log n \le O(1)$ by two
    cases; one line covers both, for any $p$ of either sign, and $H$ alone refutes it even at
    fixed $n$. Reached where $\|W\|^2 = 2 \|U\|^2$.
    """
    return _both_bounds(p, log_C, log_S, log_H, log_n, 0.5, cube)


@inequality(
    r"Section 5.3 for a model scaled by $H^{-c}$",
    sample=orders_of_magnitude,
    search_over=("p", "log_C", "log_S", "c"),
    controls=[Control("the distance to the power 2.9", cube=2.9)],
    status=Status.NEW,
)
def section_5_3_scaling(p, log_C, log_S, log_H, log_n, c, *, cube=3.0):
    r"""$$\widetilde\Phi = H^{-c} \sum_h \Phi_h: \quad \frac{H^c}{S^5 \|\widetilde\theta\|^3}
    \big( S^2 \|W_h\| \big)^2 \le \frac{2}{3 \sqrt{3 H} \log n} \quad (c \ge 0)$$

    $c$ cancels: larger heads are needed for the same outputs by as much as curvature
    falls. No power of $H$ in front of the sum opens the way.
    """
    return _both_bounds(p, log_C, log_S, log_H, log_n, c, cube)


def sixteen_heads():
    """H = 16, log n = 1, p = 1 and C such that the first condition holds with equality."""
    numbers = {"H": 16.0, "log_n": 1.0, "p": 1.0, "C": 2.0}
    return {name: np.asarray(value) for name, value in numbers.items()}


@erratum(
    "Section 5.3, second condition on H as in our text",
    witness=sixteen_heads,
    reason="the exponent is $p - 3/4$",
    corrected=Control("corrected: the exponent $p - 3/4$", shift=0.75),
)
def section_5_3_exponent(H, log_n, p, C, *, shift=0.25):
    r"""$$H = 16,\ C = 2,\ p = 1,\ \log n = 1: \quad H^{1/2} \ge \tfrac{\log^5 n}{C^2} H^{2p-1}
    \;\Rightarrow\; H^{p - 1/4} \le \tfrac{C}{\log^{5/2} n}$$

    The premise holds with equality. The two sides are $H^{1/2}$ apart, here 4, so that no
    constant hidden in the printed order helps. The paper's contradiction is not affected, and the
    digit 1 may be damage of our text.
    """
    # The conclusion is scaled by the root of the premise's excess, which is 1 here.
    premise = log_n**5 / C**2 * H ** (2 * p - 1) / H**0.5
    return H ** (p - shift), C / log_n**2.5 * jnp.sqrt(premise)
