r"""Bases of the squares in which a polynomial is written: monomials, of which few are enough.

Without constraints the squares have monomials in half of the Newton polytope; with them, all up to
a degree. Where changes of signs of variables leave all polynomials as they are, a Gram matrix
has blocks.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.polynomials import ONE, Monomial, Polynomial

MOST_MONOMIALS = 60
"""Monomials in the basis of one square."""
_MOST_CANDIDATES = 20_000
_MOST_EVEN = 300


@dataclass(frozen=True)
class Block:
    """A factor and a basis, whose Gram matrix is unknown."""

    of: tuple[int, ...]
    factor: Polynomial
    basis: tuple[Polynomial, ...]

    def products(self) -> list[Polynomial]:
        """What each entry of the Gram matrix contributes, by columns of its upper triangle."""
        return [
            poly.multiply(
                self.factor, poly.multiply({ONE: 1 if i == j else 2}, poly.multiply(a, b))
            )
            for j, b in enumerate(self.basis)
            for i, a in enumerate(self.basis[: j + 1])
        ]


def degree(a: Polynomial) -> int:
    """The largest sum of exponents of a term.

    Examples:
        >>> degree({((0, 1), (1, 2)): 5, (): 1})
        3
    """
    return max((int(sum(e for _, e in term)) for term in a), default=0)


def bases(goal: Polynomial, constraints: Sequence[Polynomial]) -> Iterator[list[Block]]:
    """Monomials for the squares, of low degree first."""
    if not constraints:
        monomials = _half_of_polytope(goal)
        if monomials is not None:
            yield _by_parity([((), {ONE: 1}, monomials)], [goal])
        return
    variables = sorted({a for p in (goal, *constraints) for term in p for a, _ in term})
    half = max((degree(p) + 1) // 2 for p in (goal, *constraints))
    for most in (half, half + 1):
        choices = []
        for count in range(3):
            for of in itertools.combinations(range(len(constraints)), count):
                factor: Polynomial = {ONE: 1}
                for k in of:
                    factor = poly.multiply(factor, constraints[k])
                left = 2 * most - degree(factor)
                if left >= 0:
                    choices.append((of, factor, _monomials(variables, left // 2)))
        if all(len(part[2]) <= MOST_MONOMIALS for part in choices):
            yield _by_parity(choices, [goal, *constraints])


def _monomials(variables: Sequence[int], most: int) -> list[Monomial]:
    """All monomials up to a degree."""
    terms: list[Monomial] = []
    for total in range(most + 1):
        for chosen in itertools.combinations_with_replacement(variables, total):
            term = tuple((v, chosen.count(v)) for v in sorted(set(chosen)))
            terms.append(term)
            if len(terms) > MOST_MONOMIALS:
                return terms
    return terms


def _half_of_polytope(goal: Polynomial) -> list[Monomial] | None:
    """Monomials whose squares may lie in the Newton polytope of a sum of squares.

    Those whose square is outside in one of many directions are left out, and so are those whose
    square is neither a term of the goal nor a product of two others: their weight is zero.
    """
    variables = sorted({a for term in goal for a, _ in term})
    exponents = np.array([[dict(t).get(v, 0) for v in variables] for t in goal], dtype=float)
    ranges = [range(int(np.ceil(low / 2)), int(high // 2) + 1)
              for low, high in zip(exponents.min(0), exponents.max(0), strict=True)]  # fmt: skip
    if math.prod(map(len, ranges)) > _MOST_CANDIDATES:
        candidates = _middles(exponents)
        if candidates is None:
            return None
    else:
        grid = list(itertools.product(*ranges))
        candidates = np.array(grid, dtype=float).reshape(-1, len(variables))
    directions = np.random.default_rng(0).normal(size=(256, len(variables)))
    directions = np.vstack([directions, np.ones(len(variables)), -np.ones(len(variables))])
    supports = (exponents @ directions.T).max(axis=0)
    candidates = candidates[(2 * candidates @ directions.T <= supports + 1e-9).all(axis=1)]
    if not 0 < len(candidates) <= 4 * MOST_MONOMIALS:
        return None
    corners = {tuple(map(int, row)) for row in candidates}
    support = {tuple(map(int, row)) for row in exponents}
    while True:
        sums = {tuple(map(sum, zip(a, b, strict=True)))
                for a, b in itertools.combinations(sorted(corners), 2)}  # fmt: skip
        useful = {
            a for a in corners if (twice := tuple(2 * e for e in a)) in support or twice in sums
        }
        if useful == corners:
            break
        corners = useful
    rows = (zip(variables, row, strict=True) for row in sorted(corners, reverse=True))
    return [tuple((v, e) for v, e in row if e) for row in rows]


def _middles(exponents: np.ndarray) -> np.ndarray | None:
    """Halves of the even rows and of sums of two of them: fewer monomials, where all are many."""
    half = exponents[(exponents % 2 == 0).all(axis=1)] / 2
    if not 0 < len(half) <= _MOST_EVEN:
        return None
    middles = (half[:, None] + half[None]).reshape(-1, half.shape[1]) / 2
    integral = middles[(middles % 1 == 0).all(axis=1)]
    return np.unique(integral, axis=0)


def _by_parity(
    choices: Sequence[tuple[tuple[int, ...], Polynomial, list[Monomial]]],
    polynomials: list[Polynomial],
) -> list[Block]:
    """Bases divided where changes of signs of variables leave all polynomials as they are."""
    basis: list[int] = []

    def parity(term: Monomial) -> int:
        mask = sum(1 << atom for atom, e in term if e % 2)
        for pivot in basis:
            mask = min(mask, mask ^ pivot)
        return mask

    for term in (term for p in polynomials for term in p):
        if mask := parity(term):
            basis = sorted([*(min(b, b ^ mask) for b in basis), mask], reverse=True)
    blocks = []
    for of, factor, monomials in choices:
        classes: dict[int, list[Polynomial]] = {}
        for term in monomials:
            classes.setdefault(parity(term), []).append({term: 1})
        blocks += [Block(of, factor, tuple(members)) for members in classes.values()]
    return blocks
