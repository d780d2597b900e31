"""True limits and rates that are slow somewhere, and false ones that fail for few instances.

Each is a function of an instance and of the scales n. A limit gives the distance, which tends to
zero for almost every instance of its sampler; a rate gives left, which is stated to be O(1 / n).
"""

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control
from attlas.claims.sides import Doubling
from attlas.claims.statement import limit, rate

SCALES = {
    "four of 10": 10.0 ** np.arange(1, 5),
    "seven of 4": 4.0 ** np.arange(2, 9),
    "doubled": Doubling("n", 16),
}


def uniform(rng, count):
    return {"x": rng.uniform(size=count)}


def symmetric(rng, count):
    return {"x": rng.uniform(-1, 1, size=count)}


def normal(rng, count):
    return {"x": rng.normal(size=count)}


def vector(rng, count):
    return {"x": rng.normal(size=(count, 3))}


def matrix(rng, count):
    return {"x": rng.normal(size=(count, 2, 2))}


def slowest_mode(x, n):
    """Error of gradient descent on a Gaussian least squares of two unknowns, per size."""
    sizes = jnp.linalg.eigvalsh(x.T @ x)
    return jnp.exp(n * jnp.log1p(-sizes[0] / sizes[1] / 2))


def cosine(x):
    return jnp.sum(x) / jnp.sqrt(len(x)) / jnp.linalg.norm(x)


def largest_share(x, n):
    return 1 - jnp.max(jax.nn.softmax(jnp.outer(n, x), axis=-1), axis=-1)


TRUE_LIMITS = {
    "exponential": (uniform, lambda x, n: jnp.exp(-x * n) + 1 / n),
    "fourth power": (symmetric, lambda x, n: jnp.exp(-(x**4) * n) + n**-0.5),
    "fourth power of a normal number": (normal, lambda x, n: jnp.exp(-(x**4) * n) + n**-0.5),
    "square": (symmetric, lambda x, n: jnp.exp(-(x**2) * n) + n**-0.5),
    "rational": (normal, lambda x, n: 1 / (1 + x**2 * n)),
    "logarithm, clipped": (symmetric, lambda x, n: jnp.minimum(jnp.log1p(1 / abs(x) / n), 1.0)),
    "power of 1 - x^2": (symmetric, lambda x, n: jnp.exp(n * jnp.log1p(-(x**2)))),
    "one over a logarithm": (normal, lambda x, n: 1 / jnp.log(n * abs(x) + jnp.e)),
    "power of a number": (uniform, lambda x, n: jnp.exp(n * jnp.log(x))),
    "power of the scale": (normal, lambda x, n: n ** -jnp.minimum(abs(x), 1.0)),
    "softmax": (vector, largest_share),
    "tanh": (normal, lambda x, n: 1 - jnp.tanh(n * abs(x))),
    "determinant": (matrix, lambda x, n: 1 / (1 + n * jnp.linalg.det(x) ** 2)),
    "slowest mode": (matrix, slowest_mode),
    "kernel of a pair": (vector, lambda x, n: jnp.exp(-n * (x[0] - x[1]) ** 2) + 1 / n),
}
TRUE_RATES = {
    "one over x": (uniform, lambda x, n: jnp.minimum(n, 1 / x) / n),
    "one over x, smooth": (uniform, lambda x, n: 1 / (x + 1 / n) / n),
    "one over |x| until the root": (normal, lambda x, n: jnp.minimum(n**0.5, 1 / abs(x)) / n),
    "fourth power": (symmetric, lambda x, n: jnp.minimum(n, x**-4) / n),
    "saturation": (normal, lambda x, n: -jnp.expm1(-abs(x) * n) / abs(x) / n),
    "exponential": (uniform, lambda x, n: jnp.exp(-x * n) + 1e-3 / n),
    "slowest mode": (matrix, lambda x, n: slowest_mode(x, n) + 1e-3 / n),
}
FALSE_LIMITS = {
    "above 0.999": (uniform, lambda x, n: 1 / n + jnp.where(x > 0.999, 0.5, 0.0)),
    "an interval": (
        uniform,
        lambda x, n: (
            (1 + abs(x - 0.3)) / n ** jnp.where(abs(x - 0.3) < 1e-6, 0, 0.5 + abs(x - 0.3))
        ),
    ),
    "a cone": (vector, lambda x, n: 1 / n + 1e3 * jnp.maximum(cosine(x) - 0.99995, 0)),
    "a wider cone": (vector, lambda x, n: 1 / n + 20 * jnp.maximum(cosine(x) - 0.995, 0)),
    "a tail": (normal, lambda x, n: 1 / n + jnp.maximum(x - 3.5, 0)),
    "a peak": (uniform, lambda x, n: 1 / n + 0.2 * jnp.exp(-((1e3 * (x - 0.3)) ** 2))),
    "inside a slow set": (
        symmetric,
        lambda x, n: jnp.exp(-(x**2) * n) + 1 / n + jnp.where(abs(x) < 1e-2, 0.5, 0.0),
    ),
    "beside a slow set": (
        symmetric,
        lambda x, n: jnp.exp(-(x**2) * n) + 1 / n + jnp.where(x > 0.999, 0.5, 0.0),
    ),
    "few matrices": (
        matrix,
        lambda x, n: 1 / n + 0.1 * jnp.maximum(jnp.linalg.norm(x) - 4.5, 0.0),
    ),
}
FALSE_RATES = {
    "an interval": (
        uniform,
        lambda x, n: n ** (jnp.where(abs(x - 0.3) < 1e-6, 0.5, -abs(x - 0.3)) - 1),
    ),
    "a cone": (vector, lambda x, n: n ** (5000 * jnp.maximum(cosine(x) - 0.9999, 0) - 1)),
    "above 0.98": (uniform, lambda x, n: n ** (20 * jnp.maximum(x - 0.98, 0) - 1)),
    "near an axis": (
        vector,
        lambda x, n: n ** -jnp.where(abs(x[0]) > 0.9999 * jnp.linalg.norm(x), 0.5, 1.5),
    ),
    "a tail": (normal, lambda x, n: n ** (jnp.maximum(x - 3, 0) - 1)),
}


def stated_limit(sampler, distance, scales):
    """The claim that a distance tends to zero."""
    declared = limit(scales=scales, sample=sampler, controls=[Control("a plateau", plateau=1.0)])
    if isinstance(scales, Doubling):

        @declared
        def doubled(x, n, *, plateau=0.0):
            r"""$$d_n \to 0$$"""
            return distance(x, 1.0 * n) + plateau, 0.0 * n

        return doubled

    @declared
    def stated(x, *, plateau=0.0):
        r"""$$d_n \to 0$$"""
        return distance(x, scales) + plateau, 0 * scales

    return stated


def stated_rate(sampler, left, scales):
    """The claim that left is of the order 1 / n."""
    declared = rate(scales=scales, sample=sampler, controls=[Control("a larger power", power=0.7)])
    if isinstance(scales, Doubling):

        @declared
        def doubled(x, n, *, power=0.0):
            r"""$$d_n = O(1 / n)$$"""
            return left(x, 1.0 * n) * (1.0 * n) ** power, 1.0 / n

        return doubled

    @declared
    def stated(x, *, power=0.0):
        r"""$$d_n = O(1 / n)$$"""
        return left(x, scales) * scales**power, 1 / scales

    return stated
