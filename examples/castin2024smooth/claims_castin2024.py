r"""How smooth is attention (Castin, Ablin and Peyré 2024): Lipschitz constants on balls.

Our text of the statements is from memory; the authors' published code agrees with the points of the
lower bound. Tokens are the n rows of X, logits x_i' A x_j, outputs f_i = V sum_j p_ij x_j. All norms
are Euclidean (of matrices spectral, of X Frobenius), so that the local Lipschitz constant is the
spectral norm of the Jacobian. R is the radius of the ball that holds all tokens.
"""

import jax
import jax.numpy as jnp
import numpy as np

import attlas as at
from attlas.core.claim import Sides, Source, Status
from attlas.core.factorising import after, svd
from attlas.core.norms.matrix import spectral_norm

ROUNDINGS = 1024


def weights(X, A, seen):
    """Attention of rows that see something; the others are zero."""
    logits = jnp.where(seen > 0, X @ A @ X.T, -jnp.inf)
    top = jnp.max(logits, axis=1, keepdims=True)
    sizes = jnp.exp(logits - jnp.where(jnp.isfinite(top), top, 0.0))
    total = jnp.sum(sizes, axis=1, keepdims=True)
    return sizes / jnp.where(total > 0, total, 1.0)


def attention(X, A, V, seen):
    """The outputs, one row per token."""
    return weights(X, A, seen) @ X @ V.T


def jacobian(X, A, V, seen, asking=1.0, asked=1.0):
    r"""Blocks V (p_ik I + [i = k] C_i A' + p_ik (x_k - m_i) x_i' A), as one matrix."""
    n, d = X.shape
    P = weights(X, A, seen)
    apart = X[None] - (P @ X)[:, None]
    C = jnp.einsum("ik,ika,ikb->iab", P, apart, apart)
    blocks = P[:, :, None, None] * jnp.eye(d)
    blocks = blocks + asking * jnp.eye(n)[:, :, None, None] * (C @ A.T)[:, None]
    blocks = blocks + asked * P[:, :, None, None] * apart[:, :, :, None] * (X @ A)[:, None, None]
    return jnp.einsum("ab,ikbc->iakc", V, blocks).reshape(n * d, n * d)


def gain(X, A, V, seen, D, turns=4):
    """|J D| / |D| after a few power iterations from D: at most the norm of the Jacobian."""

    def forward(rows):
        return attention(rows, A, V, seen)

    _, backward = jax.vjp(forward, X)
    for _ in range(turns):
        (D,) = backward(jax.jvp(forward, (X,), (D / jnp.linalg.norm(D),))[1])
    return jnp.linalg.norm(jax.jvp(forward, (X,), (D / jnp.linalg.norm(D),))[1])


def full(tokens, size):
    """Which tokens see which: the first ones all of themselves."""
    there = np.arange(size) < np.asarray(tokens)[:, None]
    return (there[:, :, None] & there[:, None, :]) * 1.0


def heads(rng, count, n=5, d=3, least=2):
    """Tokens in the unit ball times R, 2 to n of them; the first third random.

    The second third has the authors' adversarial points, one token that all others read; in the
    last third one token asks from the origin and the others stand in pairs at the ends.
    """
    tokens = rng.integers(least, n + 1, count)
    seen = full(tokens, n)
    A = rng.normal(size=(count, d, d)) * 10 ** rng.uniform(-2, 1, (count, 1, 1))
    V = rng.normal(size=(count, d, d))
    X = rng.normal(size=(count, n, d))
    R = 10 ** rng.uniform(-0.5, 1.2, count)
    for one in range(1, count, 3):
        A[one] = np.diag([rng.choice([-1.0, 1.0]), 0, 0][:d]) * 10 ** rng.uniform(-1, 1)
        X[one] = 0
        X[one, :, 0] = 0.5 if A[one, 0, 0] > 0 else -1.0
        X[one, 0, 0] = 1
        V[one] = np.eye(d)
    for one in range(2, count, 3):
        X[one] = 0
        X[one, 1:, 0] = np.where(np.arange(1, n) % 2 > 0, 1.0, -1.0)
        V[one], A[one] = np.eye(d)[0][:, None] * np.eye(d)[0], rng.choice([-1, 1]) * np.eye(d)
    longest = np.linalg.norm(X, axis=-1, keepdims=True).max(axis=1, keepdims=True)
    X = X / longest * R[:, None, None] * (seen.max(axis=2) > 0)[:, :, None]
    return {"X": X, "A": A, "V": V, "seen": seen, "R": R, "n": tokens * 1.0}


