"""Steps from Theorem 4.1 of trauger2023sequence to PAC-Bayes with a certificate of attention."""

import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from attlas.bounds.covering.maurey import maurey_sparsify
from attlas.claims.claim import Control, Kind, ProofStep, Sides, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import computed, inequality, probability
from attlas_bounds.library.bounds.linear_attention import LinearAttention, measure_margins
from attlas_bounds.library.bounds.margin_bounds import cover_margin_bound
from attlas_bounds.library.bounds.pac_bayes_margin import (
    Lengths,
    Noise,
    noise_threshold,
    pac_bayes_margin,
    perturbed_softmax,
)
from attlas_bounds.library.bounds.sample_complexity import (
    hilbert_cover_entropy,
    sample_complexity,
    tokens_met,
)

_CHAIN = "attlas_bounds/sharpening"
_TAIL, _DELTA = 0.3, 0.2


def logits(rng, count):
    """Logits, moves and values of five tokens; in every third instance two tokens at equality."""
    z, h, v = rng.normal(size=(3, count, 5)) * np.array([2.0, 3.0, 1.0])[:, None, None]
    z *= six_decades(rng, (count, 1))
    z[::3], v[::3, 0], v[::3, 1:] = -40.0, 1.0, -1.0
    z[::3, :2] = -h[::3, :2] / 2
    h[::3, 2:] = h[::3, :1]
    return {"z": z, "h": h, "v": v}


@inequality(
    "A perturbed average by softmax",
    sample=logits,
    search_over=("z", "h", "v"),
    status=Status.NEW,
    count=96,
    roundings=256,
    controls=[Control("a fifth in place of a quarter", factor=0.8)],
)
def perturbed_average(z, h, v, *, factor=1.0):
    r"""$$\Big|\sum_t(p'_t-p_t)v_t\Big|\le(\max v-\min v)\tanh\frac{\max h-\min h}4,\quad
    p={\rm softmax}(z),\ p'={\rm softmax}(z+h)$$

    For all moves of the logits, large ones too; attained by two tokens at the logits $\mp h/2$. The
    derivative alone would give $(\max h-\min h)/4$ without the hyperbolic tangent.
    """
    moved = jnp.abs((jax.nn.softmax(z + h) - jax.nn.softmax(z)) @ v)
    span, oscillation = jnp.max(v) - jnp.min(v), factor * (jnp.max(h) - jnp.min(h))
    # a probability is rounded by the size of its logits
    size = (1 + jnp.max(jnp.abs(z)) + jnp.max(jnp.abs(h))) * (1 + jnp.max(jnp.abs(v)))
    return Sides(moved, perturbed_softmax(span, oscillation), magnitude=size)


@computed(
    Kind.INEQUALITY,
    "A cover of a hull without a ceiling",
    status=Status.NEW,
    count=64,
    roundings=1024,
    controls=[Control("one step fewer", fewer=1)],
)
def hull_cover(rng, count, *, fewer=0):
    r"""$$\min_{\hat f}\|f-\hat f\|^2\le\epsilon^2,\quad
    K+1\ge\frac{b^2}{\epsilon^2},\quad\|V_i\|\le b$$

    $\hat f$ is 0 or an average of $K$ atoms, $K$ the smallest such number. Maurey's lemma has
    $\lceil b^2/\epsilon^2\rceil$ atoms; as $\|f\|^2$ is taken off the variance and 0
    is a centre, one fewer is enough. Atoms of length 1 in three dimensions, and orthogonal
    ones, for which $\frac12(e_1+e_2)$ attains it.
    """
    drawn, right = [], np.empty(count)
    for e in range(count):
        n, K = (int(k) for k in rng.integers([2, 1], [7, 6]))
        V = rng.normal(size=(n, 3))
        V /= np.linalg.norm(V, axis=1, keepdims=True)
        alpha = rng.dirichlet(np.ones(n)) * rng.uniform(0.3, 1)
        if e % 2 == 0:
            n, K = 2, 1 + e // 2 % 2
            V, alpha = np.eye(n), np.full(n, 1 / n)
        right[e] = 1 / (K + rng.uniform(0.7, 1.0) * (e % 2) + (e + 1) % 2)
        drawn.append((V, alpha))
    left, ratios = np.empty(count), jnp.asarray(1 / right)
    entropies = {n: np.asarray(hilbert_cover_entropy(ratios, n)) for n in range(2, 7)}
    for e, (V, alpha) in enumerate(drawn):
        n = len(V)
        f, taken = alpha @ V, round(entropies[n][e] / math.log(n + 1)) - fewer
        left[e] = f @ f
        if taken:
            near = maurey_sparsify(alpha, V, taken, constants="corrected")[0]
            left[e] = min(left[e], float(np.sum((f - near) ** 2)))
    return left, right


