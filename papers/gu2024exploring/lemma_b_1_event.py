r"""Lemma B.1, Part 1: the event |<w_r, x_i>| <= B, and the B of Definition 4.1.

Of m units m / 2 are distinct; inputs have norm 1 and s = B / sigma. With equal inputs the
event has probability (1 - 2 Phi(-s))^(m/2) <= exp(-m Phi(-s)).
"""

import jax.numpy as jnp
import numpy as np

from attlas.bounds.optimisation.gu2024_convergence import gu2024_radius
from attlas.claims.claim import Control, Source, Status, assume
from attlas.claims.statement import erratum, inequality, probability
from gu2024exploring.instances import symmetric_networks

_D, _M, _N, _DELTA = 2, 256, 4, 0.2
_EXPONENT = 18


def wide_starts(rng, count):
    """Symmetric networks with sigma in [0.5, 3], where B is above 1."""
    batch = symmetric_networks(rng, count, (_D, _M, 1, _N))
    sigma = rng.uniform(0.5, 3, count)
    batch["W"] *= (sigma / batch["sigma"])[:, None, None]
    return batch | {"sigma": sigma}


@probability(
    "Lemma B.1, Part 1, with $m$ in $B$",
    status=Status.CORRECTED,
    level=1 - _DELTA,
    sample=wide_starts,
    independent="inputs and first layer",
    count=128,
    controls=[Control("two units in place of $m$", m=2)],
)
def lemma_b_1_part_1(W, X, sigma, *, m=_M):
    r"""$$P\big( |\langle w_r, x_i \rangle| \le B \;\mathrm{for\ all}\; r, i \big) \ge 1 - \delta,
    \quad B = \max\big( \sigma \sqrt{2 \log(n m / (2 \delta))}, 1 \big)$$

    $n = 4$, $m = 256$, $\delta = 0.2$. The union goes over the $m / 2$ distinct units.
    """
    return jnp.max(jnp.abs(X @ W)) <= gu2024_radius(_N, 1, _DELTA, sigma, m=m)


def _log_failures(log_m, s, tail):
    """Logarithm of m Phi(-s), the expected units beyond s, with tail / phi(s) by Mills' ratio."""
    return log_m - s**2 / 2 - 0.5 * jnp.log(2 * jnp.pi) - jnp.log(tail)


def five_samples():
    """Five samples, three outputs, delta 0.1, three C: m = exp(B^2), above the printed width."""
    bounds = (gu2024_radius(5, 3, 0.1, 1.0, C=C, constants="printed") for C in (10.01, 100, 1000))
    B = np.asarray([float(bound) for bound in bounds])
    numbers = {"n": 5.0, "delta": 0.1, "sigma": 1.0, "B": B, "log_m": B**2}
    return {name: np.asarray(value) for name, value in numbers.items()}


@erratum(
    "Definition 4.1 and Lemma B.1, Part 1, for every width above that of Theorem 4.2",
    Source.RECALLED,
    witness=five_samples,
    reason=(
        r"$n = 5$, $d = 3$, $\delta = 0.1$, $\sigma = 1$, $C = 10.01$, 100, 1000: of $m = e^{B^2}$ "
        r"units, more than the recalled $e^{18B}$, $e^{247}$ and more exceed $B$"
    ),
    corrected=Control("corrected: $m$ in the logarithm", with_width=True),
)
def lemma_b_1_part_1_printed(n, delta, sigma, B, log_m, *, with_width=False):
    r"""$$P\big( |\langle w_r, x_i \rangle| \le B \;\mathrm{for\ all}\; r, i \big) \ge 1 - \delta,
    \quad B = \max\big( C \sigma \sqrt{\log(nd / \delta)}, 1 \big),\ C > 10$$

    $B$ has no $m$, and the theorem is for every $m$ above its width. At any fixed $C$ the event
    fails almost surely as $m \to \infty$: it serves while $m < \exp(B^2 / (2 \sigma^2))$. At the
    smallest allowed width, $e^{18 B}$ and more, it needs $B \ge 35 \sigma^2$ (b-of-the-width),
    which $C$ just above 10 does not give at $\sigma = 1$ for $nd / \delta < 2 \cdot 10^5$.
    """
    if with_width:
        s = jnp.sqrt(2 * (jnp.log(n / (2 * delta)) + log_m))
        # (1 - q)^(m/2) >= 1 - q m / 2 with q = 2 Phi(-s), and Phi(-s) <= phi(s) / s.
        return 1 - delta, 1 - jnp.exp(_log_failures(log_m, s, s))
    s = B / sigma
    return 1 - delta, jnp.exp(-jnp.exp(_log_failures(log_m, s, s + 1 / s)))


def widths(rng, count):
    """Widths e^(18 B), with B around the 35 to 38 sigma^2 at which they suffice."""
    sigma = rng.uniform(0.6, 3, count)
    B = np.maximum(sigma**2 * rng.uniform(34, 39, count), 10)
    return {"sigma": sigma, "B": B, "log_m": _EXPONENT * B}


def _likely(log_m, B, sigma):
    s = B / sigma
    return _log_failures(log_m, s, s + 1 / s) <= jnp.log(jnp.log(2.0))


@inequality(
    "Definition 4.1 with the width of Theorem 4.2 (ours)",
    status=Status.NEW,
    sample=widths,
    # Under half of the drawn B are large enough.
    count=128,
    search_over="sigma",
    assumptions=[
        assume("the event has probability one half or more", _likely),
        assume(
            r"$B \ge 10$, $1/2 \le \sigma \le B$",
            lambda B, sigma: (B >= 10) & (sigma >= 0.5) & (sigma <= B),
        ),
    ],
    controls=[Control(r"$38 \sigma^2$", factor=38.0)],
)
def b_of_the_width(sigma, B, *, factor=35.0):
    r"""$$m \ge e^{18 B},\ P\big( |\langle w_r, x \rangle| \le B \;\mathrm{for\ all}\; r \big) \ge
    \tfrac{1}{2} \;\Rightarrow\; B \ge 35 \sigma^2,\ m \ge e^{630 \sigma^2}$$

    By Mills' ratio $18 B \le s^2/2 + \log(s + 1/s) + 0.55$, which $B < 35 \sigma^2$ contradicts
    for $B \ge 10$. At $\sigma = 1$ the theorem needs a width of $10^{273}$, whatever $n$, $d$,
    $\lambda$.
    """
    return factor * sigma**2, B
