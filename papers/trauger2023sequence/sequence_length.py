r"""Independence of the sequence length: measured complexities and the bounds at equal norms.

Tokens come from an alphabet of five vectors, so that a sequence of T tokens is a vector of five
counts and every T costs the same; all sign vectors and a finite class make suprema exact.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.covering.edelman2022_cover import edelman2022_cover, perceptron_cover
from attlas.bounds.covering.parameter_counting import parameter_counting_single
from attlas.bounds.covering.trauger2023_cover import trauger2023_cover
from attlas.bounds.generalisation.trauger2023_single import trauger2023_bracket, trauger2023_single
from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import inequality, limit, rate
from trauger2023sequence.single_layer_instances import exact_complexity

_LENGTHS = (10, 100, 1000, 10000)
_LONG = (10**6, 10**7, 10**8, 10**9)
"""On shorter sequences another matrix or another sign may attain the supremum."""
_SAMPLES, _LETTERS, _MATRICES, _D = 6, 5, 12, 2
_DRAWS = 128
_WIDE = 64
_ROUNDINGS = 256


def sequences(rng, count):
    """Letters, their laws in each sequence, counts at every length, and matrices of all scales."""
    law = rng.dirichlet(np.ones(_LETTERS), (count, _SAMPLES))
    # fluctuations of multinomial counts, rounded; the same at every length, so that T alone acts
    g = rng.normal(size=(count, _DRAWS, _SAMPLES, _LETTERS)) * np.sqrt(law)[:, None]
    noise = g - law[:, None] * np.sum(g * np.sqrt(law)[:, None], axis=-1, keepdims=True)
    counts = [np.maximum(T * law[:, None] + math.sqrt(T) * noise, 0) for T in _LONG]
    shares = np.stack([np.diff(np.round(np.cumsum(c, -1)), prepend=0) for c in counts], axis=1)
    shares /= np.maximum(shares.sum(-1, keepdims=True), 1)
    letters = rng.normal(size=(count, _LETTERS, _D))
    letters /= np.linalg.norm(letters, axis=-1).max(-1)[:, None, None]
    # Upwards the length from which on the limit is seen grows with the logits: decades go down.
    ordinary, small = rng.uniform(-0.4, 1.1, count), rng.uniform(-5.5, 1.1, count)
    size = 10 ** np.where(rng.random(count) < 0.5, ordinary, small)
    M = size[:, None, None, None] * rng.normal(size=(count, _MATRICES, _D, _D))
    return {"letters": letters, "law": law, "shares": shares, "M": M}


def _complexity(letters, M, shares, softmax):
    """E_sigma max |<sigma, e_j' pooled>| / m over the matrices and coordinates."""
    # [CLS] is the first letter everywhere.
    logits = jnp.einsum("ad,kde,e->ka", letters, M, letters[0])
    tilt = jnp.exp(logits - jnp.max(logits, axis=1, keepdims=True))
    weights = shares[None] * tilt[:, None]
    if softmax:
        weights = weights / jnp.sum(weights, axis=2, keepdims=True)
    pooled = jnp.einsum("kma,ad->kdm", weights, letters).reshape(-1, _SAMPLES)
    return exact_complexity(jnp.concatenate([pooled, -pooled]))


@limit(
    "Theorem 4.1, on long sequences",
    sample=sequences,
    scales=_LONG,
    status=Status.NEW,
    roundings=_ROUNDINGS,
    controls=[Control("the tokens summed up in place of the softmax's average", softmax=False)],
)
def sequence_length_limit(letters, law, shares, M, *, softmax=True):
    r"""$$\hat R_T \to \hat R_\infty < \infty \quad (T \to \infty),\quad
    \hat R_T = \mathbb{E}_\sigma \sup_{j,W_{QK}} \frac1m \Big|\sum_i \sigma_i e_j^\top
    X_{(i)}^\top \mathrm{softmax}(X_{(i)} W_{QK} x_{[CLS]})\Big|$$

    $T = 10^6$ to $10^9$ with random tokens from an alphabet of five: the complexity tends
    to that of infinitely long sequences as $1 / \sqrt T$ (mean distance over 128 draws of the
    tokens). Six samples, all sign vectors, 12 matrices: exact for that class. The sum of tokens
    grows in proportion to $T$.
    """
    T = np.array(_LONG, float)
    draws = shares.reshape(-1, _SAMPLES, _LETTERS)
    complexities = jax.lax.map(lambda draw: _complexity(letters, M, draw, softmax), draws)
    complexities = complexities.reshape(len(T), _DRAWS)
    infinite = _complexity(letters, M, law, True)
    change = jnp.mean(
        jnp.abs((complexities if softmax else T[:, None] * complexities) - infinite), axis=1
    )
    return infinite + change, jnp.broadcast_to(infinite, change.shape)


def norms_and_samples(rng, count):
    """Norms and samples from vacuous to non-vacuous."""
    return {
        "norm": six_decades(rng, count, -2, 1),
        "m": 10 ** rng.uniform(3, 7, count),
        "T": 10 ** rng.uniform(1, 6, count),
    }


def _flat_cover(norm):
    return trauger2023_cover("1,1", norm, 1.0, _WIDE, _WIDE)


