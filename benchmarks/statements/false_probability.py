"""False statements of probability, statistics and information theory."""

import jax.numpy as jnp
from jax.scipy.special import gammaln, rel_entr, xlogy

import attlas as at

HALF = [at.Control("half of the right side", c=0.5)]
N = 20


def entropy(p, axes=()):
    """Entropy of a table after its axes are summed out."""
    p = jnp.sum(p, axis=axes) if axes else p
    return -jnp.sum(xlogy(p, p))


def two(rng, count):
    return {"p": rng.dirichlet(np_ones(4), size=count), "q": rng.dirichlet(np_ones(4), size=count)}


def np_ones(n):
    return [1.0] * n


def three(rng, count):
    return {**two(rng, count), "r": rng.dirichlet(np_ones(4), size=count)}


def atoms(rng, count):
    return {"x": rng.normal(size=(count, 5)), "p": rng.dirichlet(np_ones(5), size=count)}


def proportion(rng, count):
    return {"p": rng.uniform(0.05, 0.95, size=count)}


def binomial(p, n):
    k = jnp.arange(n + 1.0)
    choose = gammaln(n + 1.0) - gammaln(k + 1) - gammaln(n - k + 1)
    return k, jnp.exp(choose + xlogy(k, p) + xlogy(n - k, 1 - p))


def kl(p, q):
    return jnp.sum(rel_entr(p, q))


def moments(x, p):
    """Standard deviation, skewness and kurtosis of atoms with weights."""
    y = x - jnp.sum(p * x)
    deviation = jnp.sqrt(jnp.sum(p * y**2))
    return deviation, jnp.sum(p * y**3) / deviation**3, jnp.sum(p * y**4) / deviation**4


def jensen_shannon(p, q):
    return (kl(p, (p + q) / 2) + kl(q, (p + q) / 2)) / 2


@at.inequality(
    sample=lambda rng, count: {"p": rng.uniform(size=count), "s": 3 * rng.normal(size=count)},
    controls=HALF,
)
def hoeffding_with_a_twelfth(p, s, *, c=1.0):
    r"""$$\log E e^{s(X - p)} \le s^2 / 9$$ for Bernoulli X. The constant is 1/8: Hoeffding (1963)."""
    return jnp.log(p * jnp.exp(s) + 1 - p) - s * p, c * s**2 / 9


@at.inequality(sample=two, controls=HALF)
def pinsker_with_a_fourth_power(p, q, *, c=1.0):
    r"""$$2 V^2 + V^4 \le KL(p, q)$$ V the total variation; 4/9 is the constant: Fedotov et al. (2003)."""
    V = jnp.sum(jnp.abs(p - q)) / 2
    return 2 * V**2 + V**4, c * kl(p, q)


@at.inequality(sample=three, controls=HALF)
def triangle_of_divergences(p, q, r, *, c=1.0):
    r"""$$JS(p, r) \le JS(p, q) + JS(q, r)$$ Only its root is a metric: Endres, Schindelin (2003)."""
    return jensen_shannon(p, r), c * (jensen_shannon(p, q) + jensen_shannon(q, r))


@at.inequality(sample=proportion, controls=[at.Control("one more", more=1.0)])
def wald_interval(p, *, more=0.0):
    r"""$$0.85 \le P(|X/n - p| \le 1.96 \sqrt{X(n-X)/n^3})$$ at n = 50. Brown, Cai, DasGupta (2001)."""
    k, weights = binomial(p, 50)
    covers = jnp.abs(k / 50 - p) <= 1.96 * jnp.sqrt(k * (50 - k) / 50**3)
    return 0.85 + more, jnp.sum(weights * covers)


@at.inequality(sample=proportion, controls=[at.Control("one more", more=1.0)])
def wilson_interval(p, *, more=0.0):
    r"""$$0.935 \le P(|X/n - p| \le 1.96 \sqrt{p(1-p)/n})$$ at n = 50. Brown, Cai, DasGupta (2001)."""
    k, weights = binomial(p, 50)
    covers = jnp.abs(k / 50 - p) <= 1.96 * jnp.sqrt(p * (1 - p) / 50)
    return 0.935 + more, jnp.sum(weights * covers)


@at.inequality(sample=atoms, controls=HALF)
def median_near_the_mean(x, p, *, c=1.0):
    r"""$$|\mu - m| \le 0.8 \sigma$$ for a median m; the constant is 1: Hotelling, Solomons (1932)."""
    order = jnp.argsort(x)
    median = x[order][jnp.argmax(jnp.cumsum(p[order]) >= 0.5)]
    return jnp.abs(jnp.sum(p * x) - median), c * 0.8 * moments(x, p)[0]


@at.inequality(
    sample=lambda rng, count: {"p": rng.uniform(1 / N, 1, size=count)},
    controls=[at.Control("one more", more=1.0)],
)
def binomial_reaches_its_mean(p, *, more=0.0):
    r"""$$0.3 \le P(X \ge np)$$ for p > 1/n, n = 20. The constant is 1/4: Greenberg, Mohri (2014)."""
    k, weights = binomial(p, N)
    return 0.3 + more, jnp.sum(weights * (k >= N * p))


