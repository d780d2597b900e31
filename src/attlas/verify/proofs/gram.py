r"""Polynomials as sums of squares: Gram matrices in floats by clarabel, and then in fractions.

A goal p is at least zero where all constraints g are if $p m = \sum_b g_b u_b^\top Q_b u_b$ with
positive semidefinite $Q_b$, where the multiplier m is 1 or a sum of squares and the $g_b$ are 1,
constraints and products of them. The semidefinite program makes the least eigenvalue as large as it
can be. If that is zero, every Gram matrix has a kernel, such as the monomials at a point of
equality: it is recognised as short fractions and taken out of the bases $u_b$. Rounded matrices are
repaired until the coefficients agree exactly, and are written as weighted squares by exact
$L D L^\top$. What is found here is checked without it (`squares_agree`).
"""

import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from attlas.claims._worst_cases.rational import (
    independent_columns,
    rounded,
    short_kernel,
    solve,
)
from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.polynomials import Monomial, Number, Polynomial
from attlas.verify.proofs.square_bases import Block, bases

MOST_UNKNOWNS = 1200
"""Entries of all Gram matrices, and coefficients that must agree."""
_ROUNDS = 6
"""Times that a kernel is taken out of the bases."""
_INTERIOR, _FEASIBLE = 1e-6, 1e-5
"""Least eigenvalue that counts as positive, and below zero that may be one of zero."""
_SPANS = (1e-2, 1e-4)
"""Share of the largest eigenvalue of a dual matrix from which it counts."""
_ERRORS = (1e-4, 1e-6)
"""Errors of entries of a kernel."""
_DENOMINATORS = (1, 2, 12, 120, 2520, 2**16, 2**26, 2**36)
_ROOT_OF_2 = math.sqrt(2)


@dataclass(frozen=True)
class Square:
    """One term of a certificate: a weight times constraints times the square of a polynomial.

    Attributes:
        of: places of the constraints that are multiplied.
        weight: a positive fraction.
        base: what is squared.
    """

    of: tuple[int, ...]
    weight: Fraction
    base: Polynomial


def squares_agree(
    goal: Polynomial,
    constraints: Sequence[Polynomial],
    multiplier: Polynomial,
    squares: Sequence[Square],
) -> bool:
    """Whether weighted squares times constraints sum exactly to the goal times a multiplier.

    Examples:
        >>> x = {((0, 1),): 1}
        >>> squares_agree(poly.multiply(x, x), (), {poly.ONE: 1}, [Square((), Fraction(1), x)])
        True
    """
    remainder = poly.multiply(goal, multiplier)
    for square in squares:
        if square.weight < 0:
            return False
        term = poly.multiply(square.base, square.base)
        for k in square.of:
            term = poly.multiply(term, constraints[k])
        remainder = poly.add(remainder, term, -square.weight)
    return not remainder


def squares_of(
    goal: Polynomial, constraints: Sequence[Polynomial], until: float = math.inf
) -> list[Square] | None:
    """Weighted squares times constraints whose sum is the goal.

    Args:
        goal: a polynomial with whole exponents that are not negative, like the constraints.
        until: processor time after which no further program is solved.

    Returns:
        The squares, None where none are obtained.

    Examples:
        >>> x, y = {((0, 1),): 1}, {((1, 1),): 1}
        >>> gap = poly.multiply(poly.add(x, y, -1), poly.add(x, y, -1))
        >>> squares_of(gap, ())
        [Square(of=(), weight=Fraction(1, 1), base={((0, 1),): 1, ((1, 1),): -1})]
        >>> squares_of(poly.add(gap, {poly.ONE: 1}, -1), ()) is None
        True
    """
    if not goal:
        return []
    if (plain := _plain_squares(goal)) is not None:
        return plain
    if (single := square_root(goal)) is not None:
        return [single]
    scale = max(abs(Fraction(c)) for c in goal.values())
    scaled: Polynomial = {m: Fraction(c) / scale for m, c in goal.items()}
    for blocks in bases(goal, constraints):
        squares = _on_face(scaled, blocks, _ROUNDS, until)
        if squares is not None:
            return [Square(s.of, s.weight * scale, s.base) for s in squares]
    return None


def _plain_squares(goal: Polynomial) -> list[Square] | None:
    """The terms of a polynomial, if each is a square."""
    if any(c < 0 or any(e % 2 for _, e in m) for m, c in goal.items()):
        return None
    half = Fraction(1, 2)
    return [Square((), Fraction(c), {poly.power(m, half): 1}) for m, c in goal.items()]


