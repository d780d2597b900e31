r"""How smooth is attention (Castin, Ablin and Peyré 2024): Lipschitz constants on balls.

Our text of the statements is from memory; the authors' published code agrees with the points of the
lower bound. Tokens are the n rows of X, logits x_i' A x_j, outputs f_i = V sum_j p_ij x_j. All
norms are Euclidean (of matrices spectral, of X Frobenius), so that the local Lipschitz constant is
the spectral norm of the Jacobian. R is the radius of the ball that holds all tokens.
"""

import jax
import jax.numpy as jnp
import numpy as np
from castin2024_attention import (
    ROUNDINGS,
    attention,
    full,
    heads_weak_and_wide,
    inside,
    into_ball,
    jacobian,
    masked_heads,
)

import attlas as at
from attlas._jax.factorising import after, svd
from attlas.claims.claim import Sides, Source, Status
from attlas.norms.matrix import spectral_norm


@at.identity(
    "The Jacobian",
    sample=masked_heads,
    alike=True,
    roundings=ROUNDINGS,
    controls=[
        at.Control("without the tokens that ask", asking=0.0),
        at.Control("without the tokens that are asked", asked=0.0),
    ],
)
def local_constant(X, A, V, seen, *, asking=1.0, asked=1.0):
    r"""$$\frac{\partial f_i}{\partial x_k}=V\big(p_{ik}I+[i=k]\,C_iA^\top
    +p_{ik}(x_k-m_i)x_i^\top A\big)$$

    $m_i$ and $C_i$ are mean and covariance of the tokens under row i. Automatic differentiation
    on the left; any mask.
    """
    n, d = X.shape
    derivative = jax.jacfwd(lambda rows: attention(rows, A, V, seen))(X).reshape(n * d, n * d)
    length = jnp.sqrt(jnp.max(jnp.sum(X**2, axis=-1)))
    logits = jnp.linalg.norm(A) * length**2
    size = jnp.linalg.norm(V) * (1 + logits) * (1 + logits)
    return Sides(derivative, jacobian(X, A, V, seen, asking, asked), magnitude=size)


def _norms(X, A, V, seen):
    """Norms of the Jacobian, of A and of V."""
    J = spectral_norm(jacobian(X, A, V, seen))
    core = spectral_norm(after(A, J))
    return J, core, spectral_norm(after(V, core))


def _theorem(core, value, R, n):
    return value * jnp.sqrt(3 * (core**2 * R**4 * (4 * n + 1) + n))


@at.inequality(
    "General bound",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=heads_weak_and_wide,
    assumptions=[inside],
    search_over=("X", "A", "V"),
    project=into_ball,
    count=96,
    roundings=ROUNDINGS,
    controls=[
        at.Control("0.36 of the bound", factor=0.36),
        at.Control("R^2 in place of R^4", power=2.0),
    ],
)
def general_bound(X, A, V, seen, R, n, *, factor=1.0, power=4.0):
    r"""$$\|D_Xf\|_2\le\sqrt3\,\|V\|_2\sqrt{\|A\|_2^2R^4(4n+1)+n},\quad|x_i|\le R$$

    Two tokens or more, all seen. Not attained: the three parts of the Jacobian have norms at most
    $\|V\|$ times $\sqrt n$, $\kappa\sqrt n\|A\|R^2$ and $\|A\|R^2$ with $\kappa=4/(3\sqrt3)$, and
    their sum is at most 0.737 of the right side (the ball certificate of attlas).
    """
    J, core, value = _norms(X, A, V, seen)
    scaled = core * R ** (power / 2 - 2)
    return J, factor * _theorem(scaled, value, R, n)


@at.inequality(
    "General bound, masked",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=masked_heads,
    assumptions=[inside],
    search_over=("X", "A", "V"),
    project=into_ball,
    count=96,
    roundings=ROUNDINGS,
    controls=[at.Control("0.36 of the bound", factor=0.36)],
)
def general_bound_masked(X, A, V, seen, R, n, *, factor=1.0):
    r"""$$\|D_Xf^m\|_2\le\sqrt3\,\|V\|_2\sqrt{\|A\|_2^2R^4(4n+1)+n},\quad|x_i|\le R$$

    The same for causal attention: a mask leaves out terms of sums of non-negative numbers.
    """
    J, core, value = _norms(X, A, V, seen)
    return J, factor * _theorem(core, value, R, n)