def masked_heads(rng, count):
    """The same, where a token sees only those before it and itself."""
    batch = heads(rng, count)
    return batch | {"seen": np.tril(batch["seen"])}


def into_ball(X, R):
    """Tokens outside the ball come back to its surface."""
    length = jnp.sqrt(jnp.sum(X**2, axis=-1, keepdims=True) + 1e-300)
    return {"X": X / jnp.maximum(1.0, length / R)}


inside = at.assume(
    r"$|x_i|\le R$", lambda X, R: jnp.max(jnp.sum(X**2, axis=-1)) <= R**2 * (1 + 1e-12)
)


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
    found = jax.jacfwd(lambda rows: attention(rows, A, V, seen))(X).reshape(n * d, n * d)
    length = jnp.sqrt(jnp.max(jnp.sum(X**2, axis=-1)))
    logits = jnp.linalg.norm(A) * length**2
    size = jnp.linalg.norm(V) * (1 + logits) * (1 + logits)
    return Sides(found, jacobian(X, A, V, seen, asking, asked), magnitude=size)


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
    sample=heads,
    assumptions=[inside],
    search_over=("X", "A", "V"),
    project=into_ball,
    count=96,
    roundings=ROUNDINGS,
    controls=[
        at.Control("0.4 of the bound", factor=0.4),
        at.Control("R^2 in place of R^4", power=2.0),
    ],
)
def general_bound(X, A, V, seen, R, n, *, factor=1.0, power=4.0):
    r"""$$\|D_Xf\|_2\le\sqrt3\,\|V\|_2\sqrt{\|A\|_2^2R^4(4n+1)+n},\quad|x_i|\le R$$

    Two tokens or more, all seen. Not attained: the three parts of the Jacobian have norms at most
    $\|V\|$ times $\sqrt n$, $\kappa\sqrt n\|A\|R^2$ and $\|A\|R^2$ with $\kappa=4/(3\sqrt3)$, and
    their sum is at most .737 of the right side (the ball certificate of attlas).
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
    controls=[at.Control("0.4 of the bound", factor=0.4)],
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
    for one in range(count):
        values, vectors = np.linalg.eig(A[one])
        real = np.flatnonzero(np.abs(values.imag) < 1e-12)
        best = real[np.argmax(np.maximum(values[real].real / 8, -values[real].real))]
        value[one], u[one] = values[best].real, vectors[:, best].real
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    R = 10 ** rng.uniform(-0.5, 0.7, count)
    places = np.where(value > 0, 0.5, 1.0)[:, None] * np.ones(n)
    places[:, 0] = np.where(value > 0, 1.0, -1.0)
    V = rng.normal(size=(count, d, d))
    V[::3] = np.eye(d)
    X = R[:, None, None] * places[:, :, None] * u[:, None]
    seen = full(tokens, n)
    gamma = np.maximum(value / 8, -value)
    return {"X": X * seen[:, 0, :, None], "A": A, "V": V, "seen": seen, "R": R, "n": tokens * 1.0,
            "gamma": gamma}  # fmt: skip


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
def lower_bound(X, A, V, seen, R, n, gamma, *, power=0.5, exponent=2.0):
    r"""$$\sigma_2(V)\,\frac{\sqrt{n-1}}{1+(n-1)e^{-2R^2\gamma}}\le\|D_Xf\|_2,\quad
    \gamma=\max(-\lambda,\lambda/8)$$

    At the authors' points, for a real eigenvalue $\lambda$ of A; with V = I, where $\sigma_2=1$, as
    recalled. Proof: all other rows give the first token the weight $1/(1+(n-1)e^{-2R^2\gamma})$, and
    a move of it across $A^\top u$ changes no logit.
    """
    second = svd(V, compute_uv=False)[1]
    J = spectral_norm(after(jacobian(X, A, V, seen), second))
    left = second * (n - 1) ** power / (1 + (n - 1) * jnp.exp(-exponent * R**2 * gamma))
    # The rank of what moves: eigenvectors are known to eps over the gap of the eigenvalues.
    return Sides(left, J, error=1e-9 * J)


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

    8 to 128 tokens at the authors' points, $2R^2\gamma$ from 40 to 48, V = I. So the root of n in the
    general bound is needed for any number of tokens that occurs.
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
    for one in range(0, count, 2):
        A[one], V[one] = np.diag([-rng.uniform(0, 5), 0, 0]), np.eye(d)
        X[one], X[one, :, 0] = 0, 1.0
        X[one, 0, 0], D[one], D[one, 0, 1] = -1.0, 0, 1.0
    longest = np.linalg.norm(X, axis=-1).max(axis=1)[:, None, None]
    return {"X": X / longest * seen[:, 0, :, None], "A": A, "V": V, "seen": seen, "D": D,
            "n": tokens * 1.0, "R": np.ones(count)}  # fmt: skip


def _mean_field(X, A, V, seen, D):
    core = spectral_norm(A)
    return gain(X, A, V, seen, D, turns=2), core, spectral_norm(after(V, core))


_MEASURES = dict(
    sample=measures,
    assumptions=[inside],
    search_over=("A", "V", "D"),
    count=40,
    roundings=4096,
)


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
    the root of n below. Proof: weights are at most $e^{2x}/(e^{2x}+n-1)$, as logits lie in $[-x,x]$;
    so columns of P sum to at most $c_n$ and $\|P\|_2\le\sqrt{c_n}$. Variances are at most $R^2$,
    and the tokens that are asked contribute $(\max_j\sum_i\lambda_ip_{ij}|A^\top x_i|^2)^{1/2}$.
    """
    J, core, value = _mean_field(X, A, V, seen, D)
    x = core * R**2
    odds = jnp.exp(exponent * x)
    columns = n * odds / (odds + n - 1)
    return J, factor * value * (jnp.sqrt(columns) * (1 + x) + x)


