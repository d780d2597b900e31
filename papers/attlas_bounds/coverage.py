"""How often bounds from counted errors fail, exactly: every count of errors has its probability."""

import math
from functools import lru_cache, partial
from itertools import combinations_with_replacement

import numpy as np

from attlas.bounds.generalisation.compression_bound import Form, compression_bound
from attlas.bounds.generalisation.held_out_bound import held_out_bound
from attlas.bounds.generalisation.kl_inverse import kl_upper_inverse
from attlas.bounds.generalisation.union import union
from attlas.claims.claim import Control, Kind, Status
from attlas.claims.statement import computed

_ABOVE = 1 + 1e-12
"""A risk just above a limit, where the bound fails most often."""
_FILES = 4
_FORMS: tuple[Form, ...] = ("binomial", "kl")
# Sums of up to 60 terms of a binomial law, and the distance from the limit to the risk above it.
_ROUNDINGS = 2**18


def _misses(limit, k, n):
    """P(limit(K) < p) for K of Bin(n, p), with p just above the limit of k errors."""
    from scipy.stats import binom  # takes half a second, and all papers are listed without it

    p = limit(k) * _ABOVE
    if p >= 1:
        return 0.0
    # Limits grow with the count of errors, so that those of fewer are exceeded, too.
    last = k
    while last < n and limit(last + 1) < p:
        last += 1
    return float(binom.cdf(last, n, p))


@computed(
    Kind.INEQUALITY,
    "Coverage of the held-out bound",
    status=Status.NEW,
    count=48,
    evaluations=2400,
    roundings=_ROUNDINGS,
    controls=[Control("a tenth more of delta", factor=1.1)],
)
def held_out_coverage(rng, count, *, factor=1.0):
    r"""$$\mathbb P_{K\sim{\rm Bin}(n,p)}\big[p>p_{\rm exact}(K,n,\delta)\big]\le\delta$$

    All numbers of errors with their probabilities, at risks just above one of the limits, where
    equality is reached.
    """
    n = rng.integers(1, 60, count)
    k, delta = rng.integers(0, n), rng.uniform(0.01, 0.4, count)
    left = []
    for m, errors, level in zip(n.tolist(), k, (factor * delta).tolist(), strict=True):
        left.append(
            _misses(lambda j, m=m, level=level: held_out_bound(j, m, level).bound, int(errors), m)
        )
    return np.array(left), delta


@computed(
    Kind.INEQUALITY,
    "Coverage of the mean of draws",
    status=Status.NEW,
    count=48,
    evaluations=2400,
    roundings=_ROUNDINGS,
    controls=[Control("a tenth more of delta", factor=1.1)],
)
def draws_coverage(rng, count, *, factor=1.0):
    r"""$$\mathbb P\Big[q>\sup\{p:{\rm kl}(\hat q_N\|p)\le\tfrac{\ln(1/\delta)}N\}\Big]\le\delta$$

    Losses 0 or 1 of N drawn networks. Equality at the limit of no error.
    """
    N = rng.integers(1, 60, count)
    k = np.where(np.arange(count) % 2, rng.integers(0, N), 0)
    delta = rng.uniform(0.01, 0.4, count)
    left = []
    for m, errors, level in zip(N.tolist(), k, delta.tolist(), strict=True):
        c = -math.log(factor * level) / m
        left.append(_misses(lambda j, m=m, c=c: kl_upper_inverse(j / m, c), int(errors), m))
    return np.array(left), delta


def _lengths(rng):
    """Lengths of a complete prefix-free code: leaves of a tree that is split at random."""
    lengths = [0]
    while len(lengths) < _FILES:
        length = lengths.pop(int(rng.integers(len(lengths))))
        lengths += [length + 1, length + 1]
    return lengths


