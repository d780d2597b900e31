"""True statements of the geometry of norms, of determinants and of spectra of graphs."""

import jax.numpy as jnp

import attlas as at
from benchmarks.statements.false_learning import HALF, vectors
from benchmarks.statements.false_matrices import graphs, positive, symmetric
from benchmarks.statements.false_norms import (
    cubes,
    diagonals_and_sides,
    directions_and_distance,
    four_points,
    one_norm,
    pair_sums,
)

length = jnp.linalg.norm


@at.inequality(sample=vectors, controls=HALF)
def dunkl_williams(x, y, z, *, c=1.0):
    r"""$$|x/|x| - y/|y|| \le \frac{2 |x - y|}{|x| + |y|}$$ in the 2-norm. Dunkl, Williams (1964)."""
    left, right = directions_and_distance(x, y, length)
    return left, c * 2 * right


@at.inequality(sample=vectors, controls=HALF)
def dunkl_williams_in_one_norm(x, y, z, *, c=1.0):
    r"""$$|x/|x|_1 - y/|y|_1|_1 \le \frac{4 |x - y|_1}{|x|_1 + |y|_1}$$ Dunkl, Williams (1964)."""
    left, right = directions_and_distance(x, y, one_norm)
    return left, c * 4 * right


@at.inequality(sample=vectors, controls=HALF)
def clarkson(x, y, z, *, c=1.0):
    r"""$$|x + y|_3^3 + |x - y|_3^3 \le 4 (|x|_3^3 + |y|_3^3)$$ Clarkson (1936)."""
    left, right = cubes(x, y)
    return left, c * 4 * right


@at.inequality(sample=vectors, controls=HALF)
def hlawka(x, y, z, *, c=1.0):
    r"""$$|x+y| + |y+z| + |z+x| \le |x+y+z| + |x| + |y| + |z|$$ in the 2-norm. Hlawka (1942)."""
    left, right = pair_sums(x, y, z, length)
    return left, c * right


@at.inequality(sample=four_points, controls=HALF)
def ptolemy(x, y, z, w, *, c=1.0):
    r"""$$|x-z||y-w| \le |x-y||z-w| + |x-w||y-z|$$ in the 2-norm. Schoenberg (1952)."""
    left, right = diagonals_and_sides(x, y, z, w, length)
    return left, c * right


@at.inequality(sample=positive, controls=[at.Control("tenfold on the left", t=10.0)])
def minkowski_determinant(A, B, *, t=1.0):
    r"""$$\det(A)^{1/3} + \det(B)^{1/3} \le \det(A + B)^{1/3}$$ for semidefinite 3 x 3 matrices. Minkowski (1905)."""

    def root(M):
        return jnp.maximum(jnp.linalg.det(M), 0.0) ** (1 / 3)

    return at.Sides(t * (root(A) + root(B)), root(A + B), error=1e-5 * jnp.trace(A + B))


@at.inequality(sample=symmetric, controls=HALF)
def hoffman_wielandt(A, B, *, c=1.0):
    r"""$$|\lambda(A) - \lambda(B)|_2 \le \|A - B\|_F$$ sorted, symmetric matrices. Hoffman, Wielandt (1953)."""
    left = length(jnp.linalg.eigvalsh(A) - jnp.linalg.eigvalsh(B))
    return at.Sides(left, c * length(A - B), magnitude=length(A) + length(B))


@at.inequality(sample=graphs, controls=HALF)
def radius_by_edges_and_vertices(G, *, c=1.0):
    r"""$$\lambda_1 \le \sqrt{2m(n - 1)/n}$$ for simple graphs. Brualdi, Hoffman (1985)."""
    A = jnp.triu(G, 1) + jnp.triu(G, 1).T
    bound = jnp.sqrt(jnp.sum(A) * 6 / 7)
    return at.Sides(jnp.linalg.eigvalsh(A)[-1], c * bound, magnitude=7.0)
