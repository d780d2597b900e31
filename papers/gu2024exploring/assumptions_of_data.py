r"""Assumptions 6.2, 6.3 and 6.5 as checks of data: when they hold, with what constants.

6.2 is read as lambda > 0 for the limit kernel K_ij = x_i' x_j exp(sigma^2 x_i' x_j), 6.3 as a rate
g of at most G, and 6.5 as early stopping of kernel regression on labels f_H(x_i) plus noise. The
last is checked at the inputs themselves, where everything is a sum over eigenvalues.
"""

import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Status
from attlas.claims.statement import inequality
from gu2024exploring.diffusion_instances import schedule, schedules
from gu2024exploring.library.kernels.softmax_network_limit import softmax_ntk_limit

_N, _D = 5, 2
_ROUNDINGS = 128
"""Entries of a kernel, and a backward stable eigenvalue of five rows."""


def inputs(rng, count):
    """Five random inputs, or five on two orthogonal lines of which a short pair is opposite."""
    X = rng.normal(size=(count, _N, _D))
    X *= rng.uniform(0.2, 2, (count, _N, 1)) / np.linalg.norm(X, axis=2, keepdims=True)
    turn, short = rng.uniform(0, 2 * np.pi, count), rng.uniform(0.2, 0.4, count)
    axes = np.stack(
        (np.stack((np.cos(turn), np.sin(turn)), 1), np.stack((-np.sin(turn), np.cos(turn)), 1)), 1
    )
    even = np.arange(count) % 2 == 0
    X[even, 0] = (short[:, None] * axes[:, 0])[even]
    X[even, 1] = -X[even, 0]
    # The others are orthogonal to the pair, longer, and far from each other.
    for place, size in enumerate((1.0, -1.5, 2.5), start=2):
        X[even, place] = (size * axes[:, 1])[even]
    return {"X": X, "sigma": rng.uniform(0.5, 1.5, count)}


@inequality(
    "Assumption 6.2 as a check of data",
    status=Status.NEW,
    sample=inputs,
    search_over="X",
    count=48,
    roundings=_ROUNDINGS,
    controls=[Control("1.1 times", factor=1.1)],
)
def assumption_6_2(X, sigma, *, factor=1.0):
    r"""$$\min_i \|x_i\|^2\ \lambda_{\min}\big[e^{\sigma^2 \langle x_i, x_j \rangle}\big] \le
    \lambda_{\min}\big[\langle x_i, x_j \rangle e^{\sigma^2 \langle x_i, x_j \rangle}\big]$$

    By Schur's product theorem. The exponential kernel is positive definite on distinct inputs, so
    that $\lambda > 0$ exactly where the inputs are distinct and none is zero. Centred data can
    fail, as an input at the mean becomes zero. Attained by two short opposite inputs that are
    orthogonal to the others.
    """
    inner, K = X @ X.T, softmax_ntk_limit(X, X, sigma)
    power = jnp.exp(sigma**2 * inner)
    least = jnp.min(jnp.diag(inner))
    left = factor * least * jnp.linalg.eigvalsh(power)[0]
    size = jnp.linalg.norm(K) + least * jnp.linalg.norm(power)
    return Sides(left, jnp.linalg.eigvalsh(K)[0], magnitude=size)


def rates(rng, count):
    """Schedules; every second one is constant up to the time that counts."""
    batch = schedules(rng, count, (0.01, 3.0))
    level = (batch["start"] + batch["end"]) / 2
    flat = np.arange(count) % 2 == 0
    return batch | {name: np.where(flat, level, batch[name]) for name in ("start", "end")}


@inequality(
    "Assumption 6.3 as a check of a schedule",
    status=Status.NEW,
    sample=rates,
    search_over=("start", "end", "t"),
    project=lambda start, end, t: {
        "start": jnp.maximum(start, 1e-3),
        "end": jnp.maximum(end, 1e-3),
        "t": jnp.clip(t, 1e-3, 0.5),
    },
    roundings=64,
    controls=[Control("the mean of the rate in place of its bound", mean=True)],
)
def assumption_6_3(start, end, T, t, *, mean=False):
    r"""$$0 \le g \le G \;\Rightarrow\; 1 - \beta(t)^2 \le 1 - e^{-G t}$$

    What a bounded rate is good for: noise grows at most like $G t$, and $\beta(t) \ge e^{-Gt/2}$
    leaves some of the data at every time. Attained by constant rates. A rate like
    $1/(1 - t)$ has no $G$ and reaches $\beta = 0$ at $t = 1$.
    """
    g = schedule({"start": start, "end": end, "T": T})
    bound = (start + end) / 2 if mean else jnp.maximum(start, end)
    return g.variance(t), -jnp.expm1(-bound * t)


def regressions(rng, count):
    """Eigenvalues of K over n, coefficients of f_H, steps and noise; some at the worst step."""
    values = np.sort(10 ** rng.uniform(-3, 0, (count, _N)))[:, ::-1]
    steps = np.floor(10 ** rng.uniform(1, 3, count))
    f = rng.normal(size=(count, _N)) * np.sqrt(values)
    noise = 10 ** rng.uniform(-2, 0, count)
    eta = rng.uniform(0.1, 1, count) / values[:, 0]
    worst = np.arange(count) % 2 == 0
    f[worst, 1:], noise[worst] = 0, 1e-4
    eta[worst] = (1 / ((2 * steps + 1) * values[:, 0]))[worst]
    return {"values": values, "f": f, "steps": steps, "eta": eta, "noise": noise}


@inequality(
    "Assumption 6.5 as a check of data",
    status=Status.NEW,
    sample=regressions,
    search_over=("f", "noise"),
    roundings=_ROUNDINGS,
    controls=[Control("6 in place of $2e$", constant=6.0)],
)
def assumption_6_5(values, f, steps, eta, noise, *, constant=2 * np.e):
    r"""$$\tfrac1n \mathbb{E} \|f_k - f_H\|^2 \le \frac{R_H}{2 e\, \eta k} +
    \frac{s^2}{n} \sum_i \min(1, k \eta \mu_i)^2,\quad \eta \mu_1 \le 1$$

    $f_k$ are the values at the $n$ inputs after $k$ steps on labels $f_H(x_i)$ plus noise of
    variance $s^2$, $\mu_i$ the eigenvalues of $K / n$ and $R_H$ the squared norm of $f_H$. So the
    $\epsilon(n, \hat T)$ that 6.5 assumes is computed from data, at the inputs of these data. The
    first term is nearly attained at $\eta \mu_1 = 1/(2k + 1)$.
    """
    # f holds the coefficients of f_H in the eigenvectors, so that R_H = sum f_i^2 / mu_i.
    left_over = (1 - eta * values) ** steps
    bias = jnp.sum((left_over * f) ** 2)
    variance = noise**2 / _N * jnp.sum((1 - left_over) ** 2)
    square = jnp.sum(f**2 / values)
    spread = noise**2 / _N * jnp.sum(jnp.minimum(1, steps * eta * values) ** 2)
    return bias + variance, square / (constant * eta * steps) + spread
