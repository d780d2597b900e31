"""True statements of optimisation, learning and attention."""

import jax
import jax.numpy as jnp

import attlas as at
from benchmarks.statements.false_learning import (
    HALF,
    distances,
    hamming_codes,
    least_eigenvalue,
    logits,
    points,
    regression,
    softmax,
    tokens,
    vectors,
)


@at.inequality(sample=logits, controls=[at.Control("a third of the right side", c=1 / 3)])
def softmax_half_lipschitz(x, y, *, c=1.0):
    r"""$$\|\sigma(x) - \sigma(y)\|_2 \le \|x - y\|_2 / 2$$ Gao, Pavel (2017)."""
    left = jnp.linalg.norm(softmax(x) - softmax(y))
    return at.Sides(left, c * jnp.linalg.norm(x - y) / 2, magnitude=1.0)


@at.inequality(sample=logits, controls=HALF)
def softmax_one_norm(x, y, *, c=1.0):
    r"""$$\|\sigma(x) - \sigma(y)\|_1 \le \|x - y\|_\infty$$ Gao, Pavel (2017)."""
    left = jnp.sum(jnp.abs(softmax(x) - softmax(y)))
    return at.Sides(left, c * jnp.max(jnp.abs(x - y)), magnitude=1.0)


@at.inequality(sample=tokens, controls=HALF)
def attention_shrinks_ranges(X, Y, *, c=1.0):
    r"""$$range(\sigma(Y Y^T) X) \le range(X)$$ of the first column. Seneta, Non-negative Matrices, 3.1."""

    def spread(v):
        return jnp.max(v) - jnp.min(v)

    left = spread((softmax(Y @ Y.T) @ X)[:, 0])
    return at.Sides(left, c * spread(X[:, 0]), magnitude=jnp.max(jnp.abs(X)))


@at.inequality(
    sample=lambda rng, count: {"h": rng.uniform(1, 10, size=(count, 3)),
                               "x": rng.normal(size=(count, 3))},
    controls=HALF,
)  # fmt: skip
def kantorovich(h, x, *, c=1.0):
    r"""$$f(x_1) \le (\frac{k-1}{k+1})^2 f(x_0)$$ exact line search on quadratics. Kantorovich (1948)."""
    g = h * x
    after = x - jnp.sum(g**2) / jnp.sum(h * g**2) * g
    rate = ((jnp.max(h) - jnp.min(h)) / (jnp.max(h) + jnp.min(h))) ** 2
    before = jnp.sum(h * x**2)
    return at.Sides(jnp.sum(h * after**2), c * rate * before, magnitude=before)


@at.inequality(sample=lambda rng, count: {"x": rng.normal(size=count), "y": rng.normal(size=count)},
               controls=HALF)  # fmt: skip
def swish(x, y, *, c=1.0):
    r"""$$|g(x) - g(y)| \le 1.1 |x - y|$$ g = x sigmoid(x). Ramachandran et al. (2017)."""
    left = jnp.abs(jax.nn.silu(x) - jax.nn.silu(y))
    return at.Sides(left, c * 1.1 * jnp.abs(x - y), magnitude=jnp.abs(x) + jnp.abs(y))


@at.inequality(sample=regression, controls=HALF)
def ridge_shrinks(A, b, r, *, c=1.0):
    r"""$$\|w_{2r}\|_2 \le \|w_r\|_2$$ ridge regression. Hastie, Tibshirani, Friedman, Section 3.4."""

    def w(r):
        return jnp.linalg.solve(A.T @ A + r * jnp.eye(3), A.T @ b)

    return jnp.linalg.norm(w(2 * r)), c * jnp.linalg.norm(w(r))


@at.inequality(sample=vectors, controls=HALF)
def angles_are_a_metric(x, y, z, *, c=1.0):
    r"""$$\angle(x, z) \le \angle(x, y) + \angle(y, z)$$ Schubert (2021)."""

    def angle(u, v):
        u, v = u / jnp.linalg.norm(u), v / jnp.linalg.norm(v)
        return 2 * jnp.arctan2(jnp.linalg.norm(u - v), jnp.linalg.norm(u + v))

    return at.Sides(angle(x, z), c * (angle(x, y) + angle(y, z)), magnitude=3.2)


@at.inequality(sample=points, controls=[at.Control("one more", c=0.0)])
def laplace_kernel(x, *, c=1.0):
    r"""$$0 \le \lambda_{\min}(e^{-|x_i - x_j|_1})$$ Schoenberg (1938)."""
    return least_eigenvalue(jnp.exp(-distances(x, 1)), c)


@at.inequality(sample=points, controls=[at.Control("one more", c=0.0)])
def exponential_kernel(x, *, c=1.0):
    r"""$$0 \le \lambda_{\min}(e^{x_i \cdot x_j})$$ Schoelkopf, Smola, Learning with Kernels, 13.1."""
    return least_eigenvalue(jnp.exp(x @ x.T), c)


@at.inequality(sample=hamming_codes, controls=HALF)
def jaccard_is_a_metric(u, v, w, *, c=1.0):
    r"""$$J(u, w) \le J(u, v) + J(v, w)$$ Jaccard's distance of sets. Levandowsky, Winter (1971)."""

    def jaccard(a, b):
        union = jnp.sum(jnp.maximum(a, b))
        return jnp.where(union > 0, jnp.sum(jnp.abs(a - b)) / jnp.maximum(union, 1), 0.0)

    return jaccard(u, w), c * (jaccard(u, v) + jaccard(v, w))


@at.inequality(
    sample=lambda rng, count: {"x": rng.normal(size=(count, 4)), "y": rng.normal(size=(count, 4))},
    controls=HALF,
)
def clipping_does_not_expand(x, y, *, c=1.0):
    r"""$$\|P x - P y\|_2 \le \|x - y\|_2$$ P clips the norm to 1. Zarantonello (1971)."""

    def clip(v):
        return v / jnp.maximum(1.0, jnp.linalg.norm(v))

    size = jnp.linalg.norm(x) + jnp.linalg.norm(y)
    return at.Sides(jnp.linalg.norm(clip(x) - clip(y)), c * jnp.linalg.norm(x - y), magnitude=size)
