r"""A random point modulo a random prime, at which expressions are evaluated instead of expanded.

Let P = 2m + 1 be prime with m odd and without the factors 3, 5 and 7. The squares modulo P form a
group of order m, in which v^(a/b) = v^(a / b mod m) has all laws of powers of positive numbers. So
a positive atom is a random square, any other atom a random residue, and a root exists where its
base is a square. A quotient of degree d in the atoms that is not zero vanishes at a random point
with a probability of at most d / P (Schwartz and Zippel).
"""

import random
from functools import lru_cache

from attlas.verify.proofs.polynomials import Number

BITS = 256
_WITNESSES = 40
_POINTS = 64
"""Points with the same prime."""
_WITH_ROOTS = {3: (2,), 5: (1, 4), 7: (3, 5, 6), 11: (2, 6, 7, 8, 10), 13: (1, 3, 4, 9, 10, 12)}
"""Residues of a prime of the form 8 k + 7 by which 3 to 13 are squares (quadratic reciprocity)."""


class PointError(Exception):
    """A base of a root is no square at this point: another one is needed."""


class Point:
    """A prime and the values of atoms.

    Attributes:
        prime: follows from the text `seed` and has so many bits; the values follow from the number
            `attempt` too.
        denominators: product of the denominators of all exponents.
    """

    def __init__(self, seed: str, attempt: int = 0, bits: int = BITS):
        self._random = random.Random(f"{seed} {attempt}")
        self.prime = _prime(f"{seed} {attempt // _POINTS}", bits)
        self.denominators = 1

    def value(self, positive: bool) -> int:
        """A random residue that is not zero, a square if it stands for a positive number."""
        value = self._random.randrange(1, self.prime)
        return value * value % self.prime if positive else value

    def number(self, value: Number) -> int:
        """A rational number."""
        return value.numerator * pow(value.denominator, -1, self.prime) % self.prime

    def power(self, value: int, exponent: Number) -> int:
        """A power, of a square where the exponent is no integer."""
        if exponent.denominator == 1:
            return pow(value, int(exponent), self.prime)
        order = self.prime // 2
        self.denominators *= exponent.denominator if self.denominators < 2**64 else 1
        inverse = pow(exponent.denominator, -1, order)
        return pow(value, exponent.numerator * inverse % order, self.prime)

    def is_square(self, value: int) -> bool:
        """Whether a residue has a root."""
        return pow(value, self.prime // 2, self.prime) == 1


@lru_cache(16)
def _prime(seed: str, bits: int) -> int:
    generator = random.Random(seed)
    while True:
        candidate = generator.getrandbits(bits) | 1 << (bits - 1) | 7  # 2 is a square too
        order = candidate // 2
        if any(candidate % k not in residues for k, residues in _WITH_ROOTS.items()):
            continue
        if all(order % k for k in (3, 5, 7)) and _is_prime(candidate, generator):
            return candidate


def _is_prime(n: int, generator: random.Random) -> bool:
    """The test of Miller and Rabin."""
    if any(n % k == 0 for k in (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)):
        return False
    odd = n // 2  # n = 3 modulo 4
    return all(pow(generator.randrange(2, n - 1), odd, n) in (1, n - 1) for _ in range(_WITNESSES))