def square_root(goal: Polynomial) -> Square | None:
    """A polynomial as one weighted square, None where it is none.

    Examples:
        >>> square_root({((0, 2),): 2, ((0, 1), (1, 1)): -4, ((1, 2),): 2})
        Square(of=(), weight=Fraction(2, 1), base={((0, 1),): 1, ((1, 1),): -1})
    """
    head = poly.leading(goal)
    if goal[head] < 0 or any(e % 2 for _, e in head):
        return None
    atoms = sorted({atom for term in goal for atom, _ in term})

    def key(term: Monomial) -> tuple[Number, ...]:
        exponents = dict(term)
        return tuple(exponents.get(atom, 0) for atom in atoms)

    weight = Fraction(goal[head])
    first = poly.power(head, Fraction(1, 2))
    base: Polynomial = {first: 1}
    left = poly.add({m: Fraction(c) / weight for m, c in goal.items()}, {head: 1}, -1)
    inverse, last = poly.power(first, -1), first
    while left:
        top = max(left, key=key)
        term = poly.product(top, inverse)
        if any(e < 0 for _, e in term) or key(term) >= key(last) or len(base) > len(goal):
            return None
        part: Polynomial = {term: poly.whole(Fraction(left[top]) / 2)}
        twice = poly.add(poly.add(base, base), part)
        left, last = poly.add(left, poly.multiply(twice, part), -1), term
        base = poly.add(base, part)
    return Square((), weight, base)


@dataclass(frozen=True)
class _Optimum:
    least: float
    entries: np.ndarray
    duals: list[np.ndarray]


def _on_face(
    goal: Polynomial, blocks: list[Block], rounds: int, until: float
) -> list[Square] | None:
    """Squares of the goal, if need be after what must vanish is taken out of the bases."""
    system = _system(goal, blocks)
    if system is None or time.process_time() > until:
        return None
    matrix, right = system
    try:
        optimum = _deepest(matrix.astype(float), right.astype(float), blocks)
    except OverflowError:  # coefficients beyond the range of floats
        return None
    if optimum is None or optimum.least < -_FEASIBLE:
        return None
    for denominator in _DENOMINATORS if optimum.least > _INTERIOR else _DENOMINATORS[:5]:
        if (squares := _repaired(matrix, right, blocks, optimum.entries, denominator)) is not None:
            return squares
    if rounds and optimum.least <= _INTERIOR:
        for span, error in itertools.product(_SPANS, _ERRORS):
            smaller = _without_kernels(blocks, optimum.duals, span, error)
            if smaller is None:
                continue
            squares = _on_face(goal, smaller, rounds - 1, until)
            if squares is not None:
                return squares
    return None


def _system(goal: Polynomial, blocks: Sequence[Block]) -> tuple[np.ndarray, np.ndarray] | None:
    """The equations that the coefficients agree, of which the entries are unknown."""
    columns = [product for block in blocks for product in block.products()]
    rows = {term: k for k, term in enumerate(dict.fromkeys(t for c in columns for t in c))}
    if len(columns) > MOST_UNKNOWNS or len(rows) > MOST_UNKNOWNS or not goal.keys() <= rows.keys():
        return None
    matrix = np.full((len(rows), len(columns)), Fraction(0), dtype=object)
    for k, column in enumerate(columns):
        for term, coefficient in column.items():
            matrix[rows[term], k] = Fraction(coefficient)
    right = np.array([Fraction(goal.get(term, 0)) for term in rows], dtype=object)
    return matrix, right


def _triangle(size: int) -> tuple[np.ndarray, np.ndarray]:
    row, column = np.array([(i, j) for j in range(size) for i in range(j + 1)]).T
    return row, column


