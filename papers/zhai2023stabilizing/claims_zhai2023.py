r"""Entropy collapse (Zhai et al. 2023): the least entropy that a row of attention can have.

Our text of the statements is from memory and from two summaries by third parties, which agree.
Tokens are the T rows of X, logits a = X W_K W_Q' X', weights A = softmax of the rows; all
logarithms are natural. sigma is ||W_K W_Q'||_2 ||X X'||_2, and beta = exp(-sigma sqrt(T/(T-1))).
"""

import jax
import jax.numpy as jnp
import numpy as np

import attlas as at
from attlas._jax.factorising import after
from attlas.bounds.attention.entropy_floor import entropy_floor
from attlas.claims.claim import Kind, Sides, Source, Status
from attlas.norms.matrix import spectral_norm

LARGEST = 8
"""Tokens at most where matrices are drawn; fewer are the first rows, and the others are zero."""


def lower_bound(sigma, T, root=1.0):
    """The right side of Theorem 3.1; with root = 0 a wrong one, whose beta is exp(-sigma)."""
    beta = jnp.exp(-sigma * jnp.sqrt(T / (T - 1)) ** root)
    sum_of_others = (T - 1) * beta
    return jnp.log1p(sum_of_others) + sigma * jnp.sqrt(T * (T - 1)) * beta / (1 + sum_of_others)


def entropies(logits, seen):
    """Of the rows of a softmax over the columns that are seen, to relative accuracy."""
    z = jnp.where(seen, logits, -jnp.inf)
    top = jnp.argmax(z, axis=-1, keepdims=True)
    below = jnp.take_along_axis(z, top, axis=-1) - z
    others = seen & (jnp.arange(z.shape[-1]) != top)
    gap = jnp.where(others, below, 0.0)
    odds = jnp.where(others, jnp.exp(-gap), 0.0)
    total = jnp.sum(odds, axis=-1)
    return jnp.log1p(total) + jnp.sum(odds * gap, axis=-1) / (1 + total)


def layers(rng, count):
    """2 to 8 tokens in 8 dimensions; every second instance has orthogonal tokens of one length.

    There all of W_K W_Q' that the first token uses may point to the centred first coordinate, and
    the first row then has all of sigma in one larger logit: the bound is attained.
    """
    T = rng.integers(2, LARGEST + 1, count)
    size = 10 ** rng.uniform(-1, 0.3, (count, 1, 1))
    X = rng.normal(size=(count, LARGEST, LARGEST)) * size / LARGEST**0.5
    W_K, W_Q = rng.normal(size=(2, count, LARGEST, LARGEST)) / LARGEST**0.5
    inside = np.arange(LARGEST) < T[:, None]
    X = X * inside[:, :, None]
    for place in range(0, count, 2):
        X[place] = np.diag(inside[place] * size[place, 0, 0])
        larger = np.where(np.arange(LARGEST) == 0, T[place] - 1.0, -1.0) * inside[place]
        W_Q[place], W_K[place] = 0, 0
        W_K[place, 0, 0], W_Q[place, :, 0] = rng.uniform(0.2, 5), larger / np.linalg.norm(larger)
    return {"X": X, "W_K": W_K, "W_Q": W_Q, "T": T.astype(float)}


@at.inequality(
    "Theorem 3.1",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=layers,
    search_over=("X", "W_K", "W_Q"),
    project=lambda X, T: {"X": X * (jnp.arange(LARGEST) < T)[:, None]},
    alike=True,
    count=96,
    roundings=512,
    controls=[
        at.Control("nine tenths of sigma", factor=0.9),
        at.Control("the exponent without sqrt(T/(T-1))", root=0.0),
    ],
)
def theorem_3_1(X, W_K, W_Q, T, *, factor=1.0, root=1.0):
    r"""$$\ln(1+(T-1)\beta)+\frac{\sigma\sqrt{T(T-1)}\,\beta}{1+(T-1)\beta}\le{\rm Ent}(A_i),\quad
    \sigma=\|W_KW_Q^\top\|_2\|XX^\top\|_2$$

    The printed form, of every row. A centred row of logits has length at most
    $\|W_KW_Q^\top\|\|XX^\top\|$, and $|a_i|\le\sigma$ leaves least entropy to one larger logit; the
    bound falls in $\sigma$. Attained by orthogonal tokens of one length, see the sampler.
    """
    gram = spectral_norm(X @ X.T)
    sigma = factor * gram * spectral_norm(after(W_K @ W_Q.T, gram))
    a = X @ W_K @ W_Q.T @ X.T
    inside = jnp.arange(LARGEST) < T
    values = entropies(a, inside[None, :])
    size = (1 + sigma / factor) * values
    left = jnp.where(inside, lower_bound(sigma, T, root), 0.0)
    return Sides(left, jnp.where(inside, values, 1.0), magnitude=jnp.where(inside, size, 1.0))


