"""False statements of optimisation, learning and attention."""

import jax
import jax.numpy as jnp
import numpy as np

import attlas as at

HALF = [at.Control("half of the right side", c=0.5)]
softmax = jax.nn.softmax


def entropy(x):
    p = softmax(x)
    return -jnp.sum(p * jax.nn.log_softmax(x))


def logits(rng, count):
    return {"x": rng.normal(size=(count, 6)), "y": rng.normal(size=(count, 6))}


def tokens(rng, count):
    return {"X": rng.normal(size=(count, 4, 2)), "Y": rng.normal(size=(count, 4, 2))}


def vectors(rng, count):
    return {name: rng.normal(size=(count, 3)) for name in ("x", "y", "z")}


def points(rng, count):
    return {"x": rng.normal(size=(count, 6, 2))}


def curvatures(rng, count):
    h = rng.choice([1.0, 25.0], size=(count, 8))
    return {"h": h, "x0": rng.uniform(-4, 4, size=count)}


def regression(rng, count):
    return {
        "A": rng.normal(size=(count, 4, 3)),
        "b": rng.normal(size=(count, 4)),
        "r": rng.uniform(0.01, 1, size=count),
    }


def slope_of(h):
    """Slope of a convex function with curvature h_k between k - 4 and k - 3, minimal at 0."""

    def slope(x):
        start = jnp.arange(-4.0, 4.0)
        low = jnp.where(start > -4, start, -jnp.inf)
        high = jnp.where(start < 3, start + 1, jnp.inf)
        return jnp.sum(h * (jnp.clip(x, low, high) - jnp.clip(0.0, low, high)))

    return slope


def accelerated(h, x, steps):
    """The points of Nesterov's method with step 1 on a quadratic function of curvatures h."""
    y, points = x, []
    for k in range(steps):
        after = y - h * y
        y, x = after + k / (k + 3) * (after - x), after
        points.append(x)
    return points


def self_attention(X):
    return softmax(X @ X.T) @ X


def distances(x, power):
    return jnp.sum(jnp.abs(x[:, None] - x[None]) ** power, axis=-1)


def least_eigenvalue(K, c):
    return at.Sides(1.0 - c, jnp.linalg.eigvalsh(K)[0], magnitude=len(K) * jnp.max(jnp.abs(K)))


@at.inequality(sample=logits, controls=HALF)
def entropy_is_lipschitz(x, y, *, c=1.0):
    r"""$$|H(\sigma(x)) - H(\sigma(y))| \le \|x - y\|_\infty$$ for six logits. Cover, Thomas, 17.3."""
    return jnp.abs(entropy(x) - entropy(y)), c * jnp.max(jnp.abs(x - y))


@at.inequality(sample=logits, controls=HALF)
def softmax_in_one_norm(x, y, *, c=1.0):
    r"""$$\|\sigma(x) - \sigma(y)\|_1 \le 0.95 \|x - y\|_\infty$$ The constant is 1: Gao, Pavel (2017)."""
    return jnp.sum(jnp.abs(softmax(x) - softmax(y))), c * 0.95 * jnp.max(jnp.abs(x - y))


@at.inequality(sample=tokens, controls=HALF)
def attention_is_lipschitz(X, Y, *, c=1.0):
    r"""$$\|f(X) - f(Y)\|_F \le 5 \|X - Y\|_F$$ for f = softmax(X X^T) X. Kim, Papamakarios, Mnih (2021)."""
    return jnp.linalg.norm(self_attention(X) - self_attention(Y)), c * 5 * jnp.linalg.norm(X - Y)


@at.inequality(
    sample=lambda rng, count: {
        "Z": rng.normal(size=(count, 4, 4)),
        "X": rng.normal(size=(count, 4, 2)),
    },
    controls=HALF,
)
def attention_shrinks_the_residual(Z, X, *, c=1.0):
    r"""$$\|res(\sigma(Z) X)\|_F \le \|res(X)\|_F$$ res subtracts the mean row. Dong, Cordonnier, Loukas (2021)."""

    def residual(M):
        return jnp.linalg.norm(M - M.mean(axis=0, keepdims=True))

    return residual(softmax(Z) @ X), c * residual(X)


@at.inequality(sample=curvatures, controls=[at.Control("a tenth after no step", steps=0)])
def heavy_ball(h, x0, *, steps=120):
    r"""$$|x_{120}| \le |x_0| / 10$$ Polyak's parameters, curvature 1 or 25. Lessard, Recht, Packard (2016)."""
    step, momentum, slope = 4 / 36, (4 / 6) ** 2, slope_of(h)

    def move(_, pair):
        x, before = pair
        return x - step * slope(x) + momentum * (x - before), x

    last = jax.lax.fori_loop(0, steps, move, (x0, x0))[0]
    return jnp.abs(last), jnp.abs(x0) / 10 + 1e-9


