"""False statements about matrices."""

import jax.numpy as jnp
from jax.scipy.linalg import expm

import attlas as at

HALF = [at.Control("half of the right side", c=0.5)]
ONE_MORE = [at.Control("one more on the left", more=1.0)]


def pairs(rng, count):
    return {"A": rng.normal(size=(count, 3, 3)), "B": rng.normal(size=(count, 3, 3))}


def symmetric(rng, count):
    A, B = rng.normal(size=(2, count, 3, 3))
    return {"A": A + A.swapaxes(1, 2), "B": B + B.swapaxes(1, 2)}


def positive(rng, count):
    A, B, C = rng.normal(size=(3, count, 3, 3))
    return {name: X @ X.swapaxes(1, 2) for name, X in {"A": A, "B": B, "C": C}.items()}


def modulus(A):
    values, vectors = jnp.linalg.eigh(A.T @ A)
    return (vectors * (jnp.sqrt(jnp.maximum(values, 0)))[None]) @ vectors.T


def power_of(A, exponent):
    values, vectors = jnp.linalg.eigh(A)
    return (vectors * (jnp.maximum(values, 1e-300) ** exponent)[None]) @ vectors.T


def logarithm(A):
    values, vectors = jnp.linalg.eigh(A)
    return (vectors * (jnp.log(jnp.maximum(values, 1e-300)))[None]) @ vectors.T


@at.inequality(sample=pairs, controls=HALF)
def radius_of_product(A, B, *, c=1.0):
    r"""$$\rho(AB) \le \rho(A)\rho(B)$$ Horn and Johnson, Matrix Analysis, Section 5.6."""

    def radius(M):
        return jnp.max(jnp.abs(jnp.linalg.eigvals(M)))

    return radius(A @ B), c * radius(A) * radius(B)


@at.inequality(sample=symmetric, controls=HALF)
def modulus_is_lipschitz(A, B, *, c=1.0):
    r"""$$\||A| - |B|\|_2 \le \|A - B\|_2$$ Kato, Proc. Japan Acad. 49 (1973)."""
    return jnp.linalg.norm(modulus(A) - modulus(B), 2), c * jnp.linalg.norm(A - B, 2)


@at.inequality(sample=positive, controls=ONE_MORE)
def trace_of_three(A, B, C, *, more=0.0):
    r"""$$0 \le \mathrm{tr}(ABC)$$ for semidefinite matrices. Bhatia, Positive Definite Matrices."""
    size = jnp.trace(A) * jnp.trace(B) * jnp.trace(C)
    return at.Sides(more * size, jnp.trace(A @ B @ C), magnitude=size)


@at.inequality(sample=positive, controls=[at.Control("fourth powers, scaled", scale=10.0)])
def square_is_monotone(A, B, *, scale=1.0):
    r"""$$B^2 \preceq (A + B)^2$$ for semidefinite matrices. Bhatia, Matrix Analysis, V.1."""
    S, T = B, (A + B) / scale
    least = jnp.linalg.eigvalsh(T @ T - S @ S)[0]
    return at.Sides(0.0, least, magnitude=jnp.linalg.norm(A + B, 2) ** 2)


@at.inequality(sample=lambda rng, count: {"X": rng.normal(size=(count, 3, 2, 2))}, controls=HALF)
def golden_thompson_for_three(X, *, c=1.0):
    r"""$$\mathrm{tr}\, e^{A+B+C} \le |\mathrm{tr}\, e^A e^B e^C|$$ symmetric A, B, C. Thompson, J. Math. Phys. 6 (1965)."""
    A, B, C = (X + X.swapaxes(1, 2)) / 2
    product = jnp.trace(expm(A) @ expm(B) @ expm(C))
    return jnp.trace(expm(A + B + C)), c * jnp.abs(product)


@at.inequality(sample=pairs, controls=HALF)
def commutator(A, B, *, c=1.0):
    r"""$$\|AB - BA\|_F \le 1.3 \|A\|_F \|B\|_F$$ The constant is 1.414: Boettcher, Wenzel (2005)."""
    return jnp.linalg.norm(A @ B - B @ A), c * 1.3 * jnp.linalg.norm(A) * jnp.linalg.norm(B)


@at.inequality(sample=pairs, controls=[at.Control("scaled", scale=10.0)])
def modulus_of_sum(A, B, *, scale=1.0):
    r"""$$|A + B| \preceq |A| + |B|$$ Thompson, Pacific J. Math. 66 (1976)."""
    right = (modulus(A) + modulus(B)) / scale
    return at.Sides(0.0, jnp.linalg.eigvalsh(right - modulus(A + B))[0],
                    magnitude=jnp.linalg.norm(A, 2) + jnp.linalg.norm(B, 2))  # fmt: skip


@at.inequality(sample=pairs, controls=HALF)
def singular_values_of_a_sum(A, B, *, c=1.0):
    r"""$$\sigma_2(A + B) \le \sigma_2(A) + \sigma_2(B)$$ Horn and Johnson, Topics, 3.3."""

    def second(M):
        return jnp.linalg.svd(M, compute_uv=False)[1]

    return second(A + B), c * (second(A) + second(B))


@at.inequality(
    sample=lambda rng, count: {"A": rng.normal(size=(count, 3, 3)), "t": rng.uniform(0, 3, count)},
    controls=HALF,
)
def stable_flow_contracts(A, t, *, c=1.0):
    r"""$$\|e^{t(A - s I)}\|_2 \le 1$$ where s is the largest real part plus 0.1. Trefethen, Embree (2005)."""
    s = jnp.max(jnp.linalg.eigvals(A).real) + 0.1
    return jnp.linalg.norm(expm(t * (A - s * jnp.eye(3))), 2), c * 1.0


@at.inequality(sample=positive, controls=[at.Control("scaled", scale=10.0)])
def log_euclidean_mean_is_larger(A, B, *, scale=1.0):
    r"""$$A \# B \preceq \exp((\log A + \log B) / 2)$$ Ando, Hiai, Linear Algebra Appl. 197 (1994)."""
    A, B = A + 0.1 * jnp.eye(3), B + 0.1 * jnp.eye(3)
    root, back = power_of(A, 0.5), power_of(A, -0.5)
    mean = root @ power_of(back @ B @ back, 0.5) @ root
    right = expm((logarithm(A) + logarithm(B)) / 2) / scale
    return at.Sides(0.0, jnp.linalg.eigvalsh(right - mean)[0],
                    magnitude=10 * (jnp.trace(A) + jnp.trace(B)))  # fmt: skip


@at.inequality(sample=pairs, controls=HALF)
def radius_of_hadamard_product(A, B, *, c=1.0):
    r"""$$\rho(A \circ B) \le \rho(A) \rho(B)$$ for real matrices. True of nonnegative ones: Horn, Johnson, Topics, 5.7."""

    def radius(M):
        return jnp.max(jnp.abs(jnp.linalg.eigvals(M)))

    return radius(A * B), c * radius(A) * radius(B)


def graphs(rng, count):
    return {"G": rng.integers(0, 2, size=(count, 7, 7)).astype(float)}


@at.inequality(sample=graphs, controls=HALF)
def connectivity_and_degree(G, *, c=1.0):
    r"""$$\lambda_2(L) \le \min_i d_i$$ for simple graphs; fails at complete ones. Fiedler (1973)."""
    A = jnp.triu(G, 1) + jnp.triu(G, 1).T
    degrees = A.sum(axis=0)
    return at.Sides(jnp.linalg.eigvalsh(jnp.diag(degrees) - A)[1], c * jnp.min(degrees),
                    magnitude=7.0)  # fmt: skip
