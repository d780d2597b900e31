r"""Appendix G: cross-entropy after a softmax is 2-Lipschitz in the largest score, and no less."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.bounds.generalisation.trauger2023_masked import (
    CROSS_ENTROPY_LIPSCHITZ,
    clipped_cross_entropy,
)
from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import identity, inequality, limit

_WORDS = 5
_FAR = 1e6
"""A ceiling that no loss here reaches."""
# A logarithm of a sum of 5 exponentials and a difference of two losses.
_ROUNDINGS = 32


def scores(rng, count):
    """Two score vectors; in every other pair they differ in the steepest direction."""
    size = six_decades(rng, (count, 1), -1, 1.2)
    a = size * rng.normal(size=(count, _WORDS))
    step = six_decades(rng, (count, 1), -3, 0.5)
    b = a + step * rng.normal(size=a.shape)
    steepest = np.where(np.arange(_WORDS) == 0, -1.0, 1.0)
    a[1::2, 0] -= 3 * size[1::2, 0]
    a[2::4, 0] += 3 * size[2::4, 0]
    ceiling = 10.0 ** rng.uniform(-0.5, 1, count)
    # An unlikely true word below a high ceiling: there the constant 2 is nearly attained.
    a[1::8], ceiling[1::8] = rng.normal(size=a[1::8].shape), 20
    a[1::8, 0] = a[1::8].min(axis=1) - 5
    b[1::2] = a[1::2] + step[1::2] * steepest
    return {"a": a, "b": b, "ceiling": ceiling}


def _moved(a, b, ceiling):
    """Change of the loss, largest change of a score, and the size of what cancels."""
    losses = [clipped_cross_entropy(x, 0, ceiling) for x in (a, b)]
    size = 1 + jnp.max(jnp.abs(a)) + jnp.max(jnp.abs(b))
    return jnp.abs(losses[0] - losses[1]), jnp.max(jnp.abs(a - b)), size


_gradient = jax.grad(lambda x: clipped_cross_entropy(x, 0, _FAR))
on_scores = partial(inequality, sample=scores, roundings=_ROUNDINGS)


@on_scores(
    "Appendix G and Theorem 5.1",
    Source.FOUND,
    search_over=("a", "b"),
    controls=[Control("1 in place of 2", constant=1.0)],
)
def appendix_g(a, b, *, constant=CROSS_ENTROPY_LIPSCHITZ):
    r"""$$|\ell(a) - \ell(b)| \le 2 \|a-b\|_\infty, \quad \ell(x) = \ln \sum_t e^{x_t} - x_i$$

    Five words. 2 is sharp: the ratio comes to 1 where the true word's weight vanishes.
    """
    change, bound, size = _moved(a, b, _FAR)
    return Sides(change, constant * bound, magnitude=size)


@identity(
    "Appendix G, the gradient",
    Source.FOUND,
    sample=scores,
    roundings=_ROUNDINGS,
    controls=[Control("the square of $1 - p$", power=2.0)],
)
def appendix_g_gradient(a, *, power=1.0):
    r"""$$\|\nabla \ell(x)\|_1 = 2(1-p_i), \quad \partial_i \ell = p_i-1, \quad
    \sum_{j \ne i} \partial_j \ell = 1-p_i, \quad p = {\rm softmax}(x)$$

    Automatic differentiation against the printed derivatives.
    """
    slope, wrong = _gradient(a), (1 - jax.nn.softmax(a)[0]) ** power
    slopes = jnp.stack([jnp.sum(jnp.abs(slope)), slope[0], jnp.sum(slope[1:])])
    stated = jnp.stack([2 * wrong, -wrong, wrong])
    return Sides(slopes, stated, magnitude=jnp.ones(()))


_DROPS = np.array([2.0, 4.0, 8.0, 16.0])


def gaussian_scores(rng, count):
    """Normal scores, far nearer to each other than the drops are long or about as near."""
    return {"a": 10 ** rng.uniform(-6, 0, (count, 1)) * rng.normal(size=(count, _WORDS))}


@limit(
    "Appendix G, 2 is the least constant",
    sample=gaussian_scores,
    scales=_DROPS,
    status=Status.NEW,
    roundings=_ROUNDINGS,
    controls=[Control("1 in place of 2", constant=1.0)],
)
def appendix_g_sharp(a, *, constant=2.0):
    r"""$$\lim_{x_i \to -\infty} \|\nabla \ell(x)\|_1 = 2$$

    Approached and not attained, as the score of the true word falls to $-16$; no constant below 2
    holds for all scores.
    """
    steepest = jax.vmap(lambda drop: jnp.sum(jnp.abs(_gradient(a.at[0].add(-drop)))))
    largest = steepest(jnp.asarray(_DROPS))
    return largest, jnp.full_like(largest, constant)


@on_scores(
    "Appendix G in the Euclidean norm",
    status=Status.NEW,
    search_over="a",
    controls=[Control("1 in place of the square root of 2", square=1.0)],
)
def appendix_g_euclidean(a, *, square=2.0):
    r"""$$\|\nabla \ell(x)\|_2 \le \sqrt 2$$

    Used by the contraction that has all constants (theorem-5-1-contraction).
    """
    return Sides(jnp.sum(_gradient(a) ** 2), jnp.asarray(square), magnitude=jnp.ones(()))


@on_scores(
    "Section 5, clipped cross-entropy",
    controls=[
        Control("1 in place of 2", constant=1.0),
        Control("half the ceiling", below=0.5),
        Control("at least 1/100", least=0.01),
    ],
)
def section_5_clipped(a, b, ceiling, *, constant=2.0, below=1.0, least=0.0):
    r"""$$0 \le \ell_M \le M, \quad |\ell_M(a) - \ell_M(b)| \le 2 \|a-b\|_\infty$$

    Cutting off keeps the constant and gives the loss the range that a gap needs.
    """
    change, bound, size = _moved(a, b, ceiling)
    loss = clipped_cross_entropy(a, 0, ceiling)
    right = jnp.stack([constant * bound, below * ceiling, jnp.asarray(-least)])
    return Sides(jnp.stack([change, loss, -loss]), right, magnitude=size)
