r"""A proof of an identity by expansion: the program of left - right on symbols, case by case.

Every entry of left - right is brought to a quotient of sums of monomials in the entries of the
arrays, in exponentials, logarithms and roots (`attlas.verify.proofs.elements`). If it has no terms
in any case of the signs that the program compares, the identity holds on the whole domain. The
same must fail for each control.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from attlas.claims.claim import Claim
from attlas.claims.sampling import Instance
from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Unconfirmed
from attlas.verify.proofs.elements import Element, Field, NotProvedError
from attlas.verify.proofs.exact_rules import Exact
from attlas.verify.proofs.functions import CaseError, Functions, OpaqueError, UndefinedError
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.points import BITS, Point, PointError
from attlas.verify.proofs.symbols import Domain

_MOST_CASES = 256
_MOST_POINTS = 256
SECONDS = 20.0
"""Seconds of a processor after which a proof is given up."""
LARGEST = 4096
"""Entries of an array of the program."""


@dataclass(frozen=True)
class Case:
    """One case of signs in which left = right, with what was assumed not to vanish.

    Attributes:
        signs: by the names of atoms and factors.
        excluded: what must not vanish, by name.
        values: which values of the arrays that stay numbers.
        bits: a false identity passes with a probability of at most 2 to minus this.
    """

    signs: Mapping[str, int]
    excluded: Mapping[str, Element]
    values: int
    bits: int


def read_by(claim: Claim, instance: Instance) -> set[str]:
    """The arrays on which left - right depends."""
    program = program_of(claim, instance, {})
    needed = {v for e in program.jaxpr.eqns for v in e.invars if not hasattr(v, "val")}
    needed |= {v for v in program.jaxpr.outvars if not hasattr(v, "val")}
    names = sorted(instance)
    return {n for n, v in zip(names, program.jaxpr.invars, strict=True) if v in needed}


def program_of(
    claim: Claim,
    instance: Instance,
    changes: Mapping[str, Any],
    transform: Callable[[Any], Any] | None = None,
) -> Any:
    """The program of left - right, without operations on which it does not depend.

    Args:
        transform: a map from left - right to the function that is traced in its place.
    """

    def gap(instance: Instance) -> Array:
        sides = claim.sides(instance, changes)
        return jnp.asarray(sides.left, dtype=float) - jnp.asarray(sides.right, dtype=float)

    traced = gap if transform is None else transform(gap)
    closed = jax.make_jaxpr(traced)(dict(instance))
    body = closed.jaxpr
    needed = {v for v in body.outvars if not hasattr(v, "val")}
    equations = []
    for equation in reversed(body.eqns):
        if needed.intersection(equation.outvars):
            equations.append(equation)
            needed |= {v for v in equation.invars if not hasattr(v, "val")}
            if any(v.aval.size > LARGEST for v in equation.outvars):
                raise NotProvedError(f"an array of the program has more than {LARGEST} entries")
    return closed.replace(jaxpr=body.replace(eqns=equations[::-1]))


@dataclass
class Expansion:
    """The program of a claim or of one of its controls on the symbols of a domain."""

    claim: Claim
    domain: Domain
    instance: Instance
    changes: Mapping[str, Any]
    salt: str
    exact: bool = False
    split_extremes: bool = False
    transform: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        self.program = program_of(self.claim, self.instance, self.changes, self.transform)
        self.names = sorted(self.instance)
        self.until = 0.0

    def cases(self) -> tuple[Case, ...]:
        """All cases; raises NotProvedError if one of them does not have what is to be proved."""
        self.until = time.process_time() + SECONDS
        cases: list[Case] = []
        for k in range(len(self.domain.values)):
            open_cases: list[dict[str, int]] = [{}]
            while open_cases:
                if len(cases) + len(open_cases) > _MOST_CASES:
                    raise NotProvedError(f"it has more than {_MOST_CASES} cases")
                signs = open_cases.pop()
                if time.process_time() > self.until:
                    raise NotProvedError(f"it takes more than {SECONDS:g} seconds")
                try:
                    cases.append(self.case(k, signs))
                except CaseError as undecided:
                    name = str(undecided)
                    open_cases += [{**signs, name: -1}, {**signs, name: 1}]
                except UndefinedError:
                    continue
        if not cases:
            raise NotProvedError("it is defined in no case")
        return tuple(cases)

    def case(self, k: int, signs: Mapping[str, int]) -> Case:
        """One case of signs, in which left - right vanishes.

        Args:
            k: which values of the arrays that stay numbers.
        """
        for attempt in range(_MOST_POINTS):
            point = Point(self.salt, attempt)
            field = Field(point, until=self.until, exact=self.exact)
            functions = Functions(field, signs, self.split_extremes)
            try:
                gap = self.gap(k, functions)
            except PointError:
                continue
            if any(not isinstance(v, Node) or not v.is_zero() for v in gap):
                if not self.split_extremes and any(a.kind == "extreme" for a in field.atoms):
                    raise OpaqueError("an extreme")
                raise NotProvedError("left - right does not vanish")
            degrees = sum(sum(v.degrees) for v in gap) + functions.degrees
            roots = sum(atom.kind in ("root", "large") for atom in field.atoms)
            bits = degrees.bit_length() + point.denominators.bit_length() + 2 * roots
            return Case(signs, functions.excluded, k, BITS - 1 - bits)
        raise NotProvedError(f"none of {_MOST_POINTS} points has its roots")

    def gap(self, k: int, functions: Functions) -> list[Any]:
        """The entries of left - right on symbols."""
        exact = Exact(functions)
        symbols = {**self.instance, **self.domain.symbols(exact, self.domain.values[k])}
        try:
            (gap,) = evaluate(exact, self.program, [symbols[name] for name in self.names])
        except Unconfirmed as reason:
            raise NotProvedError(str(reason).removesuffix(" in digits")) from reason
        return list(exact.exact(gap).ravel())


def vanishes(
    claim: Claim,
    domain: Domain,
    instance: Instance,
    changes: Mapping[str, Any],
    salt: str,
    *,
    exact: bool = False,
) -> tuple[Case, ...]:
    """The cases that cover the domain, in each of which left - right vanishes.

    Args:
        instance: gives shapes, and the arrays that the sides do not read.
        salt: text from which the random points follow.
        exact: whether every entry is expanded, or evaluated at a random point.

    Raises:
        NotProvedError: if it does not vanish in one case, or something has no exact rule.
    """
    expansion = Expansion(claim, domain, instance, changes, salt, exact)
    try:
        return expansion.cases()
    except OpaqueError:
        expansion.split_extremes = True
    try:
        return expansion.cases()
    except OpaqueError as error:
        raise NotProvedError("a large expression decides a case") from error