def spreads(rng, count):
    """2 to 64 tokens and the length of their centred logits."""
    T = np.round(2 ** rng.uniform(1, 6, count))
    return {"s": 10 ** rng.uniform(-1, 1.3, count), "T": T}


@at.identity(
    "Theorem 3.1, tightness",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=spreads,
    roundings=512,
    controls=[at.Control("the root of T/(T-1) left out of the exponent", root=0.0)],
)
def theorem_3_1_attained(s, T, *, root=1.0):
    r"""$$H\big({\rm softmax}(s\,u)\big)=\ln(1+(T-1)\beta)
    +\frac{s\sqrt{T(T-1)}\,\beta}{1+(T-1)\beta},\quad u\propto Te_1-\mathbf 1,\ |u|=1$$

    2 to 64 tokens; the softmax is summed up, the other side is the formula.
    """
    seen = jnp.arange(64) < T
    u = jnp.where(jnp.arange(64) == 0, T - 1, -1.0) / jnp.sqrt(T * (T - 1))
    values = entropies(s * u, seen)
    return Sides(values, lower_bound(s, T, root), magnitude=(1 + s) * values)


def rays(rng, count):
    """6 logits of all sizes."""
    return {"z": 10 ** rng.uniform(-1, 0.7, (count, 1)) * rng.normal(size=(count, 6))}


@at.identity(
    "Proof of Theorem 3.1, along rays",
    sample=rays,
    roundings=512,
    controls=[at.Control("the second moment in place of the variance", mean=0.0)],
)
def entropy_along_rays(z, *, mean=1.0):
    r"""$$\frac{d}{dt}H({\rm softmax}(tz))\Big|_{t=1}=-{\rm Var}_p(z)$$

    Automatic differentiation on the left. So the least entropy of all $|a_i|\le\sigma$ stands on
    the sphere $|a_i|=\sigma$, and the bound may be computed with any upper bound of $\sigma$.
    """
    seen = jnp.ones(6, dtype=bool)
    slope = jax.grad(lambda t: entropies(t * z, seen))(1.0)
    p = jax.nn.softmax(z)
    second, first = jnp.sum(p * z**2), jnp.sum(p * z)
    return Sides(slope, mean * first**2 - second, magnitude=second + jnp.max(z**2) * 1e-2)


def levels(rng, count):
    """2 to 64 tokens, of which k have the larger of two logits."""
    T = np.round(2 ** rng.uniform(1, 6, count))
    k = np.where(rng.random(count) < 1 / 4, 1, np.ceil(rng.random(count) * (T - 1)))
    return {"s": 10 ** rng.uniform(-1, 1.3, count), "T": T, "k": k}


@at.inequality(
    "Theorem 3.1, two levels of logits",
    sample=levels,
    search_over="s",
    project=lambda s: {"s": jnp.clip(s, 1e-3, 100.0)},
    roundings=512,
    controls=[at.Control("0.98 of the spread", factor=0.98)],
)
def one_larger_logit(s, T, k, *, factor=1.0):
    r"""$$\text{floor}(s,T)\le\ln(ke^\delta+T-k)-\frac{k\delta e^\delta}{ke^\delta+T-k},\quad
    \delta=s\sqrt{T/(k(T-k))},\ 1\le k<T$$

    The entropy of k equal larger logits of the same spread s. So one larger logit is the worst of
    all logits at two levels, which is what Theorem 3.1 says of them.
    """
    delta = s * jnp.sqrt(T / (k * (T - k)))
    low = (T - k) * jnp.exp(-delta) / k
    right = jnp.log(k) + jnp.log1p(low) + delta * low / (1 + low)
    return Sides(lower_bound(factor * s, T), right, magnitude=(1 + s) * right)


