r"""Our bounds on the Hessian of one head, without the dimension d; proof in the docs.

R = ||X||_{2,inf} is the longest token; the rest as in Proposition 1.
"""

from functools import partial
from typing import Any

from jaxtyping import Array

from attlas.bounds.optimisation.deora2023_model import Bound, deora2023_hessian
from attlas.claims.deora2023optimization.instances import ROUNDINGS
from attlas.claims.deora2023optimization.proposition_1 import (
    hessian_norm,
    hessian_sides,
    one_head,
)
from attlas.core.old_claim import Claim, Control, Instance, Kind, Provenance, Sides, Status

_PAPER = "deora2023optimization"


def _corner(instance: Instance, bound: Bound) -> Array:
    """The part of a bound that the decoder multiplies: the mean slope up to a huge decoder."""
    X, U = instance["X"], instance["U"]
    huge = 1e12
    return deora2023_hessian(X, huge * U, bound) / huge


def _without_root(instance: Instance) -> Sides:
    """The first term alone."""
    return Sides(hessian_norm(instance), _corner(instance, "dimension_free"))


def _corner_alone(instance: Instance) -> Sides:
    """The limit of large decoders of the sharp bound, at any decoder."""
    return Sides(hessian_norm(instance), _corner(instance, "sharp"))


_COMMON: dict[str, Any] = {
    "paper": _PAPER,
    "kind": Kind.INEQUALITY,
    "status": Status.SHARPENED,
    "provenance": Provenance.DERIVED,
    "instances": one_head,
    "count": 32,
    "terms": ROUNDINGS,
}

HESSIAN_DIMENSION_FREE = Claim(
    name=f"{_PAPER}/hessian-dimension-free",
    locator="Proposition 1, second item, without the dimension",
    statement=(
        r"\|\nabla^2_\theta \Phi(X;\theta)\| \le 2 R^4 \sum_{t=1}^T \|X u_t\|_\infty +"
        r"\sqrt{T} R^3,\quad R = \|X\|_{2,\infty}"
    ),
    sides=partial(hessian_sides, bound="dimension_free"),
    control=(Control("without the second term", sides=_without_root),),
    note=(
        "No dimension d: the second derivative in W is a third central moment of the softmax law. "
        "Carried through Corollary 1 the heads that Theorem 1 asks for shrink by d^2. Attained "
        "at U = 0 by two opposite tokens; for large decoders 2 may be 4/(3 sqrt 3)."
    ),
    **_COMMON,
)

HESSIAN_SHARP = Claim(
    name=f"{_PAPER}/hessian-sharp",
    locator="Proposition 1, second item, sharpest",
    statement=(
        r"\|\nabla^2_\theta \Phi(X;\theta)\| \le \frac12 \big(c + \sqrt{c^2 + 4 T R^6}\big),"
        r"\quad c = \frac{4}{3\sqrt3} R^4 \sum_{t=1}^T \|X u_t\|_\infty"
    ),
    sides=partial(hessian_sides, bound="sharp"),
    free=("X", "U", "W"),
    control=(Control("c alone", sides=_corner_alone),),
    note=(
        "4/(3 sqrt 3) = 0.770 is the largest third central moment |E (a - Ea)(b - Eb)^2| of "
        "numbers in [-1, 1]; it is reached at weights (1 +- 1/sqrt 3)/2 on two opposite tokens, so "
        "that the bound is attained for large decoders, and at U = 0. The search comes near 1."
    ),
    **_COMMON,
)