def eigenvectors(rng, count, n=16, d=3):
    """Symmetric and other matrices A with a real eigenvalue, any V, 2 to 16 tokens.

    The points are those of the authors' code: one token at the eigenvector u of length R and the
    others at u/2 for a positive eigenvalue, or one at -u and the others at u for a negative one.
    """
    tokens = rng.integers(2, n + 1, count)
    A = rng.normal(size=(count, d, d))
    A[::2] = (A + np.swapaxes(A, 1, 2))[::2]
    value, u = np.zeros(count), np.zeros((count, d))
    for place in range(count):
        values, vectors = np.linalg.eig(A[place])
        real = np.flatnonzero(np.abs(values.imag) < 1e-12)
        best = real[np.argmax(np.maximum(values[real].real / 8, -values[real].real))]
        value[place], u[place] = values[best].real, vectors[:, best].real
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    R = 10 ** rng.uniform(-0.5, 0.7, count)
    places = np.where(value > 0, 0.5, 1.0)[:, None] * np.ones(n)
    places[:, 0] = np.where(value > 0, 1.0, -1.0)
    V = rng.normal(size=(count, d, d))
    V[::3] = np.eye(d)
    X = R[:, None, None] * places[:, :, None] * u[:, None]
    seen = full(tokens, n)
    return {"X": X * seen[:, 0, :, None], "A": A, "V": V, "seen": seen, "R": R, "n": tokens * 1.0,
            "value": value}  # fmt: skip


@at.inequality(
    "Lower bound",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=eigenvectors,
    count=64,
    roundings=ROUNDINGS,
    controls=[
        at.Control("n in place of its root", power=1.0),
        at.Control("without the denominator", exponent=1e6),
    ],
)
def lower_bound(X, A, V, seen, R, n, value, *, power=0.5, exponent=2.0):
    r"""$$\sigma_2(V)\,\frac{\sqrt{n-1}}{1+(n-1)e^{-2R^2\gamma}}\le\|D_Xf\|_2,\quad
    \gamma=\max(-\lambda,\lambda/8)$$

    At the authors' points, for a real eigenvalue $\lambda$ of A; with V = I, where $\sigma_2=1$, as
    recalled. Proof: all other rows give the first token the weight $1/(1+(n-1)e^{-2R^2\gamma})$,
    and a move of it across $A^\top u$ changes no logit.
    """
    gamma = jnp.maximum(value / 8, -value)
    second = svd(V, compute_uv=False)[1]
    J = spectral_norm(after(jacobian(X, A, V, seen), second))
    left = second * (n - 1) ** power / (1 + (n - 1) * jnp.exp(-exponent * R**2 * gamma))
    # The eigenvector u of X is a computed one: its logits are off by R^2 |Au - value u|.
    u = X[0] / jnp.linalg.norm(X[0])
    apart = R**2 * jnp.linalg.norm(A @ u - value * u)
    return Sides(left, J, error=4 * apart * left)


def asymmetric(rng, count, d=3):
    """Heads whose logits vanish at the tokens, and not their derivatives: A' e_1 = 0, A e_1 not."""
    tokens = rng.integers(2, 6, count)
    seen = full(tokens, 5)
    X, A = np.zeros((count, 5, d)), np.zeros((count, d, d))
    X[:, :, 0] = np.where(np.arange(5) % 2 > 0, 1.0, -1.0) * 10 ** rng.uniform(0, 1, (count, 1))
    A[:, 1, 0] = 10 ** rng.uniform(0, 1, count)
    return {"X": X * seen[:, 0, :, None], "A": A, "V": np.eye(d) * np.ones((count, 1, 1)),
            "seen": seen, "n": tokens * 1.0}  # fmt: skip


@at.erratum(
    "Published code, compute_bound",
    Source.FOUND,
    sample=asymmetric,
    roundings=ROUNDINGS,
    reason="the derivative by the asking token has A x_j in it, the bound only A' x_i",
    corrected=at.Control("rho of A and A', and sqrt(1.4) before the root", both=1.0, share=1.4),
    controls=[at.Control("half of the published bound", factor=0.5)],
)
def bound_of_the_code(X, A, V, seen, n, *, both=0.0, share=1.0, factor=1.0):
    r"""$$\|D_Xf\|_2\le\|V\|_2\sqrt{\rho^2r^2(n+1)+n},\quad
    \rho=\max_i|A^\top x_i|,\ r=\max_{i,j}|x_i-x_j|$$

    `adversarial_data/toolbox.py` of the authors' repository (their A is our A', and their sum over
    heads has one term here). For $X=(s,-s,\dots)e_1$ and $A=ae_2e_1^\top$ all logits are 0 and
    $\rho=0$, but a token that moves along $e_2$ changes its logits by $\pm as$: the norm is at
    least $as^2$ for an even n. With $\rho$ the larger of $\max|A^\top x_i|$ and $\max|Ax_i|$ and a
    factor $\sqrt{1.4}$ it holds: the parts are at most $\sqrt n$, $\tfrac2{3\sqrt3}\sqrt n\,\rho r$
    and $\rho r/2$, and Cauchy-Schwarz.
    """
    J, _, value = _norms(X, A, V, seen)
    by_key, by_query = (jnp.sqrt(jnp.max(jnp.sum((X @ B) ** 2, axis=1))) for B in (A, A.T))
    rho = jnp.where(both > 0, jnp.maximum(by_key, by_query), by_key)
    apart = jnp.sum((X[:, None] - X[None, :]) ** 2, axis=-1)
    r = jnp.sqrt(jnp.max(jnp.where(seen > 0, apart, 0.0)))
    return J, factor * value * jnp.sqrt(share * (rho**2 * r**2 * (n + 1) + n))
