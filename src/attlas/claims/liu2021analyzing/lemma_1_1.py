r"""Lemma 1.1: where the error is large, so is the population gradient in w2.

With q = w - A' w*, A the regression of Phi* on Phi: E u^2 = q' Sigma q + w*' Var(Phi* | Phi) w*,
and the gradient is g = Sigma q. A large error makes g large against Sigma only: the lemma needs the
smallest eigenvalue of Sigma, where the paper bounds the largest.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from attlas.claims.liu2021analyzing.teacher_instances import (
    POINTS,
    REGULAR,
    ROUNDINGS,
    covariance,
    error,
    one_unit,
    population,
    size_of_terms,
)
from attlas.core.old_claim import (
    Claim,
    Control,
    Expectation,
    Instance,
    Kind,
    Provenance,
    Sides,
    Status,
)
from attlas.core.verdict import Outcome, Witness
from attlas.models.networks.rectifier import rectify

_PAPER = "liu2021analyzing"

_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "provenance": Provenance.DERIVED,
    "instances": population,
    "assumptions": (REGULAR,),
    "count": 48,
    "terms": ROUNDINGS,
}


def _gradient(instance: Instance) -> Array:
    """Half the derivative of E u^2 by w, by automatic differentiation."""
    return jax.grad(lambda w: error(instance, w) / 2)(instance["w"])


def _identity(instance: Instance, parts: tuple[bool, bool]) -> Sides:
    slope, ws = _gradient(instance), instance["ws"]
    gradient = slope @ jnp.linalg.solve(covariance(instance), slope)
    rest = ws @ instance["V"] @ ws
    right = jnp.where(parts[0], gradient, 0.0) + jnp.where(parts[1], rest, 0.0)
    return Sides(
        error(instance, instance["w"]), right, scale=size_of_terms(instance, instance["w"])
    )


LEMMA_1_1_IDENTITY = Claim(
    name=f"{_PAPER}/lemma-1-1-identity",
    locator="Lemma 1.1, what the error consists of",
    statement=(
        r"E u = 0,\ g = E[u \Phi]: \quad "
        r"E u^2 = g^\top \Sigma^{-1} g + w^{*\top} \mathrm{Var}(\Phi^* | \Phi) w^*"
    ),
    kind=Kind.IDENTITY,
    status=Status.SHARPENED,
    sides=lambda i: _identity(i, (True, True)),
    control=(
        Control("without the gradient", sides=lambda i: _identity(i, (False, True))),
        Control("without the conditional variance", sides=lambda i: _identity(i, (True, False))),
    ),
    note=(
        "On a finite population, the gradient by automatic differentiation. With y = E(y|x) + "
        "noise it is the gradient of the risk with the expectation taken of x and y."
    ),
    **_COMMON,
)


def _bounded(instance: Instance, eigenvalue: int = 0, gradient: bool = True) -> Sides:
    slope = jnp.linalg.norm(_gradient(instance)) * (1.0 if gradient else 0.0)
    left = jnp.linalg.eigvalsh(instance["V"])[-1]
    C_2 = jnp.linalg.norm(instance["ws"])
    right = slope**2 / instance["spectrum"][eigenvalue] + C_2**2 * left
    return Sides(
        error(instance, instance["w"]), right, scale=size_of_terms(instance, instance["w"])
    )


LEMMA_1_1 = Claim(
    name=f"{_PAPER}/lemma-1-1",
    locator="Lemma 1.1, with the smallest eigenvalue",
    statement=(
        r"E u = 0: \quad E u^2 \le \frac{\|E[u \Phi]\|_2^2}{\lambda_{\min}(\Sigma_\Phi)} + "
        r"\|w^*\|_2^2\, \lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi))"
    ),
    kind=Kind.INEQUALITY,
    status=Status.CORRECTED,
    sides=_bounded,
    free=("w", "ws"),
    control=(
        Control("the largest eigenvalue of Sigma", sides=lambda i: _bounded(i, eigenvalue=-1)),
        Control("without the gradient", sides=lambda i: _bounded(i, gradient=False)),
    ),
    note=(
        "Attained where the gradient is an eigenvector of the smallest eigenvalue. The first "
        "control is what C_lambda, a bound of the largest one, would give."
    ),
    **_COMMON,
)


def _stationary(instance: Instance, w: str = "solved", norm: str = "ws") -> Sides:
    target = instance["phis"] @ instance["ws"]
    cross = instance["phi"].T @ target / len(target)
    solved = jnp.linalg.solve(covariance(instance), cross)
    left = error(instance, solved if w == "solved" else jnp.zeros_like(solved))
    size = jnp.sum((solved if norm == "w" else instance["ws"]) ** 2)
    right = size * jnp.linalg.eigvalsh(instance["V"])[-1]
    return Sides(left, right, scale=size_of_terms(instance, solved))


LEMMA_1_1_STATIONARY = Claim(
    name=f"{_PAPER}/lemma-1-1-stationary",
    locator="Lemma 1.1, where the gradient vanishes",
    statement=(
        r"E[u \Phi] = 0,\ E u = 0: \quad "
        r"E u^2 \le \|w^*\|_2^2\, \lambda_{\max}(\mathrm{Var}(\Phi^* | \Phi))"
    ),
    kind=Kind.INEQUALITY,
    status=Status.RECONSTRUCTED,
    sides=_stationary,
    control=(
        Control(
            "the student's w in place of the teacher's", sides=lambda i: _stationary(i, norm="w")
        ),
        Control("where it does not vanish: w = 0", sides=lambda i: _stationary(i, w="zero")),
    ),
    note=(
        "The part of the paper's proof that holds at every point with a vanishing population "
        "gradient in w2, whatever W is: w solves the normal equations. Attained at the top "
        "eigenvector of the conditional covariance."
    ),
    **_COMMON,
)


# Powers of two, by which scaling is exact.
_SHRINK = 2.0 ** -np.arange(3, 13, 3)
# Any constant fails for some s: the ratio of the two sides is s.
_CONSTANT = 1e-3


def _evenly() -> Witness:
    """A teacher of one unit whose pre-activations lie evenly between -1 and 1."""
    return {"s": np.linspace(-1.0, 1.0, POINTS), "ws": np.asarray(1.0)}


def _shrinking(instance: Instance, divided: bool) -> Sides:
    """Students W = s W* with w = 0, for all s at once."""

    def units(s: Array) -> Array:
        phi = rectify(s * instance["s"])
        return phi - jnp.mean(phi)

    def variance(s: Array) -> Array:
        return jnp.mean(units(s) ** 2)

    whole = jnp.ones((), instance["s"].dtype)
    u = -instance["ws"] * units(whole)
    shrink = jnp.asarray(_SHRINK, u.dtype)
    slopes = jax.vmap(lambda s: jnp.abs(jnp.mean(units(s) * u)))(shrink)
    size = jnp.sqrt(jnp.mean(u**2)) * jnp.ones_like(shrink)
    if divided:
        return Sides(size, slopes / jnp.sqrt(jax.vmap(variance)(shrink)))
    # The largest eigenvalue of the family is that of s = 1.
    return Sides(_CONSTANT * jnp.sqrt(variance(whole)) * size, slopes)


LEMMA_1_1_PRINTED = Claim(
    name=f"{_PAPER}/lemma-1-1-printed",
    paper=_PAPER,
    locator="Lemma 1.1, as printed: a bound of the largest eigenvalue is enough",
    statement=(
        r"\mathrm{Var}(\Phi^* | \Phi) = 0,\ \lambda_{\max}(\Sigma_\Phi) \le C_\lambda: \quad "
        r"\|E[u \Phi]\|_2 \ge 10^{-3} \sqrt{C_\lambda\, E u^2}"
    ),
    kind=Kind.INEQUALITY,
    status=Status.ERRATUM,
    provenance=Provenance.FOUND,
    instances=one_unit,
    sides=lambda i: _shrinking(i, divided=False),
    control=Control(
        "the gradient over the root of the smallest eigenvalue",
        sides=lambda i: _shrinking(i, divided=True),
        expect=Outcome.SUPPORTED,
    ),
    expect=Expectation(
        Outcome.VIOLATED, "for W = s W* the gradient is s sqrt(C_lambda) times the error's root"
    ),
    witness=_evenly,
    terms=ROUNDINGS,
    note=(
        "The paper has 'at least O(gamma)' where E u^2 >= gamma^2; 10^-3 sqrt(C_lambda) stands for "
        "its constant. One unit, W = s W* with s from 1/8 to 1/4096 and w = 0: the features span "
        "the teacher's, (A3) holds with 0, all norms are bounded, and the gradient is exactly "
        "s sqrt(C_lambda) sqrt(E u^2), so that no constant helps; see lemma-1-1 for the right one."
    ),
)
