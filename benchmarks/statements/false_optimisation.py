"""False statements of convex analysis, descent and the losses of classifiers."""

import jax
import jax.numpy as jnp

import attlas as at
from benchmarks.statements.false_learning import HALF, accelerated, logits, softmax


def quadratics(rng, count):
    return {"h": rng.uniform(0.05, 1, size=(count, 3)), "x": rng.normal(size=(count, 3))}


def couples(rng, count):
    return {"x": rng.normal(size=(count, 5)), "y": rng.normal(size=(count, 5))}


def scalars(rng, count):
    return {"x": rng.normal(size=count), "y": rng.normal(size=count)}


def curved(rng, count):
    return {"A": rng.normal(size=(count, 3, 3)), "x": rng.normal(size=(count, 3))}


def around_sign_step(A, x, length):
    """A quadratic before and after a step along the signs, in units of the 1-norm over L."""
    H = A @ A.T
    g = H @ x
    after = x - length * jnp.sum(jnp.abs(g)) / jnp.linalg.norm(H, 2) * jnp.sign(g)
    return x @ H @ x, after @ H @ after


@at.inequality(sample=quadratics, controls=HALF)
def acceleration_approaches(h, x, *, c=1.0):
    r"""$$|x_8 - x^*|_2 \le |x_7 - x^*|_2$$ Nesterov's method on quadratics. O'Donoghue, Candes (2015)."""
    lengths = [jnp.linalg.norm(point) for point in accelerated(h, x, 8)]
    return lengths[-1], c * lengths[-2]


@at.inequality(sample=quadratics, controls=HALF)
def heavy_ball_stays_near(h, x, *, c=1.0):
    r"""$$|x_2|_2 \le |x_0|_2$$ Polyak's parameters on quadratics. Danilova, Kulakova, Polyak (2020)."""
    large, small = jnp.sqrt(jnp.max(h)), jnp.sqrt(jnp.min(h))
    step, momentum = 4 / (large + small) ** 2, ((large - small) / (large + small)) ** 2
    before, start = x, jnp.linalg.norm(x)
    for _ in range(2):
        x, before = x - step * h * x + momentum * (x - before), x
    return jnp.linalg.norm(x), c * start


@at.inequality(sample=curved, controls=HALF)
def sign_step_descends(A, x, *, c=1.0):
    r"""$$f(x - \frac{|g|_1}{L} sign(g)) \le f(x)$$ L the largest eigenvalue. Balles, Pedregosa, Le Roux (2020)."""
    before, after = around_sign_step(A, x, 1.0)
    return after, c * before


@at.inequality(sample=lambda rng, count: {"b": rng.normal(size=(count, 3))}, controls=HALF)
def frank_wolfe_gap_decreases(b, *, c=1.0):
    r"""$$g_4 \le g_3$$ the gap for |x - b|^2 on the simplex, steps 2/(k + 2). Jaggi (2013)."""
    x, gaps = jnp.array([1.0, 0.0, 0.0]), []
    for k in range(5):
        slope = 2 * (x - b)
        vertex = jnp.eye(3)[jnp.argmin(slope)]
        gaps.append(slope @ (x - vertex))
        x = x + 2 / (k + 2) * (vertex - x)
    return gaps[4], c * gaps[3]


@at.inequality(sample=lambda rng, count: {"t": rng.normal(size=count)}, controls=HALF)
def newton_on_log_cosh(t, *, c=1.0):
    r"""$$|t - f'(t)/f''(t)| \le |t|$$ for f = log cosh. Boyd, Vandenberghe, Section 9.5."""
    return jnp.abs(t - jnp.sinh(t) * jnp.cosh(t)), c * jnp.abs(t)


@at.inequality(sample=scalars, controls=HALF)
def product_is_convex(x, y, *, c=1.0):
    r"""$$f((x + y)/2) \le (f(x) + f(y))/2$$ f = t^2 (t - 1)^2. Boyd, Vandenberghe, Exercise 3.32."""

    def f(t):
        return t**2 * (t - 1) ** 2

    return f((x + y) / 2), c * (f(x) + f(y)) / 2


@at.inequality(sample=couples, controls=[at.Control("one less", less=1.0)])
def log_sum_exp_is_strongly_convex(x, y, *, less=0.0):
    r"""$$\ell((x + y)/2) + |x - y|_2^2 / 200 \le (\ell(x) + \ell(y))/2$$ Boyd, Vandenberghe, Section 3.1."""
    lse = jax.nn.logsumexp
    return lse((x + y) / 2) + jnp.sum((x - y) ** 2) / 200, (lse(x) + lse(y)) / 2 - less


@at.inequality(sample=couples, controls=HALF)
def layer_norm_does_not_expand(x, y, *, c=1.0):
    r"""$$|n(x) - n(y)|_2 \le 3 |x - y|_2$$ n without weights. Xu, Sun, Zhang, Zhao, Lin (2019)."""

    def norm(v):
        v = v - jnp.mean(v)
        return v / jnp.sqrt(jnp.mean(v**2) + 1e-5)

    return jnp.linalg.norm(norm(x) - norm(y)), c * 3 * jnp.linalg.norm(x - y)


@at.inequality(sample=logits, controls=HALF)
def divergence_of_softmax(x, y, *, c=1.0):
    r"""$$KL(\sigma(x), \sigma(y)) \le |x - y|_2^2 / 5$$ A quarter is right. Hoeffding (1963)."""
    p = softmax(x)
    left = jnp.sum(p * (jax.nn.log_softmax(x) - jax.nn.log_softmax(y)))
    return left, c * jnp.sum((x - y) ** 2) / 5


@at.inequality(sample=logits, controls=HALF)
def brier_of_mean_logits(x, y, *, c=1.0):
    r"""$$B((x + y)/2) \le (B(x) + B(y))/2$$ B(x) = |softmax(x) - e_1|^2. Gneiting, Raftery (2007)."""

    def brier(v):
        return jnp.sum((softmax(v) - jnp.eye(6)[0]) ** 2)

    return brier((x + y) / 2), c * (brier(x) + brier(y)) / 2


@at.inequality(sample=logits, controls=HALF)
def focal_loss_of_mean_logits(x, y, *, c=1.0):
    r"""$$F((x + y)/2) \le (F(x) + F(y))/2$$ F = -(1 - p_1)^2 log p_1. Lin et al. (2017)."""

    def focal(v):
        log = jax.nn.log_softmax(v)[0]
        return -((1 - jnp.exp(log)) ** 2) * log

    return focal((x + y) / 2), c * (focal(x) + focal(y)) / 2
