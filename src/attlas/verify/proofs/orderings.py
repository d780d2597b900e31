r"""Atoms that a case of signs orders, as sums of positive numbers.

Where a case says that a > b for two positive atoms, or a > c for a positive number c, a is b + d or
c + d with positive d: then what holds for all positive numbers d holds in the case.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.elements import Field
from attlas.verify.proofs.polynomials import Polynomial

_LONGEST = 2000
"""Terms of a polynomial after the substitution."""
_CONSTANT = -1


def ordered(field: Field, goal: Polynomial, constraints: Sequence[Polynomial]) -> Polynomial | None:
    """A polynomial in which an atom stands for its distance to the next lower one.

    Args:
        constraints: polynomials at least zero in the case; differences of atoms are used.

    Returns:
        The polynomial, None where nothing is ordered, or where it has too many terms.

    Examples:
        >>> from attlas.verify.proofs.elements import Atom
        >>> from attlas.verify.proofs.points import Point
        >>> field = Field(Point("0"))
        >>> a, b = (field.atom(Atom(name, True)) for name in "ab")
        >>> difference = {((a, 1),): 1, ((b, 1),): -1}
        >>> ordered(field, difference, [difference]) == {((a, 1),): 1}
        True
    """
    above = _above(field, constraints)
    used = {atom for term in goal for atom, _ in term}
    if not used & above.keys():
        return None
    meanings = {atom: _meaning(atom, above) for atom in above}
    result: Polynomial = {}
    for term, c in goal.items():
        part: Polynomial = {tuple(p for p in term if p[0] not in above): c}
        for atom, exponent in term:
            if atom not in above:
                continue
            if Fraction(exponent).denominator != 1 or exponent < 0:
                return None
            for _ in range(int(exponent)):
                part = poly.multiply(part, meanings[atom])
                if len(part) > _LONGEST:
                    return None
        result = poly.add(result, part)
        if len(result) > _LONGEST:
            return None
    return result


def _above(field: Field, constraints: Sequence[Polynomial]) -> dict[int, tuple[int, Fraction]]:
    """For each atom, the highest one below it, or the number below it."""
    lower: dict[int, dict[int, Fraction]] = {}
    for constraint in constraints:
        coefficients = {term: Fraction(c) for term, c in constraint.items()}
        up = [t for t, c in coefficients.items() if c > 0]
        down = [t for t, c in coefficients.items() if c < 0]
        if len(up) != 1 or len(down) != 1 or not _is_atom(field, up[0]):
            continue
        share = -coefficients[down[0]] / coefficients[up[0]]
        if down[0] == poly.ONE:
            lower.setdefault(up[0][0][0], {})[_CONSTANT] = share
        elif _is_atom(field, down[0]) and share == 1:
            lower.setdefault(up[0][0][0], {})[down[0][0][0]] = share
    nearest = {}
    for atom, below in lower.items():
        # The one that has most below it: it is above the others, if they are ordered.
        best = max(below, key=lambda b: (len(lower.get(b, {})), b != _CONSTANT, -b))
        nearest[atom] = best, below[best]
    return nearest if _is_acyclic(nearest) else {}


def _is_atom(field: Field, term: tuple) -> bool:
    return len(term) == 1 and term[0][1] == 1 and field.atoms[term[0][0]].positive


def _is_acyclic(above: Mapping[int, tuple[int, Fraction]]) -> bool:
    for start in above:
        atom, steps = start, 0
        while atom in above:
            atom, steps = above[atom][0], steps + 1
            if steps > len(above):
                return False
    return True


def _meaning(atom: int, above: Mapping[int, tuple[int, Fraction]]) -> Polynomial:
    """An atom as the sum of the distances below it."""
    total: Polynomial = {((atom, 1),): 1}
    while atom in above:
        atom, share = above[atom]
        total = poly.add(total, {poly.ONE if atom == _CONSTANT else ((atom, 1),): share})
    return total
