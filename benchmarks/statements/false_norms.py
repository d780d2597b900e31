"""False statements of the geometry of norms, of stable ranks and of spectra of graphs."""

import jax.numpy as jnp
from jax.scipy.linalg import expm

import attlas as at
from benchmarks.statements.false_learning import HALF, vectors
from benchmarks.statements.false_matrices import graphs, pairs, positive


def one_norm(v):
    return jnp.sum(jnp.abs(v))


def four_points(rng, count):
    return {name: rng.normal(size=(count, 2)) for name in ("x", "y", "z", "w")}


def directions_and_distance(x, y, norm):
    """How far two directions are apart, beside the distance in units of both lengths."""
    return norm(x / norm(x) - y / norm(y)), norm(x - y) / (norm(x) + norm(y))


def cubes(x, y):
    """The cubes of the 3-norms of sum and difference together, and of the two vectors."""

    def cube(v):
        return jnp.sum(jnp.abs(v) ** 3)

    return cube(x + y) + cube(x - y), cube(x) + cube(y)


def diagonals_and_sides(x, y, z, w, norm):
    """Products of the diagonals of four points, and of their opposite sides together."""
    sides = norm(x - y) * norm(z - w) + norm(x - w) * norm(y - z)
    return norm(x - z) * norm(y - w), sides


def pair_sums(x, y, z, norm):
    """The norms of the sums of two, of all three and of the three vectors."""
    single = norm(x) + norm(y) + norm(z)
    return norm(x + y) + norm(y + z) + norm(z + x), norm(x + y + z) + single


@at.inequality(sample=vectors, controls=HALF)
def directions_in_one_norm(x, y, z, *, c=1.0):
    r"""$$|x/|x|_1 - y/|y|_1|_1 \le \frac{3 |x - y|_1}{|x|_1 + |y|_1}$$ 4 is right: Dunkl, Williams (1964)."""
    left, right = directions_and_distance(x, y, one_norm)
    return left, c * 3 * right


@at.inequality(sample=vectors, controls=HALF)
def clarkson_with_less(x, y, z, *, c=1.0):
    r"""$$|x + y|_3^3 + |x - y|_3^3 \le 3.9 (|x|_3^3 + |y|_3^3)$$ 4 is right: Clarkson (1936)."""
    left, right = cubes(x, y)
    return left, c * 3.9 * right


@at.inequality(sample=vectors, controls=HALF)
def hlawka_in_the_maximum_norm(x, y, z, *, c=1.0):
    r"""$$|x+y| + |y+z| + |z+x| \le |x+y+z| + |x| + |y| + |z|$$ in the maximum norm. Kelly, Smiley (1965)."""
    left, right = pair_sums(x, y, z, lambda v: jnp.max(jnp.abs(v)))
    return left, c * right


@at.inequality(sample=four_points, controls=HALF)
def ptolemy_in_one_norm(x, y, z, w, *, c=1.0):
    r"""$$|x-z||y-w| \le |x-y||z-w| + |x-w||y-z|$$ in the 1-norm. Schoenberg (1952)."""
    left, right = diagonals_and_sides(x, y, z, w, one_norm)
    return left, c * right


@at.inequality(sample=pairs, controls=HALF)
def stable_rank_is_subadditive(A, B, *, c=1.0):
    r"""$$r(A + B) \le r(A) + r(B)$$ r = |A|_F^2 / |A|_2^2. Ipsen, Saibaba (2024)."""

    def rank(M):
        return jnp.sum(M**2) / jnp.linalg.norm(M, 2) ** 2

    return rank(A + B), c * (rank(A) + rank(B))


@at.inequality(sample=positive, controls=[at.Control("scaled", scale=10.0)])
def exponential_is_monotone(A, B, *, scale=1.0):
    r"""$$e^A \preceq e^{A + B}$$ for semidefinite matrices. Bhatia, Matrix Analysis, V.1."""
    A, B = A / 4, B / 4
    right = expm(A + B)
    return at.Sides(
        0.0, jnp.linalg.eigvalsh(right / scale - expm(A))[0], magnitude=jnp.trace(right)
    )


@at.inequality(sample=graphs, controls=HALF)
def radius_by_edges(G, *, c=1.0):
    r"""$$\lambda_1 \le \sqrt{\max(2m - n + 1, 0)}$$ true of graphs without lone vertices: Hong (1988)."""
    A = jnp.triu(G, 1) + jnp.triu(G, 1).T
    bound = jnp.sqrt(jnp.maximum(jnp.sum(A) - 6, 0))
    return at.Sides(jnp.linalg.eigvalsh(A)[-1], c * bound, magnitude=7.0)


@at.inequality(sample=pairs, controls=HALF)
def norm_of_the_reversed_product(A, B, *, c=1.0):
    r"""$$\|AB\|_2 \le 2 \|BA\|_2$$ with 1 it is true where AB is normal. Bhatia, Matrix Analysis, IX.1."""
    return jnp.linalg.norm(A @ B, 2), c * 2 * jnp.linalg.norm(B @ A, 2)