RADII = 2.0 ** (np.arange(5) / 4)


def generic(rng, count, n=5, d=3):
    """Random tokens and matrices; the least gap of two logits of a row is 4 at the first radius."""
    X, A = rng.normal(size=(count, n, d)), rng.normal(size=(count, d, d))
    ordered = np.sort(np.einsum("cia,cab,cjb->cij", X, A, X), axis=-1)
    gap = (ordered[..., -1] - ordered[..., -2]).min(axis=1)
    return {"X": X * np.sqrt(4 / gap)[:, None, None], "A": A, "V": rng.normal(size=(count, d, d))}


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
    $\|P\|_2^2$ is the most rows that read one token. As recalled the right end, in our form.
    """
    n = len(X)
    reads = jnp.argmax(X @ A @ X.T, axis=1)
    most = jnp.max(jnp.sum(reads[:, None] == jnp.arange(n)[None, :], axis=0))
    value = spectral_norm(V)

    def norm(R):
        return spectral_norm(after(jacobian(R * X, A, V, jnp.ones((n, n))), value))

    found = jax.lax.map(norm, jnp.asarray(RADII))
    right = value * jnp.where(all_ > 0, n, most) ** power
    # Covariances of vanishing weights are differences of terms of size |X|^2.
    size = value * (1 + jnp.linalg.norm(A) * jnp.sum((RADII[-1] * X) ** 2))
    return Sides(found, jnp.broadcast_to(right, found.shape), magnitude=size)


BALLS = 2.0 ** np.arange(6)


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
    times one unit vector: the block of that token is $V(I/n+C_1A^\top)$ with $C_1$ of size $R^2$. So
    dot-product attention has no Lipschitz constant (Kim et al. 2021), and $R^4$ under the root is
    of the right order.
    """
    u = X[0] / jnp.linalg.norm(X[0])
    signs = jnp.asarray([0.0, 1.0, -1.0, 1.0, -1.0])

    def norm(R):
        return spectral_norm(jacobian(R * signs[:, None] * u, A, V, jnp.ones((5, 5))))

    return jnp.asarray(BALLS) ** power, jax.lax.map(norm, jnp.asarray(BALLS))


def asymmetric(rng, count, d=3):
    """Heads whose logits vanish at the tokens, and not their derivatives; A' e_1 = 0, A e_1 is not."""
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
    $\rho=0$, but a token that moves along $e_2$ changes its logits by $\pm as$: the norm is
    at least $as^2$ for an even n. With $\rho$ the larger of $\max|A^\top x_i|$ and $\max|Ax_i|$ and a
    factor $\sqrt{1.4}$ it holds: the parts are at most $\sqrt n$,
    $\tfrac2{3\sqrt3}\sqrt n\,\rho r$ and $\rho r/2$, and Cauchy-Schwarz.
    """
    J, _, value = _norms(X, A, V, seen)
    asked, asking = (jnp.sqrt(jnp.max(jnp.sum((X @ B) ** 2, axis=1))) for B in (A, A.T))
    rho = jnp.where(both > 0, jnp.maximum(asked, asking), asked)
    apart = jnp.sum((X[:, None] - X[None, :]) ** 2, axis=-1)
    r = jnp.sqrt(jnp.max(jnp.where(seen > 0, apart, 0.0)))
    return J, factor * value * jnp.sqrt(share * (rho**2 * r**2 * (n + 1) + n))