@at.inequality(sample=curvatures, controls=HALF)
def newton_descends(h, x0, *, c=1.0):
    r"""$$|x - f'(x)/f''(x)| \le |x|$$ curvature 1 or 25. Boyd, Vandenberghe, Section 9.5."""
    slope = slope_of(h)
    curvature = h[jnp.clip(jnp.floor(x0 + 4).astype(int), 0, 7)]
    return jnp.abs(x0 - slope(x0) / curvature), c * jnp.abs(x0)


@at.inequality(
    sample=lambda rng, count: {"h": rng.uniform(0.05, 1, size=(count, 3)),
                               "x": rng.normal(size=(count, 3))},
    controls=HALF,
)  # fmt: skip
def accelerated_descent_is_monotone(h, x, *, c=1.0):
    r"""$$f(x_{10}) \le f(x_9)$$ Nesterov's method on quadratic functions. O'Donoghue, Candes (2015)."""
    values = [jnp.sum(h * point**2) for point in accelerated(h, x, 10)]
    return values[-1], c * values[-2]


@at.inequality(
    sample=lambda rng, count: {"h": rng.uniform(1, 10, size=(count, 3)),
                               "x": rng.normal(size=(count, 3))},
    controls=HALF,
)  # fmt: skip
def steepest_descent(h, x, *, c=1.0):
    r"""$$f(x_1) \le 0.95 (\frac{k-1}{k+1})^2 f(x_0)$$ exact line search; 1 is right: Kantorovich (1948)."""
    g = h * x
    after = x - jnp.sum(g**2) / jnp.sum(h * g**2) * g
    condition = jnp.max(h) / jnp.min(h)
    return jnp.sum(h * after**2), c * 0.95 * ((condition - 1) / (condition + 1)) ** 2 * jnp.sum(
        h * x**2
    )


@at.inequality(sample=lambda rng, count: {"x": 2 * rng.normal(size=(count, 2)),
                                          "a": 3 * rng.normal(size=count)},
               controls=HALF)  # fmt: skip
def mixture_is_log_concave(x, a, *, c=1.0):
    r"""$$m(x)\, m(y) \le m((x+y)/2)^2$$ m a mixture of N(0, 1) and N(a, 1). Boyd, Vandenberghe, Section 3.5."""

    def density(t):
        return jnp.exp(-(t**2) / 2) + jnp.exp(-((t - a) ** 2) / 2)

    return density(x[0]) * density(x[1]), c * density(x.mean()) ** 2


@at.inequality(sample=lambda rng, count: {"x": rng.normal(size=count), "y": rng.normal(size=count)},
               controls=HALF)  # fmt: skip
def gelu_is_lipschitz(x, y, *, c=1.0):
    r"""$$|g(x) - g(y)| \le 1.12 |x - y|$$ g = GELU; 1.129 is right. Hendrycks, Gimpel (2016)."""
    left = jnp.abs(jax.nn.gelu(x, approximate=False) - jax.nn.gelu(y, approximate=False))
    return left, c * 1.12 * jnp.abs(x - y)


@at.inequality(sample=lambda rng, count: {"x": rng.normal(size=count), "y": rng.normal(size=count)},
               controls=HALF)  # fmt: skip
def swish_is_lipschitz(x, y, *, c=1.0):
    r"""$$|g(x) - g(y)| \le 1.09 |x - y|$$ g = x sigmoid(x); 1.0998 is right. Ramachandran et al. (2017)."""
    return jnp.abs(jax.nn.silu(x) - jax.nn.silu(y)), c * 1.09 * jnp.abs(x - y)


@at.inequality(sample=regression, controls=HALF)
def ridge_shrinks_in_one_norm(A, b, r, *, c=1.0):
    r"""$$\|w_{2r}\|_1 \le \|w_r\|_1$$ ridge regression. Hastie, Tibshirani, Friedman, Section 3.4."""

    def w(r):
        return jnp.linalg.solve(A.T @ A + r * jnp.eye(3), A.T @ b)

    return jnp.sum(jnp.abs(w(2 * r))), c * jnp.sum(jnp.abs(w(r)))


@at.inequality(sample=vectors, controls=HALF)
def cosine_triangle(x, y, z, *, c=1.0):
    r"""$$d(x, z) \le 1.9\,(d(x, y) + d(y, z))$$ d one minus the cosine; 2 is right. Schubert (2021)."""

    def d(u, v):
        return 1 - jnp.sum(u * v) / jnp.linalg.norm(u) / jnp.linalg.norm(v)

    return d(x, z), c * 1.9 * (d(x, y) + d(y, z))


