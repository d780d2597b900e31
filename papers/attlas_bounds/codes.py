"""Files of quantised weights: what is decoded, and how long they are."""

import math

import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.arithmetic_code import encode_symbols
from attlas.bounds.generalisation.occam_code import decode, encode
from attlas.claims.claim import Control, Kind, Sides, Status
from attlas.claims.statement import computed

_LARGEST = 40
_SCALES = np.array([(1 + j / 8) * 2.0**k for k in range(-24, 8) for j in range(8)])


@computed(
    Kind.IDENTITY,
    "What a file decodes to",
    status=Status.NEW,
    count=32,
    alike=True,
    controls=[Control("the weights before they were rounded", rounded=False)],
)
def decoded_weights(rng, count, *, rounded=True):
    r"""$${\rm decode}({\rm encode}(w,L))=s\,{\rm round}(w/s),\quad
    s=\min\{2^k(1+j/8)\ge\|w\|_\infty/L:-24\le k\le7\}$$

    Two arrays of 1 to 20 weights, 1 to 500 levels on either side of zero, weights from $10^{-3}$
    to some units.
    """
    left, right = np.zeros((2, count, _LARGEST))
    for e in range(count):
        levels = int(10 ** rng.uniform(0, 2.7))
        sizes = rng.integers(1, _LARGEST // 2 + 1, 2)
        tensors = [10 ** rng.uniform(-3, 0) * rng.normal(size=size) for size in sizes]
        original = np.concatenate(tensors)
        scales = [_SCALES[np.searchsorted(_SCALES, np.max(np.abs(w)) / levels)] for w in tensors]
        nearest = [s * np.rint(w / s) for w, s in zip(tensors, scales, strict=True)]
        decoded = np.concatenate(decode(encode(tensors, levels)))
        left[e, : len(decoded)] = decoded
        right[e, : len(decoded)] = np.concatenate(nearest) if rounded else original
    return left, right


def _ideal(symbols, alphabet):
    """Bits of the sequence under the law of Krichevsky and Trofimov, by its gamma functions."""
    counts = np.bincount(symbols, minlength=alphabet)
    terms = sum(math.lgamma(c + 0.5) - math.lgamma(0.5) for c in counts)
    total = math.lgamma(len(symbols) + alphabet / 2) - math.lgamma(alphabet / 2)
    return (total - terms) / math.log(2)


@computed(
    Kind.INEQUALITY,
    "The length of a file",
    status=Status.NEW,
    count=40,
    evaluations=1600,
    controls=[
        Control("a length below that of the law", ideal=1.1),
        Control("no bits to end with", end=0.0),
    ],
)
def code_length(rng, count, *, ideal=1.0, end=9.0):
    r"""$$-\log_2P(s)\le8\,{\rm bytes}\le-\log_2P(s)+9,\quad
    P(s)=\frac{\Gamma(A/2)}{\Gamma(n+A/2)}\prod_a\frac{\Gamma(n_a+1/2)}{\Gamma(1/2)}$$

    Sequences of 1 to 2000 symbols out of 2 to 59, from even to peaked: two bits to end in, and
    seven to fill a byte.
    """
    left, right, size = np.empty((3, count, 2))
    for e in range(count):
        alphabet, n = int(rng.integers(2, 60)), int(10 ** rng.uniform(0, 3.3))
        law = rng.dirichlet(np.full(alphabet, 10 ** rng.uniform(-1.5, 1)))
        symbols = rng.choice(alphabet, n, p=law)
        bits = 8 * len(encode_symbols(symbols.tolist(), alphabet))
        least = _ideal(symbols, alphabet)
        left[e], right[e] = (ideal * least, bits), (bits, least + end)
        # Intervals have 46 bits or more, counts at most 12.
        size[e] = 1e-9 * n
    arrays = (jnp.asarray(part) for part in (left, right, np.zeros_like(size), size))
    return Sides(*arrays)
