r"""Facts A.3 to A.8 and Lemmas A.9 and A.10, the tools of the appendix.

Symbols: x, y vectors or a number x; a the coefficients of a sum of independent signs, A the
matrix of a form in signs. Tail probabilities are exact: all 2^10 sign vectors are listed.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Control, Sides
from attlas.claims.statement import identity, inequality

_SIGNS = 10
_EVERY = 1.0 - 2.0 * (np.arange(2**_SIGNS)[:, None] >> np.arange(_SIGNS) & 1)
"""All sign vectors."""


def vectors(rng, count):
    """Pairs of vectors of very different sizes."""
    sizes = 10 ** rng.uniform(-3, 3, (2, count, 1))
    x, y = sizes * rng.normal(size=(2, count, 4))
    return {"x": x, "y": y}


@identity("Fact A.3", sample=vectors, controls=[Control("plus in the middle", sign=1.0)])
def fact_a_3(x, y, *, sign=-1.0):
    r"""$$\|x - y\|_2^2 = \|x\|_2^2 - 2 x^\top y + \|y\|_2^2$$"""
    square_x, square_y = jnp.sum(x**2), jnp.sum(y**2)
    right = square_x + sign * 2 * jnp.sum(x * y) + square_y
    return Sides(jnp.sum((x - y) ** 2), right, magnitude=2 * (square_x + square_y))


@identity(
    "Fact A.4, as Claim 3.4 uses it",
    sample=vectors,
    controls=[Control("exponentials without denominator", normalised=False)],
)
def fact_a_4(x, *, normalised=True):
    r"""$$\langle 1_m, S_i(\tau) \rangle = 1$$

    The formula of Fact A.4 is not legible in our source; this is the one that is used.
    """
    return jnp.sum(jax.nn.softmax(x) if normalised else jnp.exp(x - jnp.max(x))), 1.0


def positive(rng, count, largest):
    """Numbers from a hundredth of the largest up to it."""
    return {"x": largest * 10 ** rng.uniform(-2, 0, count)}


def signed(rng, count):
    """Numbers of size 0.001 to 0.1."""
    return {"x": positive(rng, count, 0.1)["x"] * rng.choice([-1.0, 1.0], count)}


@inequality(
    "Fact A.5",
    sample=partial(positive, largest=1.0),
    search_over="x",
    project=lambda x: {"x": jnp.clip(x, 1e-6, 1 - 1e-6)},
    controls=[Control("$1 - x$ in place of $1 - x/2$", share=1.0)],
)
def fact_a_5(x, *, share=0.5):
    r"""$$(1 - x)^{1/2} \le 1 - x/2,\quad x \in [0, 1]$$

    The slope $1/2$ is the best one: equality at $x = 0$ to first order.
    """
    return Sides(jnp.sqrt(1 - x), 1 - share * x, magnitude=jnp.ones(()))


def _small(x):
    return {"x": jnp.clip(x, -0.1, 0.1)}


@inequality(
    "Fact A.6",
    sample=signed,
    search_over="x",
    project=_small,
    controls=[Control("$|x|$ in place of $2 |x|$", factor=1.0)],
)
def fact_a_6(x, *, factor=2.0):
    r"""$$|e^x - 1| \le 2 |x|,\quad |x| \le 0.1$$

    The range of $x$ is not legible in our source. On $|x| \le 0.1$ the best factor is 1.052; 2
    serves up to $x = 1.25$.
    """
    return jnp.abs(jnp.expm1(x)), factor * jnp.abs(x)


@inequality(
    "Fact A.7",
    sample=partial(positive, largest=0.99),
    search_over="x",
    project=lambda x: {"x": jnp.clip(x, 1e-2, 1 - 1e-6)},
    controls=[Control("$1/(2x)$ in place of $2/x$", factor=0.5)],
    roundings=512,
)
def fact_a_7(x, *, factor=2.0):
    r"""$$\sum_{j=0}^\infty (1 - x)^j \le \frac{2}{x},\quad x \in (0, 1)$$

    The series is $1/x$ exactly: the factor 2 is not needed.
    """
    # For x >= 0.01 these 512 powers lack less than one hundredth of the series.
    return jnp.sum((1 - x) ** jnp.arange(512.0)), factor / x


@inequality(
    "Fact A.8",
    sample=signed,
    search_over="x",
    project=_small,
    controls=[Control("a quarter of the square", factor=0.25)],
)
def fact_a_8(x, *, factor=1.0):
    r"""$$|e^x - 1 - x| \le x^2,\quad |x| \le 0.1$$

    The paper writes $\exp(x) = 1 + x + \Theta(1) x^2$; on $|x| \le 0.1$ the factor $\Theta(1)$
    lies between 0.483 and 0.518.
    """
    return Sides(jnp.abs(jnp.expm1(x) - x), factor * x**2, magnitude=jnp.abs(x))


def sums(rng, count):
    """Sums of signs with equal or random coefficients and their exact tails."""
    a = rng.uniform(0.1, 1, (count, _SIGNS))
    a[::2] = 1
    # One sign that outweighs all others: there the bound is tightest.
    a[1::4, 1:] *= 1e-3
    # Below the largest value, so that the tail is not empty.
    t = a.sum(axis=1) * rng.uniform(0.1, 0.99, count)
    t[1::4] = 0.99 * a[1::4, 0]
    return {"a": a, "t": t, "tail": np.mean(np.abs(a @ _EVERY.T) >= t[:, None], axis=1)}


@inequality(
    "Lemma A.9 (Hoeffding inequality)",
    sample=sums,
    controls=[Control("3.5 in place of 2", factor=3.5)],
)
def lemma_a_9(a, t, tail, *, factor=2.0):
    r"""$$P\Big( \big| \sum_i (X_i - E X_i) \big| \ge t \Big) \le
    2 \exp\Big( -\frac{2 t^2}{\sum_i (b_i - a_i)^2} \Big),\quad a_i \le X_i \le b_i$$

    $X_i = \pm a_i$: the tail is exact, the mean over all 1024 signs. One large sign among small
    ones comes nearest, at $t$ just below it: $2 e^{-1/2} = 1.21$ against a tail of 1.
    """
    return tail, 2 * jnp.exp(-factor * t**2 / jnp.sum((2 * a) ** 2))


def forms(rng, count):
    """Quadratic forms in signs: 11' - I, or random symmetric ones, with their exact tails."""
    A = rng.normal(size=(count, _SIGNS, _SIGNS))
    A = (A + np.swapaxes(A, 1, 2)) / 2
    A[::2] = 1
    A *= 1 - np.eye(_SIGNS)
    values = np.einsum("si,cij,sj->cs", _EVERY, A, _EVERY, optimize=True)
    t = np.abs(values).max(axis=1) * rng.uniform(0.1, 0.99, count)
    return {
        "tail": np.mean(np.abs(values) > t[:, None], axis=1),
        "t": t,
        "frobenius": np.linalg.norm(A, axis=(1, 2)),
        "spectral": np.linalg.norm(A, 2, axis=(1, 2)),
    }


@inequality(
    "Lemma A.10 (Hanson-Wright inequality)",
    sample=forms,
    controls=[
        Control("$c = 4/5$", c=0.8),
        Control(r"a sub-Gaussian tail, without the term $t / \|A\|$", c=0.25, linear=False),
    ],
    evaluations=576,
)
def lemma_a_10(tail, t, frobenius, spectral, *, c=3 / 128, linear=True):
    r"""$$P\big( |x^\top A x - E x^\top A x| > t \big) \le 2 \exp\Big( -c \min\Big( \frac{t^2}
    {K^4 \|A\|_F^2}, \frac{t}{K^2 \|A\|} \Big) \Big)$$

    $c$ is absolute and unnamed; here signs ($K = 1$), zero diagonal and $c = 3/128$, which
    decoupling ($E e^{s x^\top A x} \le E e^{4 s x^\top A y}$) and Gaussian comparison give. At
    $A = 11^\top - I$ the tail needs $c \le \log 2$.
    """
    square = (t / frobenius) ** 2
    return tail, 2 * jnp.exp(-c * (jnp.minimum(square, t / spectral) if linear else square))
