"""True statements about matrices."""

import jax.numpy as jnp
from jax.scipy.linalg import expm

import attlas as at
from benchmarks.statements.false_matrices import (
    HALF,
    graphs,
    modulus,
    pairs,
    positive,
    power_of,
    symmetric,
)


@at.inequality(sample=symmetric, controls=HALF)
def modulus_in_frobenius_norm(A, B, *, c=1.0):
    r"""$$\||A| - |B|\|_F \le \|A - B\|_F$$ Araki, Yamagami (1981)."""
    scale = 1e-6 * (jnp.linalg.norm(A) + jnp.linalg.norm(B))
    return at.Sides(jnp.linalg.norm(modulus(A) - modulus(B)), c * jnp.linalg.norm(A - B),
                    error=scale)  # fmt: skip


@at.inequality(sample=symmetric, controls=HALF)
def golden_thompson(A, B, *, c=1.0):
    r"""$$\mathrm{tr}\, e^{A+B} \le \mathrm{tr}\, e^A e^B$$ symmetric A, B. Golden, Thompson (1965)."""
    size = jnp.trace(expm(A)) * jnp.trace(expm(B))
    return at.Sides(jnp.trace(expm(A + B)), c * jnp.trace(expm(A) @ expm(B)), magnitude=size)


@at.inequality(sample=pairs, controls=HALF)
def boettcher_wenzel(A, B, *, c=1.0):
    r"""$$\|AB - BA\|_F \le \sqrt 2 \|A\|_F \|B\|_F$$ Boettcher, Wenzel (2005)."""
    bound = jnp.sqrt(2.0) * jnp.linalg.norm(A) * jnp.linalg.norm(B)
    return jnp.linalg.norm(A @ B - B @ A), c * bound


@at.inequality(sample=pairs, controls=HALF)
def weyl_for_singular_values(A, B, *, c=1.0):
    r"""$$\sigma_3(A + B) \le \sigma_2(A) + \sigma_2(B)$$ Horn, Johnson, Topics, 3.3."""
    s, a, b = (jnp.linalg.svd(M, compute_uv=False) for M in (A + B, A, B))
    return at.Sides(s[2], c * (a[1] + b[1]), magnitude=a[0] + b[0])


@at.inequality(sample=positive, controls=HALF)
def oppenheim(A, B, *, c=1.0):
    r"""$$\det A \prod_i B_{ii} \le \det(A \circ B)$$ for semidefinite matrices. Oppenheim (1930)."""
    diagonal = jnp.prod(jnp.diag(A)) * jnp.prod(jnp.diag(B))
    return at.Sides(jnp.linalg.det(A) * jnp.prod(jnp.diag(B)), c * jnp.linalg.det(A * B),
                    magnitude=diagonal)  # fmt: skip


@at.inequality(sample=positive, controls=[at.Control("a tenth of the sum", c=0.1)])
def root_is_monotone(A, B, *, c=1.0):
    r"""$$B^{1/2} \preceq (A + B)^{1/2}$$ Loewner (1934), Heinz (1951)."""
    size = jnp.sqrt(jnp.trace(A + B))
    least = jnp.linalg.eigvalsh(power_of(c * (A + B), 0.5) - power_of(B, 0.5))[0]
    return at.Sides(0.0, least, error=1e-6 * size)


@at.inequality(sample=positive, controls=HALF)
def lieb_thirring(A, B, *, c=1.0):
    r"""$$\mathrm{tr}\,(AB)^2 \le \mathrm{tr}\, A^2 B^2$$ Lieb, Thirring (1976)."""
    size = jnp.trace(A) ** 2 * jnp.trace(B) ** 2
    return at.Sides(jnp.trace(A @ B @ A @ B), c * jnp.trace(A @ A @ B @ B), magnitude=size)


@at.inequality(sample=graphs, controls=HALF)
def fiedler(G, *, c=1.0):
    r"""$$\lambda_2(L) \le \frac{n}{n-1} \min_i d_i$$ for simple graphs. Fiedler (1973)."""
    A = jnp.triu(G, 1) + jnp.triu(G, 1).T
    degrees = A.sum(axis=0)
    return at.Sides(jnp.linalg.eigvalsh(jnp.diag(degrees) - A)[1], c * 7 / 6 * jnp.min(degrees),
                    magnitude=7.0)  # fmt: skip


@at.inequality(sample=pairs, controls=HALF)
def hadamard_product_norm(A, B, *, c=1.0):
    r"""$$\|A \circ B\|_2 \le \|A\|_2 \|B\|_2$$ Horn, Johnson, Topics, 5.1."""
    return jnp.linalg.norm(A * B, 2), c * jnp.linalg.norm(A, 2) * jnp.linalg.norm(B, 2)