@computed(
    Kind.INEQUALITY,
    "Coverage of the compression bound",
    status=Status.NEW,
    count=32,
    evaluations=320,
    roundings=_ROUNDINGS,
    controls=[Control("every file half a bit shorter", shorter=0.5)],
)
def compression_coverage(rng, count, *, shorter=0.0):
    r"""$$\sum_h\mathbb P\big[R(h)>{\rm bound}(\hat R(h),n,b_h,\delta)\big]\le\delta$$

    Four files of a complete code, $\sum_h2^{-b_h}=1$: the chance that the bound of some file fails
    is at most the sum. Counted errors and the kl form; both reach equality, the second one at no
    error.
    """
    left, delta = np.zeros((count, 2)), rng.uniform(0.02, 0.4, count)
    for e in range(count):
        n, level = int(rng.integers(8, 40)), float(delta[e])
        for length in _lengths(rng):
            errors = int(rng.integers(0, n // 4 + 1)) * int(e % 2)
            bits = max(length - shorter, 0.0)
            for place, form in enumerate(_FORMS):

                def limit(j, form: Form = form, n=n, bits=bits, level=level):
                    return compression_bound(j / n, n, bits, level, form=form).bound

                left[e, place] += _misses(limit, errors, n)
    return left, np.stack([delta, delta], axis=1)


# The outcomes of all predictors have few counts of errors, and each is a bound to be computed.
_held_out = lru_cache(maxsize=256)(held_out_bound)


def _least(errors, n, delta, weights, *, paid):
    """The least held-out bound, at shares of delta or, where nothing is paid, all of it each."""
    bounds = [partial(_held_out, int(k), n) for k in errors]
    if not paid:
        return min(bound(delta).bound for bound in bounds)
    return union(*bounds, delta=delta, weights=weights).bound


def _misses_of_exclusive(count, least):
    """P(least < risk) of predictors of which at most one is right on the one example."""
    bounds = [least(np.arange(count) != k, 1) for k in range(count)]
    # predictor k is right with probability 1 less its risk, which is just above its bound then
    return sum(1 - bound * _ABOVE for bound in bounds)


def _misses_of_independent(count, errors, n, least):
    """P(least < risk) of predictors with one risk and a held-out set of n examples each."""
    from scipy.stats import binom  # takes half a second, and all papers are listed without it

    risk = min(1.0, least([errors] * count, n) * _ABOVE)
    law = binom.pmf(np.arange(n + 1), n, risk)
    missed = 0.0
    for counts in combinations_with_replacement(range(n + 1), count):
        if least(counts, n) < risk:
            repeats = [math.factorial(counts.count(k)) for k in set(counts)]
            orders = math.factorial(count) / math.prod(repeats)
            missed += orders * math.prod(law[list(counts)])
    return missed


@computed(
    Kind.INEQUALITY,
    "Coverage of the least of several certificates",
    status=Status.NEW,
    count=36,
    evaluations=240,
    roundings=_ROUNDINGS,
    controls=[
        Control("the least of bounds at all of delta each", paid=False),
        Control("shares of a tenth more than delta", factor=1.1),
    ],
)
def union_coverage(rng, count, *, paid=True, factor=1.0):
    r"""$$\mathbb P\Big[\min_{k\le K}B_k(w_k\delta)<R_{k^*}\Big]\le\sum_kw_k\delta=\delta$$

    The least of $K=2$ or 3 exact held-out bounds, of the predictor $k^*$. Every outcome with its
    probability. Even instances: at most one predictor is right on the example, so that the bounds
    fail one at a time and equality is reached. Odd ones: independent held-out sets, equal shares.
    """
    left, delta = np.empty(count), rng.uniform(0.02, 0.3, count)
    for e in range(count):
        number = int(rng.integers(2, 4))
        weights = rng.dirichlet(np.ones(number)) if e % 2 == 0 else np.full(number, 1 / number)
        weights = np.nextafter(weights / weights.sum(), 0)
        n = int(rng.integers(2, 8))
        errors = int(rng.integers(0, n))

        def least(counts, examples, e=e, weights=weights):
            return _least(counts, examples, factor * delta[e], weights.tolist(), paid=paid)

        if e % 2 == 0:
            left[e] = _misses_of_exclusive(number, least)
        else:
            left[e] = _misses_of_independent(number, errors, n, least)
    return left, delta