SCALES = 2.0 ** np.arange(1, 9)


def few_tokens(rng, count):
    """2 to 16 tokens: 15 numbers, and a share of sigma that makes each instance its own."""
    return {"T": rng.integers(2, 17, count) * 1.0, "share": rng.uniform(0.5, 1.0, count)}


@at.erratum(
    "After Theorem 3.1",
    Source.RECALLED,
    of=Kind.RATE,
    sample=few_tokens,
    scales=SCALES,
    reason="the exponent is sqrt(T/(T-1)) sigma, larger than sigma",
    corrected=at.Control("exponent sqrt(T/(T-1)) sigma", root=1.0),
    controls=[at.Control("a power of sigma more", root=1.0, power=2.0)],
)
def least_entropy_order(T, share, *, root=0.0, power=1.0):
    r"""$$T(1+\sigma)e^{-\sigma}=O(H_{\min}(\sigma,T))\quad(\sigma\to\infty)$$

    As recalled: the least entropy is $\Omega(T\sigma e^{-\sigma})$ for large $\sigma$; with
    $1+\sigma$ for $\sigma$ the order is the same. For a fixed number of tokens it is exponentially
    smaller: from the formula, $H_{\min}\sim\sigma\sqrt{T(T-1)}\,e^{-\sigma\sqrt{T/(T-1)}}$. The two
    agree up to a constant as long as $\sigma=O(T)$, since $\sqrt{T/(T-1)}-1\le1/(2(T-1))$.
    """
    sigma = share * jnp.asarray(SCALES)
    exponent = sigma * jnp.sqrt(T / (T - 1)) ** root
    return T * (1 + sigma) ** power * jnp.exp(-exponent), lower_bound(sigma, T)


def orders(rng, count):
    """At least 8 tokens, and sigma up to the number of tokens."""
    T = np.round(2 ** rng.uniform(3, 9, count))
    return {"T": T, "s": rng.random(count) * T}


@at.inequality(
    "After Theorem 3.1, corrected",
    sample=orders,
    status=Status.CORRECTED,
    search_over="s",
    project=lambda s, T: {"s": jnp.clip(s, 0.0, T)},
    roundings=512,
    controls=[at.Control("a third more", factor=4 / 3)],
)
def least_entropy_within(T, s, *, factor=1.0):
    r"""$$c\,\frac{T\sigma e^{-\sigma}}{1+Te^{-\sigma}}\le H_{\min}(\sigma,T)\quad
    \text{for }0\le\sigma\le T,\ T\ge8,\quad c=\sqrt{7/8}\,e^{-4/7}$$

    The order holds while $\sigma\le T$. Proof: $\sigma\sqrt{T/(T-1)}\le\sigma+T/(2(T-1))\le\sigma+
    4/7$, hence $e^{-4/7}e^{-\sigma}\le\beta\le e^{-\sigma}$; drop the logarithm, and
    $\sqrt{T(T-1)}\ge\sqrt{7/8}\,T$, $1+(T-1)\beta\le1+Te^{-\sigma}$.
    """
    c = (7 / 8) ** 0.5 * jnp.exp(-4 / 7)
    return factor * c * T * s * jnp.exp(-s) / (1 + T * jnp.exp(-s)), lower_bound(s, T)


_WIDTH = 8


def _hadamard(w):
    """Signs with orthogonal rows, w a power of two."""
    signs = np.ones((1, 1))
    while len(signs) < w:
        signs = np.block([[signs, signs], [signs, -signs]])
    return signs


def gradients(rng, count):
    """Means and noise of w x w gradients; in every second, the signs of a Hadamard matrix.

    There signal and noise have one ratio everywhere, all singular values of the update are equal,
    and the bound is attained.
    """
    w = np.where(
        np.arange(count) % 2 == 0, 2 ** rng.integers(0, 4, count), rng.integers(1, 9, count)
    )
    mean = rng.normal(size=(count, _WIDTH, _WIDTH))
    noise = 10 ** rng.uniform(-1, 1, (count, 1, 1)) * np.abs(rng.normal(size=mean.shape))
    for place in range(0, count, 2):
        mean[place, : w[place], : w[place]] = _hadamard(w[place])
        noise[place] = noise[place, 0, 0]
    return {"mean": mean, "noise": noise, "w": w * 1.0}


