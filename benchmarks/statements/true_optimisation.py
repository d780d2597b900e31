"""True statements of convex analysis, descent and the losses of classifiers."""

import jax
import jax.numpy as jnp

import attlas as at
from benchmarks.statements.false_learning import HALF, entropy, logits, softmax
from benchmarks.statements.false_optimisation import around_sign_step, curved, scalars


@at.inequality(sample=logits, controls=HALF)
def divergence_by_range(x, y, *, c=1.0):
    r"""$$KL(\sigma(x), \sigma(y)) \le (\max(x - y) - \min(x - y))^2 / 8$$ Hoeffding (1963)."""
    left = jnp.sum(softmax(x) * (jax.nn.log_softmax(x) - jax.nn.log_softmax(y)))
    return left, c * (jnp.max(x - y) - jnp.min(x - y)) ** 2 / 8


@at.inequality(sample=logits, controls=HALF)
def log_loss_of_mean_logits(x, y, *, c=1.0):
    r"""$$\ell((x + y)/2) \le (\ell(x) + \ell(y))/2$$ \ell = -log p_1. Boyd, Vandenberghe, Section 3.1."""

    def loss(v):
        return -jax.nn.log_softmax(v)[0]

    return loss((x + y) / 2), c * (loss(x) + loss(y)) / 2


@at.inequality(
    sample=lambda rng, count: {"x": rng.normal(size=(count, 6)),
                               "b": rng.uniform(0, 3, size=(count, 2))},
    controls=HALF,
)  # fmt: skip
def heat_raises_entropy(x, b, *, c=1.0):
    r"""$$H(\sigma((b + d) x)) \le H(\sigma(b x))$$ for b, d >= 0. Cover, Thomas, Section 12.1."""
    return entropy((b[0] + b[1]) * x), c * entropy(b[0] * x)


@at.inequality(sample=scalars, controls=HALF)
def softplus_is_subadditive(x, y, *, c=1.0):
    r"""$$s(x + y) \le s(x) + s(y)$$ s the softplus. Dugas et al. (2001)."""
    return jax.nn.softplus(x + y), c * (jax.nn.softplus(x) + jax.nn.softplus(y))


@at.inequality(
    sample=lambda rng, count: {"h": rng.uniform(0.05, 1, size=(count, 3)),
                               "x": rng.normal(size=(count, 3)), "s": rng.uniform(0, 2, count)},
    controls=HALF,
)  # fmt: skip
def gradient_descent_approaches(h, x, s, *, c=1.0):
    r"""$$|x - s f'(x)|_2 \le |x|_2$$ on quadratics with curvature at most 1, s <= 2. Nesterov, Section 2.1."""
    return jnp.linalg.norm(x - s * h * x), c * jnp.linalg.norm(x)


@at.inequality(sample=curved, controls=HALF)
def short_sign_step_descends(A, x, *, c=1.0):
    r"""$$f(x - \frac{|g|_1}{3L} sign(g)) \le f(x)$$ in three dimensions. Balles, Pedregosa, Le Roux (2020)."""
    before, after = around_sign_step(A, x, 1 / 3)
    return after, c * before
