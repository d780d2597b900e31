r"""Sums of monomials with rational coefficients and rational exponents, exactly.

A monomial is a sorted tuple of (atom, exponent), where an atom is the number of a symbol; exponents
are integers or fractions, negative ones included. A polynomial is a dictionary from monomials to
coefficients that are not zero. Nothing here knows what an atom stands for.
"""

import math
from fractions import Fraction
from operator import add as add_integers
from operator import sub

_LARGEST_PRIME = 1000
"""Integers under roots and logarithms are factorised by primes below this."""
Number = int | Fraction
Monomial = tuple[tuple[int, Number], ...]
Polynomial = dict[Monomial, Number]

ONE: Monomial = ()


def whole(number: Number) -> Number:
    """A fraction that is an integer as one: integers are faster.

    Examples:
        >>> whole(Fraction(6, 3)), whole(Fraction(1, 2))
        (2, Fraction(1, 2))
    """
    return number.numerator if number.denominator == 1 else number


def constant(number: Number) -> Polynomial:
    """The polynomial of one number.

    Examples:
        >>> constant(0), constant(Fraction(4, 2))
        ({}, {(): 2})
    """
    return {ONE: whole(number)} if number else {}


def product(a: Monomial, b: Monomial) -> Monomial:
    """The product of two monomials.

    Examples:
        >>> product(((0, 1), (1, 2)), ((0, -1), (2, 1)))
        ((1, 2), (2, 1))
    """
    if not a or not b:
        return a or b
    exponents = dict(a)
    for atom, exponent in b:
        total = exponents.get(atom, 0) + exponent
        if total:
            exponents[atom] = whole(total)
        else:
            del exponents[atom]
    return tuple(sorted(exponents.items()))


def power(a: Monomial, exponent: Number) -> Monomial:
    """A power of a monomial.

    Examples:
        >>> power(((0, 2),), Fraction(1, 2))
        ((0, 1),)
    """
    return tuple((atom, whole(e * exponent)) for atom, e in a) if exponent else ONE


def add(a: Polynomial, b: Polynomial, factor: Number = 1) -> Polynomial:
    """The sum a + factor b.

    Examples:
        >>> add({ONE: 2}, {ONE: 1}, -2)
        {}
    """
    total = dict(a)
    for monomial, coefficient in b.items():
        value = total.get(monomial, 0) + factor * coefficient
        if value:
            total[monomial] = whole(value)
        else:
            del total[monomial]
    return total


def multiply(a: Polynomial, b: Polynomial) -> Polynomial:
    """The product.

    Examples:
        >>> x = {((0, 1),): 1}
        >>> multiply(add(x, constant(1)), add(x, constant(-1)))
        {((0, 2),): 1, (): -1}
    """
    if len(a) > len(b):
        a, b = b, a
    result: Polynomial = {}
    for m, c in a.items():
        for n, d in b.items():
            monomial = product(m, n)
            value = result.get(monomial, 0) + c * d
            if value:
                result[monomial] = value
            else:
                del result[monomial]
    return {monomial: whole(value) for monomial, value in result.items()}


def shift(a: Polynomial, monomial: Monomial, factor: Number = 1) -> Polynomial:
    """The product with one monomial and a factor that is not zero.

    Examples:
        >>> shift({((0, 1),): 2}, ((0, -1),), Fraction(1, 2))
        {(): 1}
    """
    if not monomial and factor == 1:
        return a
    return {product(m, monomial): whole(factor * c) for m, c in a.items()}


def content(a: Polynomial) -> Monomial:
    """The monomial of the least exponent of each atom, by which all terms are divisible.

    Examples:
        >>> content({((0, 2), (1, 1)): 1, ((0, 1),): 3})
        ((0, 1),)
    """
    terms = iter(a)
    least = dict(next(terms))
    for term in terms:
        exponents = dict(term)
        least = {
            atom: min(least.get(atom, 0), exponents.get(atom, 0)) for atom in {*least, *exponents}
        }
    return tuple(sorted((atom, e) for atom, e in least.items() if e))