@at.inequality(
    "Proposition 3.2",
    Source.RECALLED,
    status=Status.RECONSTRUCTED,
    sample=gradients,
    search_over=("mean", "noise"),
    count=96,
    controls=[
        at.Control("a power of w too much", power=1.0),
        at.Control("a tenth too large", factor=1.1),
    ],
)
def proposition_3_2(mean, noise, w, *, power=0.5, factor=1.0):
    r"""$$\sqrt w\,\sqrt{1-\frac1{w^2}\sum_{i,j}\frac{n_{ij}^2}{\mu_{ij}^2+n_{ij}^2}}
    \le\sigma(\Delta),\quad\Delta=\frac{E\,g}{\sqrt{E\,g^2}}=\frac\mu{\sqrt{\mu^2+n^2}}$$

    The update of Adam without memory, of a $w\times w$ matrix. Proof: $\|\Delta\|_F^2=w^2-\sum
    n^2/(\mu^2+n^2)$ and $\|\Delta\|_2\ge\|\Delta\|_F/\sqrt w$. Attained by the signs of a Hadamard
    matrix under any noise.
    """
    inside = jnp.arange(_WIDTH) < w
    inside = inside[:, None] & inside[None, :]
    power_of = jnp.where(inside, mean**2 + noise**2, 1.0)
    update = jnp.where(inside, mean / jnp.sqrt(power_of), 0.0)
    # One less the share of noise, without the difference, which loses digits where noise is all.
    kept_share = jnp.sum(jnp.where(inside, mean**2 / power_of, 0.0)) / w**2
    return factor * w**power * jnp.sqrt(kept_share), spectral_norm(update)


def weights(rng, count):
    """Matrices with all gaps between singular values, and a start that may be a singular vector."""
    W = rng.normal(size=(count, 6, 4)) * 10 ** rng.uniform(-1, 1, (count, 1, 4))
    start = rng.normal(size=(count, 4))
    start[::2] = np.linalg.svd(W[::2])[2][:, 0]
    return {"W": W, "start": start, "gamma": 10 ** rng.uniform(-1, 1, count)}


@at.inequality(
    "Reparametrisation by the power iteration",
    Source.RECALLED,
    status=Status.NEW,
    sample=weights,
    search_over=("W", "start"),
    roundings=256,
    controls=[at.Control("gamma too large by a tenth", factor=1.1)],
)
def reparametrised_norm(W, start, gamma, *, factor=1.0):
    r"""$$\gamma\le\|\widehat W\|_2,\quad\widehat W=\frac\gamma{u^\top Wv}W,\
    u=\frac{Wv_0}{|Wv_0|},\ v=\frac{W^\top u}{|W^\top u|}$$

    As published, $\sigma(W)$ in $\widehat W=\gamma W/\sigma(W)$ is one step of the power iteration,
    $u^\top Wv\le\|W\|_2$. So the norm of a layer is gamma or more, never less, and a bound of the
    entropy that is computed from the learned gammas is too high until the iteration has converged.
    Equality at a singular vector.
    """
    u = W @ start
    u = u / jnp.sqrt(jnp.sum(u**2))
    v = W.T @ u
    v = v / jnp.sqrt(jnp.sum(v**2))
    return factor * gamma, spectral_norm(gamma / (u @ W @ v) * W)


@at.identity(
    "Theorem 3.1 and the library",
    sample=spreads,
    status=Status.NEW,
    controls=[at.Control("one token more", more=1.0)],
)
def floor_of_the_library(s, T, *, more=0.0):
    r"""$$\text{floor}(s,T)=\texttt{entropy\_floor}(s,T)$$

    The formula above beside the library's certificate, which is rounded down.
    """
    return Sides(
        lower_bound(s, T), entropy_floor(s, T + more), magnitude=(1 + s) * lower_bound(s, T)
    )
