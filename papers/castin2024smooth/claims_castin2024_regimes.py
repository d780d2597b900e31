r"""How smooth is attention: growth with the length and the radius, and the mean-field regime.

Tokens are the n rows of X, logits x_i' A x_j, outputs f_i = V sum_j p_ij x_j; norms of X are
Frobenius. Our text of the statements is from memory.
"""

import jax
import jax.numpy as jnp
import numpy as np
from castin2024_attention import ROUNDINGS, full, gain, inside, jacobian

import attlas as at
from attlas._jax.factorising import after
from attlas.claims.claim import Sides, Source, Status
from attlas.norms.matrix import spectral_norm

LENGTHS = 2.0 ** np.arange(3, 8)


def long_heads(rng, count, d=3):
    """Directions u of an eigenvalue of one sign, and the logit of a token with itself."""
    turn = np.linalg.qr(rng.normal(size=(count, d, d)))[0]
    return {"u": turn[:, 0], "logit": rng.uniform(20, 24, count), "v": turn[:, 1],
            "sign": rng.choice([-1.0, 1.0], count)}  # fmt: skip


def _adversarial(u, logit, sign, tokens, size):
    """X, A and what is seen: R = 1, A = sign gap u u', the others lose by twice `logit`."""
    A = jnp.where(sign > 0, 8.0, -1.0) * logit * jnp.outer(u, u)
    others = jnp.where(sign > 0, 0.5, -1.0) * jnp.ones(size)
    there = jnp.arange(size) < tokens
    X = jnp.where(there, others.at[0].set(1.0), 0.0)[:, None] * u
    return X, A, (there[:, None] & there[None, :]) * 1.0


@at.rate(
    "Growth with the length",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=long_heads,
    scales=LENGTHS,
    roundings=ROUNDINGS,
    controls=[
        at.Control("n in place of its root", power=1.0),
        at.Control("a little more than the root", power=0.55),
    ],
)
def growth_with_length(u, v, logit, sign, *, power=0.5):
    r"""$$\sqrt n=O(\|D_{X_n}f\|_2)\quad\text{while }n\ll e^{2R^2\gamma}$$

    8 to 128 tokens at the authors' points, $2R^2\gamma$ from 40 to 48, V = I. So the root of n in
    the general bound is needed for any number of tokens that occurs.
    """

    def norm(tokens):
        X, A, seen = _adversarial(u, logit, sign, tokens, 128)
        D = jnp.zeros_like(X).at[0].set(v)
        return gain(X, A, jnp.eye(3), seen, D, turns=2)

    return jnp.asarray(LENGTHS) ** power, jax.lax.map(norm, jnp.asarray(LENGTHS))


def measures(rng, count, n=128, d=3):
    """2 to 128 tokens, all of which see each other; every second instance is adversarial."""
    tokens = np.round(2 ** rng.uniform(1, 7, count)).astype(int)
    tokens[::4] = n
    seen = full(tokens, n)
    X = rng.normal(size=(count, n, d))
    A = rng.normal(size=(count, d, d)) * 10 ** rng.uniform(-2, 0.5, (count, 1, 1))
    V, D = rng.normal(size=(count, d, d)), rng.normal(size=(count, n, d))
    for place in range(0, count, 2):
        # 128 tokens read one at logits at which the exponential counts, or any number of tokens
        # reads with hardly any logits, where the sharpened bound is attained.
        size = 10 ** rng.uniform(-3, -1) if place % 4 else rng.uniform(2.5, 4.5)
        A[place], V[place] = np.diag([-size, 0, 0]), np.eye(d)
        X[place], X[place, :, 0] = 0, 1.0
        X[place, 0, 0], D[place], D[place, 0, 1] = -1.0, 0, 1.0
    longest = np.linalg.norm(X, axis=-1).max(axis=1)[:, None, None]
    return {"X": X / longest * seen[:, 0, :, None], "A": A, "V": V, "seen": seen, "D": D,
            "n": tokens * 1.0, "R": np.ones(count)}  # fmt: skip


def _mean_field(X, A, V, seen, D):
    core = spectral_norm(A)
    return gain(X, A, V, seen, D, turns=2), core, spectral_norm(after(V, core))


_MEASURES = {
    "sample": measures,
    "assumptions": [inside],
    "search_over": ("A", "V", "D"),
    "count": 40,
    "roundings": 4096,
}


@at.inequality(
    "Mean-field bound",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    controls=[
        at.Control("without the exponential", exponent=0.0, linear=0.0),
        at.Control("a tenth of the bound", factor=0.1),
    ],
    **_MEASURES,
)
def mean_field_bound(X, A, V, seen, D, R, *, exponent=2.0, linear=3.0, factor=1.0):
    r"""$$\|D_Xf\|_2\le\|V\|_2\,(1+3\|A\|_2R^2)\,e^{2\|A\|_2R^2}$$

    As recalled for the distance $W_2$ of measures on the ball, stated here for n equal masses, 2 to
    128 tokens that all see each other; |JD|/|D| stands for the norm.
    """
    J, core, value = _mean_field(X, A, V, seen, D)
    x = core * R**2
    return J, factor * value * (1 + linear * x) * jnp.exp(exponent * x)


