r"""Whether an array lies in a declared domain, by exact arithmetic.

In floats the conditions of the domains allow for rounding. A shrunken witness is held to more:
where the set has an interior its entries satisfy the condition as rational numbers, and where it
has none, as a sphere, some point of the set rounds to the array: entries are then known up to half
a unit in the last place.
"""

from collections.abc import Mapping
from fractions import Fraction
from functools import singledispatch
from typing import Any

import jax.numpy as jnp
import numpy as np

from attlas.claims.domains.domain import Domain
from attlas.claims.domains.matrices import Orthogonal, Rank, Semidefinite
from attlas.claims.domains.vectors import Ball, Simplex, Sphere

_MOST = 400
"""Entries up to which fractions are used; larger arrays are held to the condition in floats."""
_DIGITS = 50
Fractions = np.ndarray


def lies_in(domain: Domain, instance: Mapping[str, Any]) -> bool:
    """Whether the array of an instance lies in its domain exactly, or rounds a point of it.

    Args:
        domain: a domain of the library; another one decides by its own condition in floats.

    Examples:
        >>> sphere = Sphere("x", 1.0)
        >>> lies_in(sphere, {"x": np.array([0.6, 0.8])}), lies_in(sphere, {"x": np.full(2, 0.7)})
        (True, False)
        >>> lies_in(Ball("x", 1.0), {"x": np.array([0.6, 0.8, 1e-300])})
        False
    """
    x = np.asarray(instance[domain.name], dtype=float)
    holds = bool(domain.holds({name: jnp.asarray(value) for name, value in instance.items()}))
    if x.size > _MOST or not holds:
        return holds
    values = {name: getattr(domain, name) for name in domain.parameters}
    numbers = {
        name: Fraction(float(instance[value]) if isinstance(value, str) else float(value))
        for name, value in values.items()
        if isinstance(value, str) or np.isfinite(value)
    }
    elements = x.reshape(-1, x.shape[-1]) if domain.rows else [x]
    return all(bool(_inside(domain, element, **numbers)) for element in elements)


def _exact(x: np.ndarray) -> Fractions:
    return np.array([Fraction(float(v)) for v in x.ravel()], dtype=object).reshape(x.shape)


def _halves(x: np.ndarray) -> Fractions:
    """Half a unit in the last place of each entry; zeros are exact."""
    return _exact(np.where(x == 0, 0.0, np.spacing(np.abs(x)) / 2))


@singledispatch
def _inside(domain: Domain, x: np.ndarray, **values: Any) -> bool:
    """Domains whose conditions compare floats are exact as they are."""
    del domain, x, values
    return True


@_inside.register
def _(domain: Ball, x: np.ndarray, radius: Fraction) -> bool:
    entries = abs(_exact(x))
    if domain.norm == 2:
        return sum((entries**2).ravel()) <= radius**2
    if domain.norm == 1:
        return sum(entries.ravel()) <= radius
    if domain.norm == np.inf:
        return True
    if domain.norm == "spectral":
        exact = _exact(x)
        gram = exact.T @ exact if x.shape[0] >= x.shape[1] else exact @ exact.T
        return _is_semidefinite(radius**2 * _identity(len(gram)) - gram)
    return sum(_singular_values(x)) <= float(radius) * (1 + 10.0 ** (-_DIGITS // 2))


@_inside.register
def _(domain: Sphere, x: np.ndarray, radius: Fraction) -> bool:
    entries, half = abs(_exact(x)).ravel(), _halves(x).ravel()
    return sum((entries - half) ** 2) <= radius**2 <= sum((entries + half) ** 2)


@_inside.register
def _(domain: Simplex, x: np.ndarray, total: Fraction) -> bool:
    return abs(sum(_exact(x)) - total) <= sum(_halves(x))


@_inside.register
def _(domain: Rank, x: np.ndarray) -> bool:
    beyond = _singular_values(x)[domain.k :]
    return not beyond or float(beyond[0]) <= _size(_halves(x))


@_inside.register
def _(domain: Semidefinite, x: np.ndarray) -> bool:
    import mpmath

    if _is_semidefinite(_exact(x)):
        return True
    with mpmath.workdps(_DIGITS):
        least = min(mpmath.eigsy(mpmath.matrix(x.tolist()), eigvals_only=True))
        return float(least) >= -_size(_halves(x))


@_inside.register
def _(domain: Orthogonal, x: np.ndarray) -> bool:
    x = x if x.shape[0] >= x.shape[1] else x.T
    exact, half = _exact(x), _halves(x)
    gap = abs(exact.T @ exact - _identity(x.shape[1]))
    allowed = abs(exact).T @ half + half.T @ abs(exact) + half.T @ half
    return bool(np.all(gap <= allowed))


def _identity(n: int) -> Fractions:
    return _exact(np.eye(n))


def _size(half: Fractions) -> float:
    """The Frobenius norm, which bounds how far rounding moves singular values and eigenvalues."""
    return float(np.linalg.norm(half.astype(float)))


def _singular_values(x: np.ndarray) -> list[Any]:
    import mpmath

    with mpmath.workdps(_DIGITS):
        return list(mpmath.svd_r(mpmath.matrix(x.tolist()), compute_uv=False))


def _is_semidefinite(a: Fractions) -> bool:
    """Whether a symmetric matrix of fractions has no negative pivot, and zero ones alone."""
    a = a.copy()
    for k in range(len(a)):
        if a[k, k] < 0 or (a[k, k] == 0 and any(a[k, k + 1 :] != 0)):
            return False
        if a[k, k] > 0:
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :]) / a[k, k]
    return True
