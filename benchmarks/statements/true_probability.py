"""True statements of probability, statistics and information theory."""

import jax.numpy as jnp

import attlas as at
from benchmarks.statements.false_probability import (
    HALF,
    N,
    atoms,
    binomial,
    entropy,
    jensen_shannon,
    kl,
    moments,
    np_ones,
    rankings,
    three,
    two,
)


@at.inequality(sample=two, controls=HALF)
def pinsker(p, q, *, c=1.0):
    r"""$$2 V^2 \le KL(p, q)$$ V the total variation. Pinsker (1960), Csiszar (1967)."""
    return at.Sides(jnp.sum(jnp.abs(p - q)) ** 2 / 2, c * kl(p, q), magnitude=1.0)


@at.inequality(
    sample=lambda rng, count: {"p": rng.uniform(size=count), "s": 3 * rng.normal(size=count)},
    controls=HALF,
)
def hoeffding(p, s, *, c=1.0):
    r"""$$\log E e^{s(X - p)} \le s^2 / 8$$ for Bernoulli X. Hoeffding (1963)."""
    left = jnp.log1p(p * jnp.expm1(s)) - s * p
    return at.Sides(left, c * s**2 / 8, magnitude=1 + jnp.abs(s))


@at.inequality(sample=three, controls=HALF)
def root_of_jensen_shannon(p, q, r, *, c=1.0):
    r"""$$\sqrt{JS(p, r)} \le \sqrt{JS(p, q)} + \sqrt{JS(q, r)}$$ Endres, Schindelin (2003)."""

    def distance(a, b):
        return jnp.sqrt(jnp.maximum(jensen_shannon(a, b), 0))

    return at.Sides(distance(p, r), c * (distance(p, q) + distance(q, r)), error=1e-7)


@at.inequality(sample=atoms, controls=HALF)
def median_mean(x, p, *, c=1.0):
    r"""$$|\mu - m| \le \sigma$$ for a median m. Hotelling, Solomons (1932)."""
    order = jnp.argsort(x)
    median = x[order][jnp.argmax(jnp.cumsum(p[order]) >= 0.5)]
    size = jnp.max(jnp.abs(x))
    left = jnp.abs(jnp.sum(p * x) - median)
    return at.Sides(left, c * moments(x, p)[0], magnitude=size, error=1e-7 * size)


@at.inequality(
    sample=lambda rng, count: {"p": rng.uniform(1 / N, 1, size=count)},
    controls=[at.Control("one more", more=1.0)],
)
def greenberg_mohri(p, *, more=0.0):
    r"""$$1/4 \le P(X \ge np)$$ for p > 1/n, n = 20. Greenberg, Mohri (2014)."""
    k, weights = binomial(p, N)
    return 0.25 + more, jnp.sum(weights * (k >= N * p))


@at.inequality(sample=two, controls=HALF)
def le_cam(p, q, *, c=1.0):
    r"""$$V \le \sqrt 2 H$$ where H^2 = 1 - sum sqrt(pq). Le Cam (1986)."""
    H = jnp.sqrt(jnp.sum((jnp.sqrt(p) - jnp.sqrt(q)) ** 2) / 2)
    return jnp.sum(jnp.abs(p - q)) / 2, c * jnp.sqrt(2.0) * H


@at.inequality(
    sample=lambda rng, count: {"p": rng.dirichlet(np_ones(10), size=count)}, controls=HALF
)
def renyi_decreases(p, *, c=1.0):
    r"""$$H_2 \le H_1$$ Cover, Thomas, Elements of Information Theory, 17.8."""
    return at.Sides(-jnp.log(jnp.sum(p**2)), c * entropy(p), magnitude=1.0)


@at.inequality(sample=rankings, controls=HALF)
def diaconis_graham(s, *, c=1.0):
    r"""$$\sum_i |s_i - i| \le 2\, K(s)$$ K counts inversions. Diaconis, Graham (1977)."""
    inversions = jnp.sum(jnp.triu(s[:, None] > s[None, :], 1))
    return jnp.sum(jnp.abs(s - jnp.arange(8))), c * 2.0 * inversions


@at.inequality(sample=atoms, controls=HALF)
def sums_and_differences(x, p, *, c=1.0):
    r"""$$E |X - Y| \le E |X + Y|$$ X, Y independent of one law. Buja, Logan, Reeds, Shepp (1994)."""
    both = p[:, None] * p[None]
    left = jnp.sum(both * jnp.abs(x[:, None] - x[None]))
    return left, c * jnp.sum(both * jnp.abs(x[:, None] + x[None]))


@at.inequality(sample=two, controls=HALF)
def variation_of_products(p, q, *, c=1.0):
    r"""$$V(p \times p, q \times q) \le 2\, V(p, q)$$ Levin, Peres, Wilmer, Section 4.1."""
    left = jnp.sum(jnp.abs(p[:, None] * p - q[:, None] * q)) / 2
    return left, c * jnp.sum(jnp.abs(p - q))


@at.inequality(sample=two, controls=HALF)
def divergence_and_chi_square(p, q, *, c=1.0):
    r"""$$KL(p, q) \le \log(1 + \chi^2(p, q))$$ Gibbs, Su (2002)."""
    return kl(p, q), c * jnp.log1p(jnp.sum((p - q) ** 2 / q))


@at.inequality(sample=two, controls=HALF)
def gini_below_entropy(p, q, *, c=1.0):
    r"""$$1 - \sum p_i^2 \le H(p)$$ Breiman et al. (1984), Section 4.3."""
    return 1 - jnp.sum(p**2), c * entropy(p)