def _deepest(matrix: np.ndarray, right: np.ndarray, blocks: Sequence[Block]) -> _Optimum | None:
    """Gram matrices in floats whose least eigenvalue is as large as it can be, at most one."""
    # Imported here: few proofs need them.
    import clarabel
    from scipy import sparse

    sizes = [len(block.basis) for block in blocks]
    count = matrix.shape[1]
    weights, identity = [], []
    for size in sizes:
        row, column = _triangle(size)
        weights.append(np.where(row == column, 1.0, _ROOT_OF_2))
        identity.append(np.where(row == column, 1.0, 0.0))
    weight, unit = np.concatenate(weights), np.concatenate(identity)
    independent = independent_columns(matrix.T)
    system: Any = sparse.bmat([
        [sparse.csc_matrix(matrix[independent]), None],
        [None, sparse.csc_matrix([[1.0]])],
        [-sparse.diags(weight), sparse.csc_matrix(unit[:, None])],
    ], format="csc")  # fmt: skip
    sides = np.concatenate([right[independent], [1.0], np.zeros(count)])
    cones = [
        clarabel.ZeroConeT(len(independent)),
        clarabel.NonnegativeConeT(1),
        *(clarabel.PSDTriangleConeT(size) for size in sizes),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_threads, settings.max_iter = False, 1, 100
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    cost = np.concatenate([np.zeros(count), [-1.0]])
    nothing = sparse.csc_matrix((count + 1, count + 1))
    solution = clarabel.DefaultSolver(nothing, cost, system, sides, cones, settings).solve()
    values, dual = np.asarray(solution.x), np.asarray(solution.z)
    if "Infeasible" in str(solution.status) or not np.isfinite(values).all():
        return None
    if np.abs(matrix @ values[:-1] - right).max() > 1e-5:
        return None
    duals, begin = [], len(independent) + 1
    for size, scale in zip(sizes, weights, strict=True):
        row, column = _triangle(size)
        full = np.zeros((size, size))
        full[row, column] = full[column, row] = dual[begin : begin + len(row)] / scale
        duals.append(full)
        begin += len(row)
    return _Optimum(float(values[-1]), values[:-1], duals)


def _repaired(
    matrix: np.ndarray,
    right: np.ndarray,
    blocks: Sequence[Block],
    entries: np.ndarray,
    denominator: int,
) -> list[Square] | None:
    """Squares from rounded Gram matrices, of which independent entries solve the equations."""
    start = rounded(entries, denominator)
    residual = right - matrix.dot(start)
    if any(residual):
        floats = matrix.astype(float)
        pivots = independent_columns(floats)
        rows = independent_columns(floats[:, pivots].T)
        change = solve(matrix[np.ix_(rows, pivots)], residual[rows])
        if change is None:
            return None
        start[pivots] += change
        if any(right - matrix.dot(start)):
            return None
    squares, begin = [], 0
    for block in blocks:
        row, column = _triangle(len(block.basis))
        gram = np.full((len(block.basis),) * 2, Fraction(0), dtype=object)
        gram[row, column] = gram[column, row] = start[begin : begin + len(row)]
        begin += len(row)
        factors = _factors(gram)
        if factors is None:
            return None
        for weight, coefficients in factors:
            base: Polynomial = {}
            for coefficient, part in zip(coefficients, block.basis, strict=True):
                base = poly.add(base, part, coefficient) if coefficient else base
            squares.append(Square(block.of, weight, base))
    return squares


def _factors(gram: np.ndarray) -> list[tuple[Fraction, np.ndarray]] | None:
    """A matrix as sum of weights times outer products, None if it is not semidefinite."""
    left, factors = gram.copy(), []
    for k in range(len(left)):
        pivot = left[k, k]
        if pivot < 0 or (pivot == 0 and any(left[k])):
            return None
        if pivot:
            row = left[k] / pivot
            factors.append((pivot, row))
            left = left - pivot * np.outer(row, row)
    return factors


def _without_kernels(
    blocks: Sequence[Block], duals: Sequence[np.ndarray], span: float, error: float
) -> list[Block] | None:
    """The blocks on what the dual matrices leave; None if that is all of them, or nothing."""
    largest = max(float(np.linalg.eigvalsh(dual)[-1]) for dual in duals)
    smaller, changed = [], False
    for block, dual in zip(blocks, duals, strict=True):
        sizes, vectors = np.linalg.eigh(dual)
        inside = vectors[:, sizes > span * largest]
        if not inside.shape[1]:
            smaller.append(block)
            continue
        changed = True
        kernel = short_kernel(inside, error)
        # Each row that is no pivot gives an element of the basis that vanishes on the kernel.
        pivots = [_pivot(kernel, j) for j in range(kernel.shape[1])]
        basis = []
        for i in sorted(set(range(len(block.basis))) - set(pivots)):
            element = block.basis[i]
            for j, p in enumerate(pivots):
                if kernel[i, j]:
                    element = poly.add(element, block.basis[p], -kernel[i, j])
            basis.append(element)
        if basis:
            smaller.append(Block(block.of, block.factor, tuple(basis)))
    return smaller if changed and smaller else None


def _pivot(kernel: np.ndarray, j: int) -> int:
    """The row of a kernel that is row j of an identity."""
    unit = [int(k == j) for k in range(kernel.shape[1])]
    return next(i for i in range(len(kernel)) if list(kernel[i]) == unit)
