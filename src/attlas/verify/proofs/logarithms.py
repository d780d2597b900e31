r"""Logarithms in a polynomial that must not be negative, bounded by their tangents.

A polynomial that is linear in logarithms is $R + \sum_m m \log T_m$ with monomials m and products
$T_m$ of powers of what the logarithms are of. Where all m are at least zero, $\log T \ge 1 - 1/T$
leaves $R + \sum_m m (1 - 1/T_m)$, with the powers in $T_m$ divided by their common divisor k and
$k \log T^{1/k}$ in the place of the logarithm. That times positive factors is a polynomial without
logarithms. It is tight where all $T_m$ are 1: Gibbs' and Jensen's inequalities are of this kind.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.elements import Field, LargeError
from attlas.verify.proofs.polynomials import Monomial, Number, Polynomial

_LONGEST = 400
"""Terms of a polynomial that is divided by others."""
_MOST = 8
"""Power of one factor."""


def has_logarithms(field: Field, a: Polynomial) -> bool:
    """Whether a logarithm occurs in a polynomial.

    Examples:
        >>> from attlas.verify.proofs.elements import Atom
        >>> from attlas.verify.proofs.points import Point
        >>> field = Field(Point("0"))
        >>> x = field.atom(Atom("x", True))
        >>> log = field.atom(Atom("log(x)", False, "log", {((x, 1),): 1}))
        >>> has_logarithms(field, {((log, 1),): 1}), has_logarithms(field, {((x, 1),): 1})
        (True, False)
    """
    return any(field.atoms[k].kind == "log" for term in a for k, _ in term)


def without_logarithms(field: Field, a: Polynomial) -> Polynomial | None:
    """A polynomial without logarithms which, if it is not negative, shows that `a` is not.

    Args:
        field: its atoms; what a logarithm is of is positive.

    Returns:
        The polynomial; None where `a` is not linear in logarithms, a weight may be negative, or it
        has too many terms.

    Examples:
        >>> from attlas.verify.proofs.elements import Atom
        >>> from attlas.verify.proofs.points import Point
        >>> field = Field(Point("0"))
        >>> x = field.atom(Atom("x", True))
        >>> log = field.atom(Atom("log(x)", False, "log", {((x, 1),): 1}))
        >>> without_logarithms(field, {((x, 1),): 1, (): -1, ((log, 1),): -1})
        {}
    """
    linear = _linear(field, a)
    if linear is None:
        return None
    remainder, weights = linear
    bases: dict[int, Polynomial] = {k: field.atoms[k].meaning for k in weights}
    try:
        weight, weights = _common(field, weights, bases)
        groups: dict[Monomial, dict[int, Number]] = {}
        for k, polynomial in weights.items():
            for term, c in polynomial.items():
                groups.setdefault(term, {})[k] = c
        if not all(_is_nonnegative(field, term) for term in groups):
            return None
        return _by_tangents(field, remainder, weight, groups, bases)
    except LargeError:
        return None


def _linear(field: Field, a: Polynomial) -> tuple[Polynomial, dict[int, Polynomial]] | None:
    """What has no logarithm, and the polynomial beside each logarithm."""
    remainder: Polynomial = {}
    weights: dict[int, Polynomial] = {}
    for term, c in a.items():
        logs = [(k, e) for k, e in term if field.atoms[k].kind == "log"]
        if not logs:
            remainder[term] = c
            continue
        if (
            len(logs) > 1
            or logs[0][1] != 1
            or has_logarithms(field, field.atoms[logs[0][0]].meaning)
        ):
            return None
        weights.setdefault(logs[0][0], {})[tuple(p for p in term if p[0] != logs[0][0])] = c
    return remainder, weights


def _is_nonnegative(field: Field, term: Monomial) -> bool:
    return all(field.atoms[k].positive or e % 2 == 0 for k, e in term)


def _common(
    field: Field, weights: dict[int, Polynomial], bases: dict[int, Polynomial]
) -> tuple[Polynomial, dict[int, Polynomial]]:
    """Positive factors of all weights, and the weights without them."""
    common: Polynomial = {poly.ONE: 1}
    for base in bases.values():
        while (left := _divided(weights.values(), base)) is not None:
            weights = dict(zip(weights, left, strict=True))
            common = field.multiply(common, base)
    return common, weights


def _divided(linear: Iterable[Polynomial], base: Polynomial) -> list[Polynomial] | None:
    """Each polynomial over another one, None if it does not divide them all."""
    quotients = []
    if len(base) < 2:
        return None
    for part in linear:
        if not part or len(part) > _LONGEST or len(part) < len(base):
            return None
        lower = poly.quotient(part, base, len(part))
        if lower is None or any(e < 0 for term in lower for _, e in term):
            return None
        quotients.append(lower)
    return quotients


def _by_tangents(
    field: Field,
    remainder: Polynomial,
    weight: Polynomial,
    groups: dict[Monomial, dict[int, Number]],
    bases: dict[int, Polynomial],
) -> Polynomial | None:
    scaled = []
    for term, powers in groups.items():
        values = [Fraction(c) for c in powers.values()]
        scale = Fraction(
            math.gcd(*(v.numerator for v in values)), math.lcm(*(v.denominator for v in values))
        )
        scaled.append((term, scale, {k: int(c / scale) for k, c in powers.items()}))
    highest = {k: max(0, *(powers.get(k, 0) for _, _, powers in scaled)) for k in bases}
    if any(abs(e) > _MOST for _, _, powers in scaled for e in powers.values()):
        return None
    plain: Polynomial = {}
    inverse: Polynomial = {}
    for term, scale, powers in scaled:
        plain = poly.add(plain, {term: poly.whole(scale)})
        left = {k: highest[k] - powers.get(k, 0) for k in bases}
        product = _product(field, {term: poly.whole(scale)}, left, bases)
        inverse = poly.add(inverse, product)
    total = poly.add(remainder, field.multiply(weight, plain))
    total = _product(field, total, highest, bases)
    total = poly.add(total, field.multiply(weight, inverse), -1)
    for base in bases.values():
        while total and (lower := _divided([total], base)) is not None:
            (total,) = lower
    return total


def _product(
    field: Field, a: Polynomial, powers: dict[int, int], bases: dict[int, Polynomial]
) -> Polynomial:
    for k, exponent in powers.items():
        for _ in range(exponent):
            a = field.multiply(a, bases[k])
    return a