@at.inequality(
    "Mean-field bound, sharpened",
    status=Status.SHARPENED,
    controls=[
        at.Control("without the exponential", exponent=0.0),
        at.Control("nine tenths of the bound", factor=0.9),
    ],
    **_MEASURES,
)
def mean_field_sharpened(X, A, V, seen, D, R, n, *, exponent=2.0, factor=1.0):
    r"""$$\|D_Xf\|_2\le\|V\|_2\Big[\sqrt{c_n}\,(1+x)+x\Big],\quad
    c_n=\frac{n\,e^{2x}}{e^{2x}+n-1}\le\min(n,e^{2x}),\ x=\|A\|_2R^2$$

    One formula for both regimes: at most $(1+2x)e^x$ for every n, with half of the exponent, and
    the root of n below. Proof: weights are at most $e^{2x}/(e^{2x}+n-1)$, as logits lie in
    $[-x,x]$; so columns of P sum to at most $c_n$ and $\|P\|_2\le\sqrt{c_n}$. Variances are at most
    $R^2$, and the tokens that are asked contribute $(\max_j\sum_i\lambda_ip_{ij}|A^\top
    x_i|^2)^{1/2}$.
    """
    J, core, value = _mean_field(X, A, V, seen, D)
    x = core * R**2
    odds = jnp.exp(exponent * x)
    columns = n * odds / (odds + n - 1)
    return J, factor * value * (jnp.sqrt(columns) * (1 + x) + x)


RADII = 2.0 ** (np.arange(5) / 4)


def generic(rng, count, n=5, d=3):
    """Random tokens and matrices; at the first radius the least gap of two logits is 40."""
    X, A = rng.normal(size=(count, n, d)), rng.normal(size=(count, d, d))
    ordered = np.sort(np.einsum("cia,cab,cjb->cij", X, A, X), axis=-1)
    gap = (ordered[..., -1] - ordered[..., -2]).min(axis=1)
    return {"X": X * np.sqrt(40 / gap)[:, None, None], "A": A, "V": rng.normal(size=(count, d, d))}


@at.limit(
    "Large radius",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=generic,
    scales=RADII,
    roundings=ROUNDINGS,
    controls=[
        at.Control("the root of n for every X", all_=1.0),
        at.Control("the norm of V alone", power=0.0),
    ],
)
def large_radius(X, A, V, *, all_=0.0, power=0.5):
    r"""$$\lim_{R\to\infty}\|D_{RX}f\|_2=\|V\|_2\,\sqrt{\max_k\#\{i:\arg\max_jx_i^\top Ax_j=k\}}
    \le\|V\|_2\sqrt n$$

    For X without ties. All rows become one-hot exponentially fast, covariances vanish, and
    $\|P\|_2^2$ is the most rows that read one token. As recalled the right end, in our form. At
    the last four radii the weights of all other tokens are below $e^{-56}$, and each instance has
    reached the limit to rounding. At smaller radii one radius is far from it and the next is there.
    """
    n = len(X)
    reads = jnp.argmax(X @ A @ X.T, axis=1)
    most = jnp.max(jnp.sum(reads[:, None] == jnp.arange(n)[None, :], axis=0))
    value = spectral_norm(V)

    def norm(R):
        return spectral_norm(after(jacobian(R * X, A, V, jnp.ones((n, n))), value))

    norms = jax.lax.map(norm, jnp.asarray(RADII))
    right = value * jnp.where(all_ > 0, n, most) ** power
    # Covariances of vanishing weights are differences of terms of size |X|^2.
    size = value * (1 + jnp.linalg.norm(A) * jnp.sum((RADII[-1] * X) ** 2))
    return Sides(norms, jnp.broadcast_to(right, norms.shape), magnitude=size)


BALLS = 2.0 ** np.arange(4, 10)


@at.rate(
    "No constant on the whole space",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=generic,
    scales=BALLS,
    roundings=ROUNDINGS,
    controls=[at.Control("a power more", power=3.0)],
)
def no_global_constant(X, A, V, *, power=2.0):
    r"""$$R^2=O\Big(\sup_{|x_i|\le R}\|D_Xf\|_2\Big)$$

    One token asks from the origin, where all weights are equal, and the others stand at R and -R
    times one unit vector: the block of that token is $V(I/n+C_1A^\top)$ with $C_1$ of size $R^2$.
    So dot-product attention has no Lipschitz constant (Kim et al. 2021), and $R^4$ under the root
    is of the right order.
    """
    u = X[0] / jnp.linalg.norm(X[0])
    signs = jnp.asarray([0.0, 1.0, -1.0, 1.0, -1.0])

    def norm(R):
        return spectral_norm(jacobian(R * signs[:, None] * u, A, V, jnp.ones((5, 5))))

    return jnp.asarray(BALLS) ** power, jax.lax.map(norm, jnp.asarray(BALLS))
