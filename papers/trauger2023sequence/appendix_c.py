r"""Appendix C: facts on Rademacher complexities and the softmax in the proof of Theorem 4.1.

F holds the values of six functions on five samples; complexities are means over all 32 signs. In
Lemma C.1 a and b are two vectors of logits. The sharpest bound in ||a - b||_inf alone is twice the
hyperbolic tangent of its half: softmax(b) gives any set A odds at most e^{2 delta} those of
softmax(a), and the logistic function rises by at most tanh(delta / 2) over a length of 2 delta.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides, Source, Status
from attlas.claims.sampling import six_decades
from attlas.claims.statement import inequality
from trauger2023sequence.single_layer_instances import exact_complexity

_FUNCTIONS, _SAMPLES = 6, 5


def functions(rng, count):
    """Functions of all scales, half of them close to one, with maps of slope at most L."""
    F = rng.normal(size=(count, _FUNCTIONS, _SAMPLES))
    F[::2] = F[::2, :1] + 0.01 * F[::2]
    kink, slope = rng.normal(size=(count, _SAMPLES)), rng.uniform(-1, 1, (count, _SAMPLES))
    slope[::4], L = 1.0, 10 ** rng.uniform(-1, 1, count)
    return {"F": six_decades(rng, (count, 1, 1), -1, 1) * F, "kink": kink, "slope": slope, "L": L}


on_functions = partial(inequality, sample=functions, source=Source.FOUND)


@on_functions(
    "Appendix C, both signs of a class",
    search_over="F",
    controls=[
        Control("without the function 0", zero=False),
        Control("1.9 in place of 2", factor=1.9),
    ],
)
def appendix_c_union(F, *, zero=True, factor=2.0):
    r"""$$0 \in \mathcal F: \quad Rad(\mathcal F \cup -\mathcal F) \le 2 Rad(\mathcal F)$$

    Equality for $\{0, f\}$. The control shows why $W_v = 0$ is named in the proof.
    """
    F = jnp.concatenate([F, jnp.zeros_like(F[:1])]) if zero else F
    symmetrised = exact_complexity(jnp.concatenate([F, -F]))
    return Sides(symmetrised, factor * exact_complexity(F), magnitude=jnp.max(jnp.abs(F)))


@on_functions(
    "Appendix C, the contraction of Ledoux and Talagrand",
    search_over=("F", "kink", "slope"),
    project=lambda slope: {"slope": jnp.clip(slope, -1, 1)},
    controls=[Control("half the Lipschitz constant", factor=0.5)],
)
def appendix_c_contraction(F, kink, slope, L, *, factor=1.0):
    r"""$$|\phi_i(s) - \phi_i(t)| \le L |s - t|: \quad
    \mathbb{E} \sup_{f} \sum_i \epsilon_i \phi_i(f(x_i)) \le
    L\, \mathbb{E} \sup_{f} \sum_i \epsilon_i f(x_i)$$

    Piecewise linear $\phi_i$ with one kink, so that $\phi_i(0) = 0$ is not asked for. Equality for
    slopes $L$ on both sides.
    """
    bent = F - kink[None]
    after = L * (jnp.maximum(bent, 0) + slope[None] * jnp.minimum(bent, 0))
    size = L * (jnp.max(jnp.abs(F)) + jnp.max(jnp.abs(kink)))
    return Sides(exact_complexity(after), factor * L * exact_complexity(F), magnitude=size)


def hidden_layers(rng, count):
    """Pooled rows of five samples, W_v, W_c and w; in every other layer W_c has one column."""
    shapes = {"pooled": (_SAMPLES, 4), "W_v": (4, 3), "W_c": (3, 4), "w": (4,)}
    arrays = {name: rng.normal(size=(count, *shape)) for name, shape in shapes.items()}
    arrays["W_v"] *= six_decades(rng, (count, 1, 1), -1, 1)
    arrays["W_c"][::2], arrays["w"][::2] = np.eye(4)[1] * np.ones((3, 1)), np.eye(4)[1]
    return arrays | {"signs": rng.choice([-1.0, 1.0], (count, _SAMPLES))}


@inequality(
    "Appendix C, from the layer to one hidden unit",
    Source.FOUND,
    sample=hidden_layers,
    search_over=("pooled", "W_v", "W_c", "w"),
    controls=[Control(r"rows of $W_c$, as $\|W_c^\top\|_{1,\infty}$ is printed", axis=1)],
)
def appendix_c_unit(pooled, W_v, W_c, w, signs, *, axis=0):
    r"""$$\Big| \sum_i \epsilon_i w^\top W_c^\top \sigma(W_v^\top p_i) \Big| \le
    \|w\|_1 \max_j \|W_c e_j\|_1 \max_{k,s} s \sum_i \epsilon_i e_k^\top \sigma(W_v^\top p_i)$$

    Both steps of the proof at once, for any pooled rows $p_i$. The norm of $W_c$ is that of its
    columns; attained by a column of equal entries where all units agree.
    """
    units = signs @ jnp.maximum(pooled @ W_v, 0)
    norms = jnp.sum(jnp.abs(w)) * jnp.max(jnp.sum(jnp.abs(W_c), axis=axis))
    return jnp.abs(w @ W_c.T @ units), norms * jnp.max(jnp.abs(units))


def two_matrices(rng, count):
    """Four tokens, W_QK and a matrix near it; in every other case two opposite tokens."""
    X = 10 ** rng.uniform(-1, 1, (count, 1, 1)) * rng.normal(size=(count, 4, 3))
    X[::2, 1], X[::2, 2], X[::2, 3] = -X[::2, 0], X[::2, 0], -X[::2, 0]
    W, half = np.zeros((count, 3, 3)), count // 2
    W[1::2] = six_decades(rng, (half, 1, 1)) * rng.normal(size=(half, 3, 3))
    step = 10 ** rng.uniform(-5, 0, (count, 1, 1)) * rng.normal(size=W.shape)
    step[::2] = 1e-4 / np.sum(X[::2, :1] ** 2, axis=2, keepdims=True) * np.eye(3)
    return {"X": X, "W": W, "step": step}


@inequality(
    "Appendix C, the cover at $\\epsilon / 2 B_x^2$, with 1 for the softmax",
    sample=two_matrices,
    status=Status.SHARPENED,
    search_over=("X", "W", "step"),
    controls=[Control("1/2 for the softmax", kappa=0.5), Control("$B_x$ for $B_x^2$", power=1.0)],
)
def appendix_c_cover(X, W, step, *, kappa=1.0, power=2.0):
    r"""$$\left\| X^\top \mathrm{softmax}(X W x_{cls}) - X^\top \mathrm{softmax}(X \hat W x_{cls})
    \right\| \le B_x^2 \|(W - \hat W) x_{cls}\|$$

    2 is printed before $B_x^2$; 1 is reached by two opposite tokens and a small step.
    """
    B_x, size = jnp.sqrt(jnp.max(jnp.sum(X**2, axis=1))), jnp.max(jnp.abs(X))
    first, second = (X.T @ jax.nn.softmax(X @ M @ X[0]) for M in (W, W + step))
    logits = 1 + jnp.max(jnp.abs(X @ W @ X[0]))
    right = kappa * B_x**power * jnp.sqrt(jnp.sum((step @ X[0]) ** 2))
    return Sides(jnp.sqrt(jnp.sum((first - second) ** 2)), right, magnitude=size * logits)


_TOKENS = 6
# Exponentials of logits, off by their own size in roundings, are the longest part.
_ROUNDINGS = 64


def logits(rng, count):
    """Flat and saturated logits at small and large distances; a third with two balanced groups."""
    delta = six_decades(rng, (count, 1), -2, 1.3)
    a = six_decades(rng, (count, 1), -1, 1) * rng.normal(size=(count, _TOKENS))
    b = a + delta * rng.uniform(-1, 1, (count, _TOKENS))
    halves = np.tile([1.0, -1.0], _TOKENS // 2)
    a[::3], b[::3] = -delta[::3] / 2 * halves, delta[::3] / 2 * halves
    return {"a": a, "b": b}


def _change(a, b, bound):
    """The change of the probabilities against a bound in the largest change of a logit."""
    moved = jnp.sum(jnp.abs(jax.nn.softmax(a) - jax.nn.softmax(b)))
    largest = jnp.maximum(jnp.max(jnp.abs(a)), jnp.max(jnp.abs(b)))
    # A logit's own rounding moves the probabilities by as much.
    error = _ROUNDINGS * jnp.finfo(a.dtype).eps * (1 + largest)
    return Sides(moved, bound(jnp.max(jnp.abs(a - b))), error=error)


on_logits = partial(
    inequality, sample=logits, search_over=("a", "b"), roundings=_ROUNDINGS, count=63
)


@on_logits("Lemma C.1", Source.FOUND, controls=[Control("1/2 in place of 2", factor=0.5)])
def lemma_c_1(a, b, *, factor=2.0):
    r"""$$\|\mathrm{softmax}(\theta_1) - \mathrm{softmax}(\theta_2)\|_1 \le
    2 \|\theta_1 - \theta_2\|_\infty$$

    Twice too large: see lemma-c-1-sharp.
    """
    return _change(a, b, lambda delta: factor * delta)


@on_logits(
    "Lemma C.1 with its best constant",
    status=Status.SHARPENED,
    controls=[Control("9/10 in place of 1", factor=0.9)],
)
def lemma_c_1_sharp(a, b, *, factor=1.0):
    r"""$$\|\mathrm{softmax}(\theta_1) - \mathrm{softmax}(\theta_2)\|_1 \le
    \|\theta_1 - \theta_2\|_\infty$$

    1 is the best constant: two groups of equal weight that move against each other reach it for
    small distances. The term $2 B_x^2 \sqrt C$ of Theorem 4.1 becomes $B_x^2 \sqrt C$, and
    $1 + 4 B_{QK}$ of Theorem 4.2 becomes $1 + 2 B_{QK}$.
    """
    return _change(a, b, lambda delta: factor * delta)


@on_logits(
    "Lemma C.1, the best bound at every distance",
    status=Status.SHARPENED,
    controls=[Control("without the factor 2", factor=1.0)],
)
def lemma_c_1_exact(a, b, *, factor=2.0):
    r"""$$\|\mathrm{softmax}(\theta_1) - \mathrm{softmax}(\theta_2)\|_1 \le
    2 \tanh\big(\tfrac{1}{2} \|\theta_1 - \theta_2\|_\infty\big)$$

    Equality at every distance, for two groups of equal weight at the midpoint of the move. It
    holds both the constant 1 and the largest possible change 2.
    """
    return _change(a, b, lambda delta: factor * jnp.tanh(delta / 2))
