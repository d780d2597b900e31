r"""Certificates that polynomials with square roots are not negative: trees of sums of squares.

A polynomial without roots is a leaf; one with a root $\rho$ has the way in which it is squared and
two smaller polynomials. A positive atom is the square of a variable where that is needed, or the
square of its root; other atoms are variables. All leaves name their squares by their place in one
list, since cases that differ in signs alone often have the same polynomials.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from attlas.verify.proofs import polynomials as poly
from attlas.verify.proofs.elements import Field, NotProvedError
from attlas.verify.proofs.gram import Square, squares_agree, squares_of
from attlas.verify.proofs.logarithms import has_logarithms, without_logarithms
from attlas.verify.proofs.orderings import ordered
from attlas.verify.proofs.polynomials import Polynomial
from attlas.verify.proofs.signed_polynomials import (
    Samples,
    SignedCase,
    root_in,
    whole_powers,
    without_root,
)
from attlas.verify.proofs.square_bases import degree

PLAIN, POSITIVE = "real atoms", "positive atoms as squares"
ROOTS = "powers of positive atoms as real numbers"
MANIFEST = "terms of which none is negative"
ORDERED = "distances of ordered atoms as squares"
_HIGHEST = 16
"""Degree up to which a polynomial is written as squares."""
_LONGEST = 1000
"""Terms of a polynomial that is written as squares."""
_DEEPEST = 4
"""Roots that are taken out, one after another."""
Tree = Mapping[str, Any]


@dataclass(frozen=True)
class _Leaf:
    """A polynomial in variables, with its constraints."""

    form: str
    variables: tuple[str, ...]
    goal: Polynomial
    constraints: tuple[Polynomial, ...]

    def multiplier(self, number: int) -> Polynomial:
        """1, the sum of squares of the variables, or one more than it."""
        squares: Polynomial = {((k, 2),): 1 for k in range(len(self.variables))}
        unit: Polynomial = {poly.ONE: 1}
        return (unit, squares, poly.add(squares, unit))[number]


@dataclass
class Trees:
    """The certificates of one claim.

    Attributes:
        documents: lists of squares as plain JSON, to which the leaves refer.
    """

    documents: list[Any] = field(default_factory=list)
    _places: dict[Any, int | None] = field(default_factory=dict)
    _samples: tuple[SignedCase, Samples] | None = None

    def tree(self, case: SignedCase, goal: Polynomial, until: float) -> Tree:
        """The tree of a polynomial.

        Args:
            until: processor time after which no further program is solved.

        Raises:
            NotProvedError: if none is found.
        """
        if self._samples is None or self._samples[0] is not case:
            self._samples = case, Samples(case)
        samples = self._samples[1]
        case.field.until = until
        if samples.refute(goal):
            raise NotProvedError("right - left is negative at a random point")
        tree = self._tree(case, samples, goal, until, 0)
        if tree is None:
            raise NotProvedError("no sum of squares is found for right - left")
        return tree

    def _tree(
        self, case: SignedCase, samples: Samples, goal: Polynomial, until: float, depth: int
    ) -> Tree | None:
        if not goal:
            return {"form": PLAIN, "zero": True}
        if samples.refute(goal):
            return None
        if _is_manifest(case.field, goal):
            return {"form": MANIFEST, "terms": True}
        if has_logarithms(case.field, goal):
            lower = without_logarithms(case.field, goal)
            if lower is not None and not samples.refute(lower):
                tree = self._tree(case, samples, lower, until, depth)
                if tree is not None:
                    return {"tangents": True, "parts": [tree]}
        root = root_in(case.field, goal)
        if root is None:
            return self._leaf(case, goal, until)
        for way in (2, 1, 0) if depth < _DEEPEST else ():
            smaller = without_root(case.field, goal, root, way)
            if any(samples.refute(part) for part in smaller):
                continue
            trees = []
            for part in smaller:
                tree = self._tree(case, samples, part, until, depth + 1)
                if tree is None:
                    break
                trees.append(tree)
            if len(trees) == len(smaller):
                return {"root": case.field.atoms[root].name, "way": way, "parts": trees}
        return None

    def _leaf(self, case: SignedCase, goal: Polynomial, until: float) -> Tree | None:
        if len(goal) > _LONGEST:
            return None
        for leaf in _leaves(case, goal):
            for number in range(3 if not leaf.constraints else 1):
                place = self._place(leaf, number, until)
                if place is not None:
                    return {
                        "form": leaf.form,
                        "variables": list(leaf.variables),
                        "constrained": bool(leaf.constraints),
                        "multiplier": number,
                        "squares": place,
                    }
        return None

    def _place(self, leaf: _Leaf, number: int, until: float) -> int | None:
        product = poly.multiply(leaf.goal, leaf.multiplier(number))
        key = frozenset(product.items()), tuple(frozenset(c.items()) for c in leaf.constraints)
        if key not in self._places:
            self._places[key] = None
            if degree(product) <= _HIGHEST:
                squares = squares_of(product, leaf.constraints, until)
                if squares is not None:
                    self._places[key] = len(self.documents)
                    self.documents.append([_written(s, len(leaf.variables)) for s in squares])
        return self._places[key]


def disagreement(case: SignedCase, goal: Polynomial, tree: Tree, documents: Sequence[Any]) -> str:
    """Why a stored tree does not show that a polynomial is not negative; empty where it does.

    Args:
        documents: lists of squares to which the leaves refer.
    """
    if not goal:
        return ""
    if "terms" in tree:
        return "" if _is_manifest(case.field, goal) else "a term may be negative"
    if "tangents" in tree:
        lower = without_logarithms(case.field, goal)
        if lower is None:
            return "its logarithms have another form now"
        return disagreement(case, lower, tree["parts"][0], documents)
    if "root" in tree:
        root = root_in(case.field, goal)
        if root is None or case.field.atoms[root].name != tree["root"]:
            return "it has another root now"
        if tree["way"] not in (0, 1, 2) or len(tree["parts"]) != 2:
            return "its certificate has another form"
        smaller = without_root(case.field, goal, root, tree["way"])
        reasons = (disagreement(case, *pair, documents)
                   for pair in zip(smaller, tree["parts"], strict=True))  # fmt: skip
        return next(filter(None, reasons), "")
    if root_in(case.field, goal) is not None:
        return "it has a root now"
    for leaf in _leaves(case, goal):
        constrained = bool(leaf.constraints)
        if (leaf.form, constrained) != (tree.get("form"), tree.get("constrained")):
            continue
        if list(leaf.variables) != tree["variables"]:
            return "its polynomials have other variables now"
        squares = [_read(document) for document in documents[tree["squares"]]]
        multiplier = leaf.multiplier(tree["multiplier"])
        agree = squares_agree(leaf.goal, leaf.constraints, multiplier, squares)
        return "" if agree else "its squares do not sum to right - left"
    return "its certificate has another form"


def _is_manifest(field: Field, goal: Polynomial) -> bool:
    """Whether no term can be negative."""
    atoms = field.atoms
    return all(
        c > 0 and all(atoms[k].positive or e % 2 == 0 for k, e in t) for t, c in goal.items()
    )


def _leaves(case: SignedCase, goal: Polynomial) -> Iterator[_Leaf]:
    """The ways in which a polynomial is one in real variables, simple ones first."""
    for constraints in ((), case.constraints) if case.constraints else ((),):
        atoms = sorted({a for p in (goal, *constraints) for term in p for a, _ in term})
        polynomials = [goal, *constraints]
        exponents = {a: [e for p in polynomials for t in p for b, e in t if a == b] for a in atoms}
        is_whole = all(Fraction(e).denominator == 1 for each in exponents.values() for e in each)
        positive = [a for a in atoms if case.field.atoms[a].positive]
        if is_whole:
            yield _leaf_of(case.field, PLAIN, atoms, polynomials, {})
        scales = {a: math.lcm(*(Fraction(e).denominator for e in exponents[a])) for a in positive}
        if any(scale > 1 for scale in scales.values()):
            yield _leaf_of(case.field, ROOTS, atoms, polynomials, scales)
        if positive:
            doubled = {a: 2 * scale for a, scale in scales.items()}
            yield _leaf_of(case.field, POSITIVE, atoms, polynomials, doubled)
    distances = ordered(case.field, goal, case.constraints)
    if distances:
        atoms = sorted({a for term in distances for a, _ in term})
        denominators = {a: [Fraction(e).denominator for t in distances for b, e in t if a == b]
                        for a in atoms if case.field.atoms[a].positive}  # fmt: skip
        doubled = {a: 2 * math.lcm(*each) for a, each in denominators.items()}
        yield _leaf_of(case.field, ORDERED, atoms, [distances], doubled)


def _leaf_of(
    field: Field,
    form: str,
    atoms: Sequence[int],
    polynomials: Sequence[Polynomial],
    scales: Mapping[int, int],
) -> _Leaf:
    places = {a: k for k, a in enumerate(atoms)}
    mapped: list[Polynomial] = [
        {tuple((places[a], int(e * scales.get(a, 1))) for a, e in term): c for term, c in p.items()}
        for p in (whole_powers(field, p) for p in polynomials)
    ]
    names = tuple(field.atoms[a].name for a in atoms)
    return _Leaf(form, names, mapped[0], tuple(mapped[1:]))


def _written(square: Square, count: int) -> list[Any]:
    """A square as plain JSON: places of constraints, weight, and coefficients with exponents."""
    terms = [
        [str(c), [int(dict(term).get(k, 0)) for k in range(count)]]
        for term, c in square.base.items()
    ]
    return [list(square.of), str(square.weight), terms]


def _read(document: Any) -> Square:
    of, weight, terms = document
    base = {
        tuple((k, e) for k, e in enumerate(exponents) if e): poly.whole(Fraction(c))
        for c, exponents in terms
    }
    return Square(tuple(of), Fraction(weight), base)
