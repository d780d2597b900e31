r"""Facts A.3 to A.8 and Lemmas A.9 and A.10, the tools of the appendix.

Symbols: x, y vectors or a number x; a the coefficients of a sum of independent signs, A the
matrix of a form in signs. Tail probabilities are exact: all 2^10 sign vectors are listed.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from attlas.core.generator import generator
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "gu2024exploring"
_ROUNDINGS = 64
"""Sums of at most 10 terms, one exponential, one square root."""
_SIGNS = 10
_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "status": Status.RECONSTRUCTED,
    "provenance": Provenance.DERIVED,
    "terms": _ROUNDINGS,
}


def _vectors(key: PRNGKeyArray, count: int) -> Instance:
    rng = generator(key)
    sizes = 10 ** rng.uniform(-3, 3, (2, count, 1))
    draw = sizes * rng.normal(size=(2, count, 4))
    return {"x": jnp.asarray(draw[0]), "y": jnp.asarray(draw[1])}


def _distance(instance: Instance, sign: float = -1.0) -> Sides:
    x, y = instance["x"], instance["y"]
    left = jnp.sum((x - y) ** 2)
    right = jnp.sum(x**2) + sign * 2 * jnp.sum(x * y) + jnp.sum(y**2)
    return Sides(left, right, scale=2 * (jnp.sum(x**2) + jnp.sum(y**2)))


FACT_A_3 = Claim(
    name=f"{_PAPER}/fact-a-3",
    locator="Fact A.3",
    statement=r"\|x - y\|_2^2 = \|x\|_2^2 - 2 x^\top y + \|y\|_2^2",
    kind=Kind.IDENTITY,
    instances=_vectors,
    sides=_distance,
    control=Control("plus in the middle", sides=partial(_distance, sign=1.0)),
    **_COMMON,
)


def _total(instance: Instance, normalised: bool = True) -> Sides:
    x = instance["x"]
    S = jax.nn.softmax(x) if normalised else jnp.exp(x - jnp.max(x))
    return Sides(jnp.sum(S), jnp.asarray(1.0))


FACT_A_4 = Claim(
    name=f"{_PAPER}/fact-a-4",
    locator="Fact A.4, as Claim 3.4 uses it",
    statement=r"\langle 1_m, S_i(\tau) \rangle = 1",
    kind=Kind.IDENTITY,
    instances=_vectors,
    sides=_total,
    control=Control("exponentials without denominator", sides=partial(_total, normalised=False)),
    note="The formula of Fact A.4 is not legible in our source; this is the one that is used.",
    **_COMMON,
)


def _numbers(key: PRNGKeyArray, count: int, largest: float, signed: bool) -> Instance:
    rng = generator(key)
    x = largest * 10 ** rng.uniform(-2, 0, count)
    return {"x": jnp.asarray(x * rng.choice([-1.0, 1.0], count) if signed else x)}


def _root(instance: Instance, share: float = 0.5) -> Sides:
    x = instance["x"]
    return Sides(jnp.sqrt(1 - x), 1 - share * x, scale=jnp.asarray(1.0))


FACT_A_5 = Claim(
    name=f"{_PAPER}/fact-a-5",
    locator="Fact A.5",
    statement=r"(1 - x)^{1/2} \le 1 - x/2,\quad x \in [0, 1]",
    kind=Kind.INEQUALITY,
    instances=partial(_numbers, largest=1.0, signed=False),
    sides=_root,
    control=Control("1 - x in place of 1 - x/2", sides=partial(_root, share=1.0)),
    note="The slope 1/2 is the best one: equality at x = 0 to first order.",
    **_COMMON,
)


def _expm1(instance: Instance, factor: float = 2.0) -> Sides:
    x = instance["x"]
    return Sides(jnp.abs(jnp.expm1(x)), factor * jnp.abs(x))


FACT_A_6 = Claim(
    name=f"{_PAPER}/fact-a-6",
    locator="Fact A.6",
    statement=r"|e^x - 1| \le 2 |x|,\quad |x| \le 0.1",
    kind=Kind.INEQUALITY,
    instances=partial(_numbers, largest=0.1, signed=True),
    sides=_expm1,
    control=Control("|x| in place of 2 |x|", sides=partial(_expm1, factor=1.0)),
    note=(
        "The range of x is not legible in our source. On |x| <= 0.1 the best factor is 1.052; 2 "
        "serves up to x = 1.25."
    ),
    **_COMMON,
)


def _geometric(instance: Instance, factor: float = 2.0) -> Sides:
    """A sum of 512 powers: for x >= 0.01 it lacks less than one hundredth of the series."""
    x = instance["x"]
    powers = (1 - x) ** jnp.arange(512.0)
    return Sides(jnp.sum(powers), factor / x)


FACT_A_7 = Claim(
    name=f"{_PAPER}/fact-a-7",
    locator="Fact A.7",
    statement=r"\sum_{j=0}^\infty (1 - x)^j \le \frac{2}{x},\quad x \in (0, 1)",
    kind=Kind.INEQUALITY,
    instances=partial(_numbers, largest=0.99, signed=False),
    sides=_geometric,
    control=Control("1/(2x) in place of 2/x", sides=partial(_geometric, factor=0.5)),
    note="The series is 1/x exactly: the factor 2 is not needed.",
    **{**_COMMON, "terms": 512},
)


def _second_order(instance: Instance, factor: float = 1.0) -> Sides:
    x = instance["x"]
    return Sides(jnp.abs(jnp.expm1(x) - x), factor * x**2, scale=jnp.abs(x))


FACT_A_8 = Claim(
    name=f"{_PAPER}/fact-a-8",
    locator="Fact A.8",
    statement=r"|e^x - 1 - x| \le x^2,\quad |x| \le 0.1",
    kind=Kind.INEQUALITY,
    instances=partial(_numbers, largest=0.1, signed=True),
    sides=_second_order,
    control=Control("a quarter of the square", sides=partial(_second_order, factor=0.25)),
    note=(
        "The paper writes exp(x) = 1 + x + Theta(1) x^2; on |x| <= 0.1 the factor Theta(1) lies "
        "between 0.483 and 0.518."
    ),
    **_COMMON,
)


def _all_signs() -> np.ndarray:
    bits = np.arange(2**_SIGNS)[:, None] >> np.arange(_SIGNS)[None, :]
    return 1.0 - 2.0 * (bits & 1)


def _sums(key: PRNGKeyArray, count: int) -> Instance:
    """Sums of signs with equal or random coefficients and their exact tails."""
    rng = generator(key)
    a = rng.uniform(0.1, 1, (count, _SIGNS))
    a[::2] = 1
    # One sign that outweighs all others: there the bound is tightest.
    a[1::4, 1:] *= 1e-3
    # Below the largest value, so that the tail is not empty.
    t = a.sum(axis=1) * rng.uniform(0.1, 0.99, count)
    t[1::4] = 0.99 * a[1::4, 0]
    tail = np.mean(np.abs(a @ _all_signs().T) >= t[:, None], axis=1)
    return {"a": jnp.asarray(a), "t": jnp.asarray(t), "tail": jnp.asarray(tail)}


def _hoeffding(instance: Instance, factor: float = 2.0) -> Sides:
    """Each term lies in an interval of length 2 a_i."""
    spread = jnp.sum((2 * instance["a"]) ** 2)
    right = 2 * jnp.exp(-factor * instance["t"] ** 2 / spread)
    return Sides(instance["tail"], right)


LEMMA_A_9 = Claim(
    name=f"{_PAPER}/lemma-a-9",
    locator="Lemma A.9 (Hoeffding inequality)",
    statement=(
        r"P\Big( \big| \sum_i (X_i - E X_i) \big| \ge t \Big) \le"
        r"2 \exp\Big( -\frac{2 t^2}{\sum_i (b_i - a_i)^2} \Big),\quad a_i \le X_i \le b_i"
    ),
    kind=Kind.INEQUALITY,
    instances=_sums,
    sides=_hoeffding,
    control=Control("exponent doubled", sides=partial(_hoeffding, factor=4.0)),
    count=64,
    note=(
        "X_i = +-a_i: the tail is exact, the mean over all 1024 signs. 0.82 of the bound is "
        "reached by one large sign among small ones, at t just below it: 2 e^(-1/2) = 1.21 "
        "against a tail of 1."
    ),
    **_COMMON,
)


def _forms(key: PRNGKeyArray, count: int) -> Instance:
    """Quadratic forms in signs: 11' - I, or random symmetric ones, with their exact tails."""
    rng = generator(key)
    A = rng.normal(size=(count, _SIGNS, _SIGNS))
    A = (A + np.swapaxes(A, 1, 2)) / 2
    A[::2] = 1
    A *= 1 - np.eye(_SIGNS)
    signs = _all_signs()
    values = np.einsum("si,cij,sj->cs", signs, A, signs, optimize=True)
    t = np.abs(values).max(axis=1) * rng.uniform(0.1, 0.99, count)
    batch = {
        "tail": np.mean(np.abs(values) > t[:, None], axis=1),
        "t": t,
        "frobenius": np.linalg.norm(A, axis=(1, 2)),
        "spectral": np.linalg.norm(A, 2, axis=(1, 2)),
    }
    return {name: jnp.asarray(value) for name, value in batch.items()}


