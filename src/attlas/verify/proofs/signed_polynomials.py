r"""The sides of an inequality as polynomials that must not be negative, case by case.

The program of left - right runs on symbols (`attlas.verify.proofs.identities`). In each case of the
signs that it compares, right - left is a quotient of sums of monomials in positive or real atoms;
the signs of the case and of the assumptions are constraints. Exponentials and logarithms are atoms
too: what holds for all values of an atom holds for those that it has.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Unconfirmed
from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.elements import Element, Field, NotProvedError
from attlas.verify.proofs.exact_rules import Exact
from attlas.verify.proofs.functions import CaseError, Functions, OpaqueError, UndefinedError
from attlas.verify.proofs.identities import Case, Expansion
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.points import Point, PointError
from attlas.verify.proofs.polynomials import Polynomial

_MOST_POINTS = 256
_SAMPLES = 512
_TOLERANCE = 1e-9
"""Share of the sum of the sizes of its terms from which a polynomial counts as negative."""
_HALF = Fraction(1, 2)


@dataclass(frozen=True)
class SignedCase(Case):
    """A case of signs, with what must not be negative in it.

    Attributes:
        field: the atoms of the polynomials.
        goals: for each entry of the sides.
        constraints: polynomials that are not negative in this case.
    """

    field: Field
    goals: tuple[Polynomial, ...]
    constraints: tuple[Polynomial, ...]


@dataclass
class SignedExpansion(Expansion):
    """The program of right - left on the symbols of a domain.

    Attributes:
        conditional: whether an assumption may fail somewhere in the domain.
    """

    conditional: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.exact = True
        self._assumed = [
            jax.make_jaxpr(lambda instance, a=a: jnp.asarray(a.holds(instance), dtype=bool))(
                dict(self.instance)
            )
            for a in self.claim.assumptions
        ]

    def case(self, k: int, signs: Mapping[str, int]) -> SignedCase:
        """One case of signs, with the polynomials that must not be negative.

        Args:
            k: which values of the arrays that stay numbers.
        """
        for attempt in range(_MOST_POINTS):
            field = Field(Point(self.salt, attempt), until=self.until, exact=True)
            functions = Functions(field, signs, self.split_extremes)
            try:
                self._assume(k, functions)
                gap = self.gap(k, functions)
                goals = tuple(_cleared(functions, entry) for entry in gap)
            except PointError:
                continue
            if not self.split_extremes and any(_extremes_in(field, goal) for goal in goals):
                raise OpaqueError("an extreme")
            constraints = _constraints(field, functions, signs)
            return SignedCase(signs, functions.excluded, k, 0, field, goals, constraints)
        raise NotProvedError(f"none of {_MOST_POINTS} points has its roots")

    def signed_cases(self) -> tuple[SignedCase, ...]:
        """All cases with their polynomials."""
        return tuple(case for case in self.cases() if isinstance(case, SignedCase))

    def _assume(self, k: int, functions: Functions) -> None:
        """Leave a case in which an assumption fails; one without exact rules is not used."""
        exact = Exact(functions)
        symbols = {**self.instance, **self.domain.symbols(exact, self.domain.values[k])}
        before = set(functions.excluded)
        for program in self._assumed:
            try:
                (holds,) = evaluate(exact, program, [symbols[name] for name in self.names])
            except (Unconfirmed, NotProvedError):
                self.conditional = True
                continue
            except CaseError:
                self.conditional = True
                raise
            if not np.all(holds):
                self.conditional = True
                raise UndefinedError
        self.conditional |= set(functions.excluded) != before


def _extremes_in(field: Field, a: Polynomial) -> bool:
    """Whether a polynomial has a maximum, also within an exponential, a logarithm or a root."""
    for number in {k for term in a for k, _ in term}:
        atom = field.atoms[number]
        if atom.kind == "extreme":
            return True
        if atom.kind in ("log", "root") and _extremes_in(field, atom.meaning):
            return True
        if atom.kind in ("exp", "cos", "sin"):
            polynomials = [atom.meaning.top, *(field.factors[n] for n, _ in atom.meaning.below)]
            if any(_extremes_in(field, polynomial) for polynomial in polynomials):
                return True
    return False


def _cleared(functions: Functions, entry: Any) -> Polynomial:
    """A polynomial that is not negative exactly where left - right is not positive."""
    if not isinstance(entry, Node):
        raise NotProvedError("a side is infinite")
    field, gap = functions.field, entry.expanded()
    goal: Polynomial = {term: -c for term, c in gap.top.items()}
    for number, exponent in gap.below:
        if exponent % 2:
            try:
                sign = functions.sign_of_factor(number, strict=False)
                goal = {term: sign * c for term, c in goal.items()}
            except (CaseError, OpaqueError):
                goal = field.multiply(goal, field.factors[number])
    return whole_powers(field, goal)


def whole_powers(field: Field, a: Polynomial) -> Polynomial:
    """A polynomial times a positive monomial that leaves no negative exponent.

    Examples:
        >>> from attlas.verify.proofs.elements import Atom
        >>> field = Field(Point("0"))
        >>> number = field.atom(Atom("x", False))
        >>> whole_powers(field, {((number, -1),): 1})
        {((0, 1),): 1}
    """
    if not a:
        return a
    lift = []
    for atom, exponent in poly.content(a):
        if exponent < 0:
            even = -exponent if field.atoms[atom].positive else 2 * math.ceil(-exponent / 2)
            lift.append((atom, even))
    return field.multiply(a, {tuple(lift): 1}) if lift else a


def _constraints(
    field: Field, functions: Functions, signs: Mapping[str, int]
) -> tuple[Polynomial, ...]:
    """What the signs of a case say, without roots."""
    inequalities = []
    for name, sign in signs.items():
        element: Element | None = functions.excluded.get(name)
        if element is None or element.below or not element.top:
            continue
        atoms = [field.atoms[a] for term in element.top for a, _ in term]
        if all(atom.positive for atom in atoms) and len(element.top) == 1:
            continue
        if any(atom.kind in ("extreme", "large") for atom in atoms):
            continue
        inequality = {term: sign * c for term, c in element.top.items()}
        if any(atom.kind == "root" for atom in atoms):
            inequality = _squared(field, inequality)
        if inequality:
            inequalities.append(inequality)
    return tuple(inequalities)


def _squared(field: Field, a: Polynomial) -> Polynomial:
    r"""What says that $A + B \rho$ is not negative without the root, where A and B have signs.

    Returns:
        $A^2 - B^2 \rho^2$ or its negative; nothing where a sign is open or roots are left.
    """
    try:
        root = root_in(field, a)
        if root is None:
            return {}
        free, factor = without_root(field, a, root, 0)
        _, difference = without_root(field, a, root, 2)
        if root_in(field, difference) is not None:
            return {}
    except NotProvedError:
        return {}
    if _is_nonnegative(field, free) and _is_nonnegative(field, factor, -1):
        return difference
    if _is_nonnegative(field, free, -1) and _is_nonnegative(field, factor):
        return {term: -c for term, c in difference.items()}
    return {}


def _is_nonnegative(field: Field, a: Polynomial, sign: int = 1) -> bool:
    atoms = field.atoms
    return all(
        c * sign > 0 and all(atoms[k].positive or e % 2 == 0 for k, e in t) for t, c in a.items()
    )


def root_in(field: Field, a: Polynomial) -> int | None:
    """The last root that occurs in a polynomial, in a term with a negative coefficient first.

    Raises:
        NotProvedError: if it is no square root.
    """
    numbers: dict[int, bool] = {}
    for term, c in a.items():
        for atom, exponent in term:
            if field.atoms[atom].kind == "root":
                if exponent != _HALF:
                    raise NotProvedError("it has a root that is no square root")
                numbers[atom] = numbers.get(atom, False) or c < 0
    return max(numbers, key=lambda n: (numbers[n], n)) if numbers else None


def without_root(field: Field, a: Polynomial, root: int, way: int) -> tuple[Polynomial, ...]:
    r"""Polynomials without a root which, if none is negative, show that $a = A + B \rho$ is not.

    Args:
        root: the number of the atom whose root is $\rho \ge 0$.
        way: 0 for A and B; 1 for B and $B^2 \rho^2 - A^2$; 2 for A and $A^2 - B^2 \rho^2$.
    """
    part: tuple[Polynomial, Polynomial] = ({}, {})
    for term, c in a.items():
        remainder = tuple((atom, e) for atom, e in term if atom != root)
        part[len(remainder) < len(term)][remainder] = c
    free, factor = part
    if way == 0:
        return free, factor
    square = field.multiply(field.multiply(factor, factor), field.atoms[root].meaning)
    difference = poly.add(square, field.multiply(free, free), -1)
    if way == 1:
        return factor, difference
    return free, {term: -c for term, c in difference.items()}


class Samples:
    """Random values of the atoms of a case, where its constraints hold."""

    def __init__(self, case: SignedCase):
        """Draw them.

        Args:
            case: its atoms, and constraints without roots.
        """
        rng = np.random.default_rng(0)
        self._values: dict[int, np.ndarray] = {}
        valid = np.ones(_SAMPLES, dtype=bool)
        for number, atom in enumerate(case.field.atoms):
            width = np.where(np.arange(_SAMPLES) % 2, 0.3, 1.5)
            values = width * rng.normal(size=_SAMPLES)
            if atom.kind == "root":
                values = self._evaluated(atom.meaning)[0]
                valid &= values >= 0
                values = np.abs(values)
            elif atom.kind == "log":
                values = np.log(self._evaluated(atom.meaning)[0])
                valid &= np.isfinite(values)
            elif atom.kind == "cos":
                values = np.cos(4 * values)
            elif atom.kind == "sin":
                values = self._sine(case.field, number, values)
            self._values[number] = np.exp(values) if self._is_free(atom) else values
        for constraint in case.constraints:
            valid &= self._evaluated(constraint)[0] >= 0
        self._valid = valid

    @staticmethod
    def _is_free(atom: Any) -> bool:
        return atom.positive and atom.kind != "root"

    def _sine(self, field: Field, number: int, values: np.ndarray) -> np.ndarray:
        name = field.atoms[number].name.replace("sin", "cos", 1)
        cosine = next(v for k, v in self._values.items() if field.atoms[k].name == name)
        return np.sign(values) * np.sqrt(np.maximum(1 - cosine**2, 0))

    def _evaluated(self, a: Polynomial) -> tuple[np.ndarray, np.ndarray]:
        total, size = np.zeros(_SAMPLES), np.zeros(_SAMPLES)
        for term, coefficient in a.items():
            value = np.full(_SAMPLES, _as_float(coefficient))
            for atom, exponent in term:
                value = value * self._values[atom] ** float(exponent)
            total, size = total + value, size + np.abs(value)
        return total, size

    def refute(self, a: Polynomial) -> bool:
        """Whether a polynomial is negative at one of them."""
        with np.errstate(all="ignore"):
            value, size = self._evaluated(a)
        return bool((self._valid & (value < -_TOLERANCE * size)).any())


def _as_float(number: Any) -> float:
    """A rational number as a float, NaN beyond their range: it refutes nothing."""
    try:
        return float(number)
    except OverflowError:
        return math.nan