@rate(
    "Sections 1 and 3.3, against Edelman et al. 2022",
    Source.FOUND,
    sample=norms_and_samples,
    scales=np.log(_LENGTHS),
    roundings=_ROUNDINGS,
    controls=[Control("the cover at $m T$ tokens of Edelman et al. 2022", logarithm=True)],
)
def sequence_length_entropy(norm, m, *, logarithm=False):
    r"""$$C = B_x^2 B_{QK}^2 \ln(2d^2+1) = O(1)\ \text{in}\ T$$

    Entropy coefficients at $T = 10 \dots 10^4$ over that at $T = 10$, $d = 64$, against $\log T$.
    There is no $T$ in the formula: what can fail here is the control alone.
    """
    T = jnp.asarray(_LENGTHS, m.dtype)
    if logarithm:
        C = jax.vmap(lambda length: edelman2022_cover(norm, 1.0, m * length, _WIDE, m))(T)
    else:
        C = jnp.broadcast_to(_flat_cover(norm), T.shape)
    return C / C[0], jnp.ones_like(C)


def covered_at_cls(rng, count):
    """Matrices with their centres at the [CLS] tokens, and at the first of them alone."""

    def cover(matrix, points, epsilon):
        return np.stack([perceptron_cover(row, points, epsilon)[0] for row in matrix])

    X = rng.normal(size=(count, 6, 5, 3))
    W = six_decades(rng, (count, 1, 1), -0.9, 0.65) * rng.normal(size=(count, 3, 3))
    epsilon = rng.uniform(0.02, 0.1, count) * np.abs(W).max((1, 2))
    problems = list(zip(W, X[:, :, 0], epsilon, strict=True))
    centre, first = (
        np.stack([cover(M, points[:n], e) for M, points, e in problems]) for n in (6, 1)
    )
    return {"X": X, "W": W, "centre": centre, "first": first, "epsilon": epsilon}


@inequality(
    "Edelman et al. 2022 on the class of Theorem 4.1",
    sample=covered_at_cls,
    status=Status.NEW,
    count=48,
    evaluations=288,
    roundings=_ROUNDINGS,
    controls=[
        Control("centres for the first [CLS] token alone", only_first=True),
        Control("an eighth of the right side", share=1 / 8),
    ],
)
def sequence_length_cls(X, W, centre, first, epsilon, *, only_first=False, share=1.0):
    r"""$$\max_{i \le m} \|(W-\hat W)\, x_{[CLS]}^{(i)}\|_\infty \le \epsilon \;\Rightarrow\;
    \max_{i,j} |e_j^\top X_{(i)}^\top (p_i - \hat p_i)| \le b B_x \sqrt d\, \epsilon$$

    The centres know the $m$ [CLS] tokens alone, none of the $m T$ tokens: with one layer and a
    [CLS] readout the cover of Edelman et al. 2022 has $\log m$, and no $\log T$ to be removed.
    $\log T$ enters where all tokens are read, from the second layer on.
    """

    def pooled(W):
        law = jax.nn.softmax(jnp.einsum("mtd,de,me->mt", X, W, X[:, 0]), axis=1)
        return jnp.einsum("mt,mtd->md", law, X)

    left = jnp.max(jnp.abs(pooled(W) - pooled(first if only_first else centre)))
    size = jnp.max(jnp.abs(X))
    bound = size * jnp.max(jnp.linalg.norm(X, axis=-1))
    # Each of the three rows is covered at epsilon.
    return Sides(left, share * bound * jnp.sqrt(3.0) * epsilon, magnitude=size)


on_norms = partial(inequality, sample=norms_and_samples, status=Status.NEW, roundings=_ROUNDINGS)


@on_norms(
    r"Corollary 4.1.1 against the $\log T$ bound, same number for both norms",
    controls=[Control("a single token in place of $m T$", one=True)],
)
def equal_norms(norm, m, T, *, one=False):
    r"""$$m \ge 1000,\ T \ge 10: \quad \mathrm{bracket} \big( B^2 \ln(2d^2+1) \big) \le
    \mathrm{bracket} \big( B^2 \ln(dmT) \big)$$

    $d = 64$, $B_x = 1$. With the same number $B$ for both norms the bracket without $T$ is the
    smaller one. The norms are not equal, see dense-weights-norms: on dense weights the comparison
    turns round. $2 d^2 + 1 \le d m T$ always, as $m > d$ is asked for.
    """
    tokens = jnp.ones_like(m) if one else m * T
    C = norm**2 * jnp.log(_WIDE * tokens)
    left, right = (
        trauger2023_bracket(entropy, 1.0, _WIDE, m, constants="corrected")
        for entropy in (_flat_cover(norm), C)
    )
    return left, right


@on_norms(
    "Section 2.5, the two types of bounds",
    evaluations=1280,
    controls=[Control("a tenth of the norms", factor=0.1)],
)
def section_2_5_parameter_counting(norm, m, *, factor=1.0):
    r"""$$m = 10^7,\ d = 64,\ B_{QK} \ge 8: \quad \mathrm{bound}_{\mathrm{parameters}} \le
    \mathrm{bound}_{1,1}$$

    Both with the chain's constants and softmax constant 1, on the same number for the spectral
    norm. Parameter counting has the norm in a logarithm and wins at large norms, Theorem 4.1 at
    small ones.
    """
    norm, m = factor * (8 + 3 * norm), jnp.full_like(m, 1e7)
    counted = parameter_counting_single(1.0, norm, 1.0, _WIDE**2, _WIDE, m)
    return counted, trauger2023_single(1.0, _flat_cover(norm), 1.0, _WIDE, m, constants="sharp")