@at.inequality(
    sample=lambda rng, count: {
        "P": rng.dirichlet(np_ones(16), size=count).reshape(count, 2, 2, 2, 2)
    },
    controls=[at.Control("one more", more=1.0)],
)
def ingleton(P, *, more=0.0):
    r"""$$I(A;B) \le I(A;B|C) + I(A;B|D) + I(C;D)$$ Ingleton's; Matus, Studeny (1995)."""
    h = {"": 0.0}
    for name in ("a", "b", "c", "d", "ab", "ac", "ad", "bc", "bd", "cd", "abc", "abd"):
        h[name] = entropy(P, tuple(i for i, letter in enumerate("abcd") if letter not in name))
    given_c = h["ac"] + h["bc"] - h["abc"] - h["c"]
    given_d = h["ad"] + h["bd"] - h["abd"] - h["d"]
    right = given_c + given_d + h["c"] + h["d"] - h["cd"]
    return at.Sides(h["a"] + h["b"] - h["ab"] + more, right, magnitude=4.0)


@at.inequality(sample=two, controls=HALF)
def variation_below_hellinger(p, q, *, c=1.0):
    r"""$$V \le 1.3 H$$ where H^2 = 1 - sum sqrt(pq). The constant is 1.414: Le Cam (1986)."""
    H = jnp.sqrt(jnp.sum((jnp.sqrt(p) - jnp.sqrt(q)) ** 2) / 2)
    return jnp.sum(jnp.abs(p - q)) / 2, c * 1.3 * H


@at.inequality(sample=atoms, controls=[at.Control("tenfold on the left", t=10.0)])
def kurtosis_and_skewness(x, p, *, t=1.0):
    r"""$$1.02\, \gamma^2 + 1 \le \kappa$$ The constant is 1: Pearson (1916)."""
    _, skewness, kurtosis = moments(x, p)
    return t * (1.02 * skewness**2 + 1), kurtosis


@at.inequality(
    sample=lambda rng, count: {"p": rng.dirichlet(np_ones(10), size=count)}, controls=HALF
)
def entropies_of_two_orders(p, *, c=1.0):
    r"""$$H_1 \le 2 H_2$$ for ten symbols. Cover, Thomas, Elements of Information Theory, 17.8."""
    return entropy(p), -2 * c * jnp.log(jnp.sum(p**2))


def rankings(rng, count):
    return {"s": rng.permuted(np_tile(8, count), axis=1).astype(float)}


def np_tile(n, count):
    return jnp.tile(jnp.arange(n), (count, 1)).__array__()


@at.inequality(sample=rankings, controls=HALF)
def footrule_and_inversions(s, *, c=1.0):
    r"""$$\sum_i |s_i - i| \le 1.95\, K(s)$$ K counts inversions; 2 is right: Diaconis, Graham (1977)."""
    inversions = jnp.sum(jnp.triu(s[:, None] > s[None, :], 1))
    return jnp.sum(jnp.abs(s - jnp.arange(8))), c * 1.95 * inversions


@at.inequality(sample=atoms, controls=[at.Control("tenfold on the left", t=10.0)])
def fourth_powers_of_differences(x, p, *, t=1.0):
    r"""$$E (X - Y)^4 \le E (X + Y)^4$$ X, Y independent of one law; true of first powers. Buja et al. (1994)."""
    both = p[:, None] * p[None]
    difference, total = x[:, None] - x[None], x[:, None] + x[None]
    return t * jnp.sum(both * difference**4), jnp.sum(both * total**4)


@at.inequality(sample=atoms, controls=[at.Control("a deviation more", more=1.0)])
def skewness_orders_mean_and_median(x, p, *, more=0.0):
    r"""$$m \le \mu$$ where the skewness is positive. von Hippel (2005)."""
    order = jnp.argsort(x)
    median = x[order][jnp.argmax(jnp.cumsum(p[order]) >= 0.5)]
    deviation, skewness, _ = moments(x, p)
    left = jnp.where(skewness > 0, median - jnp.sum(p * x), -deviation)
    return left + more * deviation, 0.0


@at.inequality(sample=two, controls=HALF)
def variation_of_two_draws(p, q, *, c=1.0):
    r"""$$V(p \times p, q \times q) \le 1.9\, V(p, q)$$ 2 is right. Levin, Peres, Wilmer, Section 4.1."""
    left = jnp.sum(jnp.abs(p[:, None] * p - q[:, None] * q)) / 2
    return left, c * 1.9 * jnp.sum(jnp.abs(p - q)) / 2


@at.inequality(
    sample=lambda rng, count: {"P": rng.dirichlet(np_ones(8), size=count).reshape(count, 2, 2, 2)},
    controls=[at.Control("one more", more=1.0)],
)
def better_in_each_group(P, *, more=0.0):
    r"""$$\min_g (a_g - b_g) \le a - b$$ rates of success in groups and in all. Simpson (1951)."""

    def advantage(table):
        rates = table[:, 1] / jnp.sum(table, axis=1)
        return rates[0] - rates[1]

    least = jnp.minimum(advantage(P[0]), advantage(P[1]))
    return least + more, advantage(P[0] + P[1])


@at.inequality(sample=two, controls=HALF)
def entropy_below_twice_gini(p, q, *, c=1.0):
    r"""$$H(p) \le 4 (1 - \sum p_i^2)$$ for four symbols. Breiman et al. (1984), Section 4.3."""
    return entropy(p), c * 4 * (1 - jnp.sum(p**2))