def _sample(rng, n, T, d, heads=1, *, labels=None):
    """A random layer and sequences of tokens of length at most 1; [CLS] differs or is fixed."""
    X = rng.normal(size=(n, T, d))
    X *= rng.uniform(0.3, 1, (n, T, 1)) / np.linalg.norm(X, axis=2, keepdims=True)
    x = rng.normal(size=(n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    x = x[0] if rng.random() < 0.5 else x
    head = LinearAttention(rng.normal(size=(heads, d)), rng.normal(size=(heads, d, d)) * 2)
    y = rng.choice([-1.0, 1.0], n) if labels is None else labels
    return measure_margins(head, X, x, y), head, X, x


@computed(
    Kind.INEQUALITY,
    "Complexity on the tokens met",
    status=Status.NEW,
    count=48,
    evaluations=768,
    roundings=1024,
    proof_step=ProofStep(_CHAIN, 1),
    controls=[Control("nine tenths of it", factor=0.9)],
)
def met_below_largest(rng, count, *, factor=1.0):
    r"""$$\hat R(\text{tokens met})\le\hat R(\text{largest norms of a token})$$

    The step of the ledger, on samples of 8 sequences, 2 to 4 tokens, 2 to 11 dimensions and $m$ to
    $10^9$. Equality where all tokens are $\pm$ one vector and $r$ is small; dense [CLS] tokens gain
    most, as the mean square of one entry stands in place of that of all.
    """
    left, right = np.empty((2, count))
    for e in range(count):
        d, T = int(rng.integers(2, 12)), int(rng.integers(2, 5))
        sample = _sample(rng, 8, T, d)[0]
        radius, m = 10 ** rng.uniform(-2, 1.5), 10 ** rng.uniform(3, 9)
        if e % 3 == 0:
            X = np.zeros((8, T, d))
            X[:, 0, 0], X[:, 1:, 0] = 1.0, -1.0
            head = LinearAttention(np.eye(d)[0], np.zeros((d, d)))
            sample, radius = measure_margins(head, X, np.eye(d)[0], np.ones(8)), 1e-6
        met = tokens_met(sample)
        left[e] = sample_complexity(met, radius, m)
        right[e] = factor * sample_complexity(met, radius, m, step="linear")
    return left, right


@computed(
    Kind.INEQUALITY,
    "Complexity of attention on a sample",
    status=Status.NEW,
    count=56,
    evaluations=448,
    roundings=1024,
    controls=[Control("half of the bound", factor=0.5)],
)
def complexity_on_sample(rng, count, *, factor=1.0):
    r"""$$\frac1m\mathbb E_\sigma\sup_{f\in F}\sum_i\sigma_if(X_i)\le\hat R(\text{tokens met})$$

    All $2^m$ sign vectors of $m=9$ sequences; the supremum over $\pm$ the entries of averages of 60
    matrices of the ball, a value from below. One token in one dimension reaches two thirds of the
    bound.
    """
    left, right = np.empty((2, count))
    m = 9
    signs = 1 - 2.0 * ((np.arange(2**m)[:, None] >> np.arange(m)) & 1)
    for e in range(count):
        d, T = (1, 1) if e % 4 == 0 else (int(rng.integers(1, 4)), int(rng.integers(1, 4)))
        sample, _, X, x = _sample(rng, m, T, d)
        if e % 4 == 0:
            X = np.ones((m, 1, 1))
            sample = measure_margins(LinearAttention([1.0], [[0.0]]), X, [1.0], np.ones(m))
        radius = float(10 ** rng.uniform(-1, 1.5))
        M = rng.dirichlet(np.full(d * d, 0.3), 60) * rng.choice([-1, 1], (60, d * d)) * radius
        z = np.einsum("ntd,kde,ne->knt", X, M.reshape(60, d, d), np.broadcast_to(x, (m, d)))
        g = np.einsum("knt,ntd->kdn", special.softmax(z, axis=-1), X).reshape(-1, m)
        left[e] = np.abs(signs @ g.T).max(axis=1).mean() / m
        right[e] = factor * sample_complexity(tokens_met(sample), radius, float(m))
    return left, right


@computed(
    Kind.INEQUALITY,
    "Relative deviations in place of Hoeffding's",
    status=Status.NEW,
    count=32,
    evaluations=640,
    roundings=1024,
    proof_step=ProofStep(_CHAIN, 2),
    controls=[Control("nine tenths of it", factor=0.9)],
)
def kl_below_hoeffding(rng, count, *, factor=1.0):
    r"""$$\sup\{p:{\rm kl}(\hat q\|p)\le c\}\le\hat q+\sqrt{c/2}$$

    Both forms of the cover bound on samples of 40 to 400 sequences, as if they were up to $10^9$,
    with shares of errors from 0 to one half. Near one half the two are equal; at 0 the first one
    is $1-e^{-c}$.
    """
    left, right = np.empty((2, count))
    for e in range(count):
        n = int(rng.integers(40, 400))
        y = np.where(rng.random(n) < rng.choice([0.0, 0.1, 0.45]), -1.0, 1.0)
        head = LinearAttention([1.0, 0.0], np.zeros((2, 2)))
        X = np.broadcast_to(np.array([[1.0, 0.0]]), (n, 1, 2))
        sample, m = measure_margins(head, X, [1.0, 0.0], y), 10 ** rng.uniform(4, 9)
        left[e] = cover_margin_bound(sample, 1.0, 0.05).at(m)
        right[e] = factor * cover_margin_bound(sample, 1.0, 0.05, deviation="Hoeffding").at(m)
    return left, right


def noises(rng, count):
    """What noise moved the output of a random layer by, against its threshold."""
    moved, threshold = np.empty((2, count))
    for e in range(count):
        T, d, heads = (int(k) for k in rng.integers([1, 2, 1], [6, 9, 4]))
        sample, head, X, x = _sample(rng, 1, T, d, heads)
        a, M = np.array(head.readouts), np.array(head.query_keys)
        a /= np.linalg.norm(a)
        tau, sigma = (float(10 ** rng.uniform(-2, 0.5)) for _ in range(2))
        noise = Noise(tau, sigma, _TAIL)
        b, N = (
            a + noise.readout * rng.normal(size=a.shape),
            M + noise.attention * rng.normal(size=M.shape),
        )
        before, after = (
            measure_margins(LinearAttention(*w), X, x, [1.0]) for w in ((a, M), (b, N))
        )
        moved[e] = after.margins[0] - before.margins[0]
        lengths = Lengths(sample.length, sample.diameter, np.linalg.norm(sample.cls, axis=1))
        threshold[e] = noise_threshold(lengths, heads, T, noise)[0]
    return {"moved": moved, "threshold": threshold}


@probability(
    "What noise does to attention",
    level=1 - _TAIL,
    status=Status.NEW,
    sample=noises,
    independent="layer, tokens and noise",
    count=480,
    controls=[Control("without the threshold", factor=0.0)],
)
def noise_certificate(moved, threshold, *, factor=1.0):
    r"""$$\mathbb P\big[f_{w+u}(X)-f_w(X)\le t(X)\big]\ge1-\eta,\quad\eta=0.3$$

    Layers of 1 to 3 heads with readouts of length 1 together, 1 to 5 tokens and 2 to 8 dimensions,
    noise on readouts and $M$ of scales from 0.01 to 3. The threshold adds the tails of all
    differences of logits, so that the event is far more frequent than that.
    """
    return moved <= factor * threshold


def coins(rng, count):
    """Linear readouts fitted to coins on a part of all tokens: their error and three bounds."""
    error, pac, cover, bare = np.empty((4, count))
    for e in range(count):
        n, d = int(rng.integers(8, 17)), int(rng.integers(24, 41))
        y, law = rng.choice([-1.0, 1.0], d), rng.dirichlet(np.full(d, 20.0))
        seen = rng.choice(d, n, p=law)
        a = np.zeros(d)
        a[seen] = y[seen]
        head = LinearAttention(a, np.zeros((d, d)))
        sample = measure_margins(head, np.eye(d)[seen][:, None], np.eye(d)[0], y[seen])
        # unseen tokens have the output 0, which counts as an error
        error[e] = law[a == 0].sum()
        pac[e] = pac_bayes_margin(sample, _DELTA).bound
        cover[e] = cover_margin_bound(sample, 1.0, _DELTA).bound
        bare[e] = -math.expm1(-math.log(1 / _DELTA) / n)
    return {"error": error, "pac": pac, "cover": cover, "bare": bare}


@probability(
    "Margin bounds on fitted coins",
    level=1 - _DELTA,
    status=Status.NEW,
    sample=coins,
    independent="law, coins and sample",
    count=96,
    controls=[
        Control("PAC-Bayes without its divergence", pac_share=0.0),
        Control("the cover without its entropy", cover_share=0.0),
    ],
)
def margin_coverage(error, pac, cover, bare, *, pac_share=1.0, cover_share=1.0):
    r"""$$\mathbb P\big[\mathbb P(yf\le0)\le{\rm bound}\big]\ge1-\delta,\quad\delta=0.2$$

    24 to 40 tokens with labels that are coins; the readout fits those of 8 to 16 draws, and errs on
    all others. Both bounds are vacuous, as they must be: a network that fits coins has no
    margin in its norm. Without divergence or entropy both would certify less than the error.
    """
    pac_law = pac_share * pac + (1 - pac_share) * bare
    cover_law = cover_share * cover + (1 - cover_share) * bare
    return (error <= pac_law) & (error <= cover_law)
