r"""Orders of magnitude that the paper states: (3), rho, the example below (7), and section 7.

One quantity grows at a time by powers of two, with the constants of section 6.1 and Corollary 2;
the ratios to their orders are positive, so that their sum is bounded where each is. Here x is the
largest head of the target.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.deora2023_loss import deora2023_beta_3
from attlas.bounds.optimisation.deora2023_training import (
    Setting,
    deora2023_head_condition,
    deora2023_rho,
)
from attlas.claims.claim import Control, Source, Status
from attlas.claims.statement import erratum, rate
from deora2023optimization.library.bounds import deora2023_initialisation as good
from deora2023optimization.library.bounds import deora2023_mixture as dm1

_FACTORS = 2.0 ** np.arange(10, 15)
"""Factors by which one quantity grows; the rest stays of order 1."""
_LOGARITHMS = 2.0 ** np.arange(4, 9)
"""Factors where log n itself grows: n reaches exp(512)."""
_STRONG = 2.0 ** np.arange(16, 21)
"""Signal strengths, large against the constants of (7)."""


def settings(rng, count):
    """Sizes and numbers of order 1, R at least 1."""
    names = ("T", "d", "D", "x", "gamma", "log_n", "c", "C", "zeta", "eta")
    batch = {name: rng.uniform(1, 2, count) for name in names}
    batch |= {"R": rng.uniform(1, 1.5, count), "zeta": rng.uniform(0.3, 0.7, count)}
    return {**batch, "M": rng.integers(1, 4, count).astype(float)}


on_settings = partial(rate, sample=settings, count=32)


def _along(numbers, factors, function):
    """The sum of what a function of named numbers gives as each of these grows, by factor."""

    def grown(name, factor):
        return function(**{**numbers, name: numbers[name] * factor})

    over = [jax.vmap(partial(grown, name))(jnp.asarray(factors)) for name in numbers]
    return jnp.sum(jnp.stack(over), axis=0)


@on_settings(
    r"Theorem 1, orders of (3) and of $\rho$",
    Source.FOUND,
    status=Status.CORRECTED,
    scales=_FACTORS,
    controls=[
        Control(r"the printed $T^{3/2}$ of $\rho$", rho_in_T=1.5),
        Control("each exponent less a half", less=0.5),
    ],
)
def order_of_rho(T, d, R, D, x, *, rho_in_T=2.0, less=0.0):
    r"""$$\sqrt H = O\big(d T^{1/2} R^5 (3D + \|\theta\|_{2,\infty}) D^2\big),\quad
    \rho = O\big(d^{3/2} T^2 R^{13} (3D + \|\theta\|_{2,\infty})^2\big)\quad (D, R \ge 1)$$

    In each of $d$, $T$, $R$, $D$ and $\|\theta\|_{2,\infty}$ by itself, with the exact constants.
    The printed $T^{3/2}$ of $\rho$ covers its first term only, and neither printed order has
    $3D + \|\theta\|_{2,\infty}$.
    """

    def ratios(T, d, R, D, x):
        setting, size = Setting(T, d, R, D, x), 3 * D + x
        heads = jnp.sqrt(deora2023_head_condition(setting, "printed"))
        rho = deora2023_rho(setting, 64.0, "printed")
        orders = d * T**0.5 * R**5 * size * D**2, d**1.5 * T**rho_in_T * R**13 * size**2
        return (heads / orders[0] + rho / orders[1]) * (d * T * R * D * x) ** less

    numbers = {"T": T, "d": d, "R": R, "D": D, "x": x}
    left = _along(numbers, _FACTORS, ratios)
    return left, jnp.ones_like(left)


@erratum(
    r"Section 6.1, $\beta_3$ without its constants",
    witness=lambda: dict.fromkeys(("T", "d", "R", "D", "x"), np.asarray(1.0)),
    reason=r"$\beta_3(\theta) = 8$, and the printed bound is 2",
    corrected=Control(r"corrected: $\beta_3$ at $3D + \|\theta\|_{2,\infty}$", constants=True),
)
def section_6_1_beta_3(T, d, R, D, x, *, constants=False):
    r"""$$T = d = R = \|\theta - \theta_0\| = \|\theta\|_{2,\infty} = 1: \quad
    \beta_3(\theta) \le \|\theta - \theta_0\| + \|\theta\|_{2,\infty}$$

    The paper's $\le$ is $\lesssim$: $\beta_3$ has the factor $6 d \sqrt T R^5$ besides.
    """
    bound = deora2023_beta_3(T, d, R, 3 * D + x, "printed") if constants else D + x
    return deora2023_beta_3(T, d, R, x, "printed"), bound


@on_settings(
    "Below (7): the example",
    Source.FOUND,
    scales=_STRONG,
    count=64,  # up to a seventh of the draws obeys the first control: 32 would not decide it
    controls=[Control(r"noise of order $S^2$", power=2.0), Control("each order times $S$", more=1)],
)
def example_below_7(T, d, M, zeta, c, C, *, power=1.0, more=0):
    r"""$$T \vee M = O(1),\ Z \vee \bar Z = O(S),\ n_1 \gtrsim S^2 d \;\Rightarrow\; P = O(1),
    \quad \gamma_\star = \gamma_{lin} + \Omega(\zeta^2 (1-\zeta) S^4),\quad
    \gamma_{lin} = \Omega(\zeta S)$$

    For $S$ from $2^{16}$, $\delta = .1$; the constants of the noise and of $P$ count up to an $S$
    of some hundreds. With $\bar Z$ of order $S^2$, which Proposition 3 allows, it fails.
    """

    def ratios(S):
        Z = c * S**power / 16
        P = dm1.deora2023_first_step_error(S, c * S, d, S**2 * d, 0.1, C)
        linear = dm1.deora2023_gamma_linear(T, S, zeta, Z)
        gain = dm1.deora2023_gamma_star(T, S, zeta, M, Z, Z, c * S, P, "printed") - linear
        # a gain that is not positive is none at all
        gain = jnp.maximum(gain, zeta**2 * (1 - zeta))
        terms = [P, zeta**2 * (1 - zeta) * S**4 / gain, zeta * S / linear]
        return S**more * sum(terms)

    left = jax.vmap(ratios)(jnp.asarray(_STRONG))
    return left, jnp.ones_like(left)


@on_settings(
    "Section 7, distance and number of heads",
    Source.FOUND,
    scales=_LOGARITHMS,
    controls=[Control("each exponent less a half", less=0.5)],
)
def section_7_heads(T, d, R, gamma, log_n, x, *, less=0.0):
    r"""$$\|\theta\|_{2,\infty} = O(1),\ \|\theta - \theta_0\| \le d^{-1/3} T^{-1/6} R^{-5/3}
    H^{1/6} \;\Rightarrow\; \text{(3) up to constants},\qquad H = O\big(d^2 T R^{10}
    \log^6(n) / \gamma^6\big)$$

    The second with the exact constants of Corollary 2 at $K = n$, $B_2 = B_\Phi = 1$, and
    $\log n$, $1/\gamma$, $d$, $T$, $R$ growing in turn; "polylog" is the sixth power. The first as
    $H$ grows.
    """

    def ratio(T, d, R, inverse, log_n):
        start = good.Start(T, d, R, 1.0, 1.0, 1 / inverse)
        heads = good.deora2023_corollary_2_heads(start, jnp.exp(log_n), "printed")
        order = d ** (2 - less) * T ** (1 - less) * R ** (10 - less)
        return heads / (order * (log_n * inverse) ** (6 - less))

    def near(H):
        D = H ** ((1 + less) / 6) / (d ** (1 / 3) * T ** (1 / 6) * R ** (5 / 3))
        return deora2023_head_condition(Setting(T, d, R, D, x), "printed") / H

    numbers = {"T": T, "d": d, "R": R, "inverse": 1 / gamma, "log_n": log_n}
    left = _along(numbers, _LOGARITHMS, ratio)
    left = left + jax.vmap(near)(jnp.asarray(_LOGARITHMS))
    return left, jnp.ones_like(left)


@on_settings(
    "Section 7 and below Corollary 2, losses",
    Source.FOUND,
    scales=_LOGARITHMS,
    controls=[
        Control("without the logarithm", power=0),
        Control(r"a margin that is only bounded above, $\gamma / \sqrt n$", fall=0.5),
    ],
)
def section_7_losses(gamma, eta, log_n, *, power=2, fall=0.0):
    r"""$$K = n: \quad \tfrac2n + \tfrac{5(2B_\Phi + \log n)^2}{4\gamma^2\eta n},\
    \tfrac{17(2B_\Phi + \log n)^2}{\gamma^2\eta n} = O\Big(\frac{\log^2 n}{\eta\gamma^2 n}\Big)$$

    The $\widetilde O(1/(\eta\gamma^2 n))$ of the paper, with $B_\Phi = 1$ and a fixed $\gamma$, as
    $\log n$ grows.
    """

    def ratios(factor):
        n = jnp.exp(log_n * factor)
        margin = gamma * n**-fall
        training = good.deora2023_corollary_2_training(1.0, margin, eta, n)
        gap = good.deora2023_corollary_2_gap(1.0, margin, eta, n, n, constants="printed")
        order = (log_n * factor) ** power / (eta * gamma**2 * n)
        return (training + gap) / order

    left = jax.vmap(ratios)(jnp.asarray(_LOGARITHMS))
    return left, jnp.ones_like(left)