@at.inequality(sample=points, controls=[at.Control("one more", c=0.0)])
def cubic_kernel(x, *, c=1.0):
    r"""$$0 \le \lambda_{\min}(e^{-|x_i - x_j|_3^3})$$ Schoenberg (1938)."""
    return least_eigenvalue(jnp.exp(-distances(x, 3)), c)


@at.inequality(sample=points, controls=[at.Control("one more", c=0.0)])
def sigmoid_kernel(x, *, c=1.0):
    r"""$$0 \le \lambda_{\min}(\tanh(x_i \cdot x_j))$$ Smola, Ovari, Williamson (2000)."""
    return least_eigenvalue(jnp.tanh(x @ x.T), c)


@at.inequality(sample=lambda rng, count: {"g": rng.normal(size=(count, 12))}, controls=HALF)
def adam_step_is_bounded(g, *, c=1.0):
    r"""$$|\Delta_{12}| \le 1$$ in units of the learning rate, beta 0.9 and 0.999. Kingma, Ba (2015), Section 2.1."""
    m = v = 0.0
    for k in range(12):
        m, v = 0.9 * m + 0.1 * g[k], 0.999 * v + 0.001 * g[k] ** 2
    m, v = m / (1 - 0.9**12), v / (1 - 0.999**12)
    return jnp.abs(m), c * jnp.sqrt(v)


@at.inequality(sample=logits, controls=HALF)
def entropy_of_mean_logits(x, y, *, c=1.0):
    r"""$$\min(H(\sigma(x)), H(\sigma(y))) \le 2\, H(\sigma((x + y)/2))$$ Cover, Thomas, 2.7 is of p alone."""
    return jnp.minimum(entropy(x), entropy(y)), c * 2 * entropy((x + y) / 2)


@at.inequality(sample=lambda rng, count: {"x": rng.normal(size=(count, 6)),
                                          "b": rng.uniform(0, 3, size=(count, 2))},
               controls=HALF)  # fmt: skip
def variance_cools(x, b, *, c=1.0):
    r"""$$Var_{\sigma((b+c)x)} x \le 1.5\,Var_{\sigma(bx)} x$$ Wainwright, Jordan (2008), Section 3."""

    def variance(t):
        p = softmax(t * x)
        return jnp.sum(p * (x - jnp.sum(p * x)) ** 2)

    return variance(b[0] + b[1]), c * 1.5 * variance(b[0])


def votes(rng, count):
    return {"v": rng.choice([-1.0, 1.0], size=(count, 5, 6))}


@at.inequality(sample=votes, controls=[at.Control("a half more", more=0.5)])
def majority_is_better_than_its_members(v, *, more=0.0):
    r"""$$\min_k a_k \le a$$ a the accuracy of the vote of five, a_k of a member. Kuncheva et al. (2003)."""
    majority = jnp.mean(jnp.sign(jnp.sum(v, axis=0)) > 0)
    return jnp.min(jnp.mean(v > 0, axis=1)) + more, majority


def hamming_codes(rng, count):
    return {"u": rng.integers(0, 2, size=(count, 10)), "v": rng.integers(0, 2, size=(count, 10)),
            "w": rng.integers(0, 2, size=(count, 10))}  # fmt: skip


@at.inequality(sample=hamming_codes, controls=HALF)
def dice_is_a_metric(u, v, w, *, c=1.0):
    r"""$$D(u, w) \le D(u, v) + D(v, w)$$ Dice's dissimilarity of sets. Gower, Legendre (1986)."""

    def dice(a, b):
        size = jnp.sum(a) + jnp.sum(b)
        return jnp.where(size > 0, jnp.sum(jnp.abs(a - b)) / jnp.maximum(size, 1), 0.0)

    return dice(u, w), c * (dice(u, v) + dice(v, w))


@at.inequality(
    sample=lambda rng, count: {"x": np.sort(rng.uniform(-2, 2, size=(count, 2)), axis=1)},
    controls=HALF,
)
def polyak_lojasiewicz(x, *, c=1.0):
    r"""$$f((x+y)/2) \le (f(x) + f(y))/2$$ f = t^2 + 3 sin^2 t. Karimi, Nutini, Schmidt (2016)."""

    def f(t):
        return t**2 + 3 * jnp.sin(t) ** 2

    return f(x.mean()), c * (f(x[0]) + f(x[1])) / 2