def _hanson_wright(instance: Instance, c: float = 3 / 128) -> Sides:
    t, frobenius, spectral = (instance[k] for k in ("t", "frobenius", "spectral"))
    least = jnp.minimum((t / frobenius) ** 2, t / spectral)
    return Sides(instance["tail"], 2 * jnp.exp(-c * least))


def _hanson_wright_gaussian(instance: Instance) -> Array:
    """The tail with the term t / ||A|| forgotten, as if forms were sub-Gaussian."""
    return 2 * jnp.exp(-0.25 * (instance["t"] / instance["frobenius"]) ** 2)


LEMMA_A_10 = Claim(
    name=f"{_PAPER}/lemma-a-10",
    locator="Lemma A.10 (Hanson-Wright inequality)",
    statement=(
        r"P\big( |x^\top A x - E x^\top A x| > t \big) \le 2 \exp\Big( -c \min\Big( \frac{t^2}"
        r"{K^4 \|A\|_F^2}, \frac{t}{K^2 \|A\|} \Big) \Big)"
    ),
    kind=Kind.INEQUALITY,
    instances=_forms,
    sides=_hanson_wright,
    control=(
        Control("c = 1", sides=partial(_hanson_wright, c=1.0)),
        Control(
            "a sub-Gaussian tail, without the term t / ||A||",
            sides=lambda i: Sides(i["tail"], _hanson_wright_gaussian(i)),
        ),
    ),
    count=64,
    note=(
        "c is absolute and unnamed; here signs (K = 1), zero diagonal and c = 3/128, which "
        "decoupling (E e^(s x'Ax) <= E e^(4 s x'Ay)) and Gaussian comparison give. A third of the "
        "bound is reached; at A = 11' - I the tail needs c <= log 2."
    ),
    **_COMMON,
)