def leading(a: Polynomial) -> Monomial:
    """The largest monomial in an order that products keep: of exponents, by rising atoms.

    Examples:
        >>> leading({((0, 1),): 1, ((1, 5),): 1, ((0, 1), (1, 1)): 1})
        ((0, 1), (1, 1))
    """
    atoms = sorted({atom for term in a for atom, _ in term})

    def key(term: Monomial) -> tuple[Number, ...]:
        exponents = dict(term)
        return tuple(exponents.get(atom, 0) for atom in atoms)

    return max(a, key=key)


def quotient(a: Polynomial, b: Polynomial, most: int) -> Polynomial | None:
    """The quotient a / b if b divides a, by at most so many steps; else None.

    Args:
        a: dividend, of exponents that are not negative after its content is removed.
        b: divisor whose content is 1.
        most: steps, each of which gives a term of the quotient.

    Examples:
        >>> x = {((0, 1),): 1}
        >>> square = multiply(add(x, constant(1)), add(x, constant(1)))
        >>> quotient(square, add(x, constant(1)), 5), quotient(x, add(x, constant(1)), 5)
        ({((0, 1),): 1, (): 1}, None)
    """
    common = content(a)
    stripped = shift(a, power(common, -1))
    # Exponents as tuples of integers, in which sums and comparisons are fast.
    scales = _denominators(stripped)
    if not _denominators(b).keys() <= scales.keys():
        return None
    for atom, denominator in _denominators(b).items():
        scales[atom] = math.lcm(scales[atom], denominator)
    left, divisor = _dense(stripped, scales), _dense(b, scales)
    head = max(divisor)
    lead = divisor.pop(head)
    if any(x < y for x, y in zip(min(left), min(divisor, default=head), strict=True)):
        return None  # the least terms of a product are a product, too
    result: Polynomial = {}
    while left:
        most -= 1
        first = max(left)
        term = tuple(map(sub, first, head))
        if most < 0 or min(term) < 0:
            return None
        factor = whole(Fraction(left.pop(first)) / lead)
        exponents = zip(scales.items(), term, strict=True)
        monomial = tuple((k, whole(Fraction(e, scale))) for (k, scale), e in exponents if e)
        result[monomial] = factor
        for below, coefficient in divisor.items():
            place = tuple(map(add_integers, term, below))
            value = left.get(place, 0) - factor * coefficient
            if value:
                left[place] = whole(value)
            else:
                del left[place]
    return shift(result, common)


def _denominators(a: Polynomial) -> dict[int, int]:
    """The atoms in their order, each with a common denominator of its exponents."""
    exponents: dict[int, set[int]] = {}
    for term in a:
        for atom, exponent in term:
            exponents.setdefault(atom, set()).add(exponent.denominator)
    return {atom: math.lcm(*exponents[atom]) for atom in sorted(exponents)}


def _dense(a: Polynomial, scales: dict[int, int]) -> dict[tuple[int, ...], Number]:
    """The coefficients by the exponents of all atoms, in units of their denominators."""
    result = {}
    for term, coefficient in a.items():
        exponents = dict(term)
        place = (int(exponents.get(atom, 0) * scale) for atom, scale in scales.items())
        result[tuple(place)] = coefficient
    return result


def prime_powers(number: Fraction) -> list[tuple[Polynomial, int]]:
    """A positive rational number as powers of primes, and of what has no small prime.

    Examples:
        >>> prime_powers(Fraction(12, 5))
        [({(): 2}, 2), ({(): 3}, 1), ({(): 5}, -1)]
    """
    parts = []
    for value, sign in ((number.numerator, 1), (number.denominator, -1)):
        left, prime = value, 2
        while left > 1 and prime < _LARGEST_PRIME:
            times = 0
            while left % prime == 0:
                left, times = left // prime, times + 1
            if times:
                parts.append((constant(prime), sign * times))
            prime += 1
        if left > 1:
            parts.append((constant(left), sign))
    return parts
