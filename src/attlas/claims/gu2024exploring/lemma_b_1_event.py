r"""Lemma B.1, Part 1: the event |<w_r, x_i>| <= B, and the B of Definition 4.1.

Symbols: m units of which m / 2 are distinct, w_r ~ N(0, sigma^2 I), inputs of norm 1, s = B /
sigma. With equal inputs the event has probability (1 - 2 Phi(-s))^(m/2) <= exp(-m Phi(-s)).
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.bounds.optimisation.gu2024_convergence import gu2024_radius, gu2024_width_log10
from attlas.claims.gu2024exploring.instances import as_arrays, symmetric_networks
from attlas.core.generator import generator
from attlas.core.old_claim import (
    Assumption,
    Claim,
    Control,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness

_PAPER = "gu2024exploring"
_D, _M, _N, _DELTA = 2, 256, 4, 0.2
_EXPONENT = 18
_ROUNDINGS = 64


def _initial(key: PRNGKeyArray, count: int) -> Instance:
    return as_arrays(symmetric_networks(generator(key), count, (_D, _M, 1, _N)))


def _event(instance: Instance, m: int = _M) -> Sides:
    B = gu2024_radius(_N, 1, _DELTA, instance["sigma"], m=m)
    hit = jnp.max(jnp.abs(instance["X"] @ instance["W"])) <= B
    return Sides(jnp.where(hit, 1.0, 0.0), jnp.asarray(1 - _DELTA))


PART_1 = Claim(
    name=f"{_PAPER}/lemma-b-1-part-1",
    paper=_PAPER,
    locator="Lemma B.1, Part 1, with m in B",
    statement=(
        r"P\big( |\langle w_r, x_i \rangle| \le B \;\mathrm{for\ all}\; r, i \big) \ge 1 - \delta,"
        r"\quad B = \max\big( \sigma \sqrt{2 \log(n m / (2 \delta))}, 1 \big)"
    ),
    kind=Kind.PROBABILITY,
    status=Status.CORRECTED,
    provenance=Provenance.DERIVED,
    instances=_initial,
    sides=_event,
    control=Control("two units in place of m", sides=partial(_event, m=2)),
    count=128,
    terms=_ROUNDINGS,
    note="n = 4, m = 256, delta = 0.2. The union goes over the m / 2 distinct units.",
)


def _log_failures(log_m: Array, s: Array, most: bool = False) -> Array:
    """Logarithm of m Phi(-s), the expected number of units beyond s, bounded by Mills' ratio.

    Returns:
        The lower bound phi(s) / (s + 1/s), or the upper one phi(s) / s for `most`.
    """
    density = -(s**2) / 2 - 0.5 * jnp.log(2 * jnp.pi)
    return log_m + density - jnp.log(s if most else s + 1 / s)


def _probability(instance: Instance, corrected: bool = False) -> Sides:
    """1 - delta against the probability for n equal inputs of norm 1.

    Returns:
        The sides; the right one is bounded above, for the corrected B below.
    """
    log_m, sigma, delta, n = (instance[k] for k in ("log_m", "sigma", "delta", "n"))
    if not corrected:
        s = instance["B"] / sigma
        return Sides(1 - delta, jnp.exp(-jnp.exp(_log_failures(log_m, s))))
    s = jnp.sqrt(2 * (jnp.log(n / (2 * delta)) + log_m))
    # (1 - q)^(m/2) >= 1 - q m / 2 with q = 2 Phi(-s).
    return Sides(1 - delta, 1 - jnp.exp(_log_failures(log_m, s, most=True)))


def _parameters(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
    """Sizes of everyday problems, sigma = 1, C just above 10, m by Theorem 4.2 with lambda 1."""
    n, d = rng.integers(2, 100, (2, count)).astype(float)
    delta = rng.uniform(0.01, 0.2, count)
    B = [float(gu2024_radius(*row, 1.0, C=10.01)) for row in zip(n, d, delta, strict=True)]
    rows = zip(n, d, B, delta, strict=True)
    log_m = [float(gu2024_width_log10(a, b, 1.0, c, e)) * np.log(10) for a, b, c, e in rows]
    numbers = {"n": n, "delta": delta, "sigma": np.ones(count)}
    return {**numbers, "B": np.asarray(B), "log_m": np.asarray(log_m)}


def _drawn(key: PRNGKeyArray, count: int) -> Instance:
    return as_arrays(_parameters(generator(key), count))


def _witness() -> Witness:
    """Five samples, three outputs, delta 0.1: B = 22.4, m = e^408, s = 22.4."""
    B = float(gu2024_radius(5, 3, 0.1, 1.0, C=10.01))
    log_m = float(gu2024_width_log10(5, 3, 1.0, B, 0.1)) * np.log(10)
    numbers = {"n": 5.0, "delta": 0.1, "sigma": 1.0, "B": B, "log_m": log_m}
    return {name: np.asarray(value) for name, value in numbers.items()}


PART_1_PRINTED = Claim(
    name=f"{_PAPER}/lemma-b-1-part-1-printed",
    paper=_PAPER,
    locator="Definition 4.1 and Lemma B.1, Part 1, at the width of Theorem 4.2",
    statement=(
        r"P\big( |\langle w_r, x_i \rangle| \le B \;\mathrm{for\ all}\; r, i \big) \ge 1 - \delta,"
        r"\quad B = \max\big( C \sigma \sqrt{\log(nd / \delta)}, 1 \big),\ C > 10"
    ),
    kind=Kind.INEQUALITY,
    status=Status.SUSPECTED_ERRATUM,
    provenance=Provenance.RECALLED,
    instances=_drawn,
    sides=_probability,
    witness=_witness,
    control=Control(
        "corrected: m in the logarithm",
        sides=partial(_probability, corrected=True),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(
        Outcome.VIOLATED,
        "n = 5, d = 3, delta = 0.1, sigma = 1, C = 10.01: B = 22.4, the width e^(18 B) is above "
        "e^400, and e^150 of its units exceed B",
    ),
    terms=_ROUNDINGS,
    note=(
        "B has no m. It serves while m < exp(B^2 / (2 sigma^2)), but the theorem asks for m >= "
        "exp(18 B): B >= 36 sigma^2 is needed, C >= 36 sigma / sqrt(log(nd / delta)). With C just "
        "above 10 and sigma = 1 it fails for every nd / delta < 4e5, almost surely."
    ),
)


def _widths(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    sigma = rng.uniform(0.6, 3, count)
    B = np.maximum(sigma**2 * rng.uniform(34, 39, count), 10)
    return as_arrays({"sigma": sigma, "B": B, "log_m": _EXPONENT * B})


def _least(instance: Instance, factor: float = 35.0) -> Sides:
    return Sides(factor * instance["sigma"] ** 2, instance["B"])


def _likely(instance: Instance) -> Array:
    failures = _log_failures(instance["log_m"], instance["B"] / instance["sigma"])
    return failures <= jnp.log(jnp.log(2.0))


def _moderate(instance: Instance) -> Array:
    B, sigma = instance["B"], instance["sigma"]
    return (B >= 10) & (sigma >= 0.5) & (sigma <= B)


B_OF_THE_WIDTH = Claim(
    name=f"{_PAPER}/b-of-the-width",
    paper=_PAPER,
    locator="Definition 4.1 with the width of Theorem 4.2 (ours)",
    statement=(
        r"m \ge e^{18 B},\ P\big( |\langle w_r, x \rangle| \le B \;\mathrm{for\ all}\; r \big) \ge"
        r"\tfrac{1}{2} \;\Rightarrow\; B \ge 35 \sigma^2,\ m \ge e^{630 \sigma^2}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.NEW,
    provenance=Provenance.DERIVED,
    instances=_widths,
    sides=_least,
    assumptions=(
        Assumption("the event has probability one half or more", _likely),
        Assumption("B >= 10, 1/2 <= sigma <= B", _moderate),
    ),
    control=Control("38 sigma^2", sides=partial(_least, factor=38.0)),
    count=64,
    terms=_ROUNDINGS,
    note=(
        "By Mills' ratio 18 B <= s^2/2 + log(s + 1/s) + 0.55, which B < 35 sigma^2 contradicts "
        "for B >= 10. At sigma = 1 the theorem needs a width of 10^273, whatever n, d, lambda."
    ),
)
