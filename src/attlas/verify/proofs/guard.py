"""Whether an instance lies where a claim is proved, by the numbers that a proof compares."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from attlas.claims.claim import Claim
from attlas.verify.proofs.elements import Element, Field, NotProvedError
from attlas.verify.proofs.identities import Case
from attlas.verify.proofs.polynomials import Polynomial
from attlas.verify.proofs.symbols import Domain, entry_name

_NEAR = 1e-9
"""A number of this size or less beside the largest of its terms counts as zero."""


def covers(domain: Domain, cases: tuple[Case, ...], instance: Mapping[str, Any]) -> bool:
    """Whether an instance lies in the domain of a proof and in one of its cases.

    Args:
        cases: those in which the claim is proved.

    Raises:
        NotProvedError: if a number that a case compares cannot be evaluated.
    """
    for name, sign in domain.signs.items():
        array = np.asarray(instance[name])
        fixed = domain.fixed[name]
        if array.shape != domain.shapes[name]:
            return False
        if name not in domain.sets and sign and not (sign * array > 0).all():
            return False
        if not np.all(np.isnan(fixed) | (array == fixed)):
            return False
    numbers = domain.numbers(instance)
    if numbers is None:
        return False
    for label, (name, place, sign) in domain.links.items():
        if numbers[label] != sign * numbers[entry_name(name, place)]:
            return False
    return any(_inside(domain, case, instance, numbers) for case in cases)


def refuse_uncovered(
    claim: Claim,
    domain: Domain,
    cases: tuple[Case, ...],
    batch: Mapping[str, Any],
    seed: int,
    *,
    assumed: bool = False,
) -> None:
    """Refuse a proof that leaves out an instance, or contradicts a control.

    Args:
        batch: the draws of `seed`.
        assumed: whether only instances that meet the assumptions count.

    Raises:
        NotProvedError: says how many instances it leaves out, or which control it contradicts.
    """
    rows = _rows(claim, batch, assumed)
    outside = sum(not covers(domain, cases, row) for row in rows)
    if outside:
        raise NotProvedError(f"it leaves out {outside} of {len(rows)} drawn instances")
    for control in claim.controls:
        if control.sample is not None and not control.changes:
            others = _rows(claim, claim.draw(seed, claim.count, control), assumed)
            if any(covers(domain, cases, row) for row in others):
                text = f"the control '{control.description}' has instances in its domain"
                raise NotProvedError(text)


def _rows(claim: Claim, batch: Mapping[str, Any], assumed: bool) -> list[dict[str, Any]]:
    arrays = {name: np.asarray(v) for name, v in batch.items() if v.dtype.kind in "biuf"}
    count = len(next(iter(arrays.values())))
    held = range(count)
    if assumed:
        instances = ({name: value[k] for name, value in batch.items()} for k in range(count))
        held = [k for k, instance in enumerate(instances)
                if all(bool(a.holds(instance)) for a in claim.assumptions)]  # fmt: skip
    return [{name: array[k] for name, array in arrays.items()} for k in held]


def _inside(
    domain: Domain,
    case: Case,
    instance: Mapping[str, Any],
    numbers: Mapping[str, float],
) -> bool:
    values = domain.values[case.values]
    if any(not np.array_equal(np.asarray(v), np.asarray(instance[k])) for k, v in values.items()):
        return False
    for name, element in case.excluded.items():
        if name in numbers and name in case.signs:
            if numbers[name] * case.signs[name] <= 0:
                return False
            continue
        value, size = evaluated(element, numbers)
        if not abs(value) > _NEAR * size or value * case.signs.get(name, value) <= 0:
            return False
    return True


def evaluated(element: Element, numbers: Mapping[str, float]) -> tuple[float, float]:
    """The value of an element and the sum of the sizes of its terms.

    Args:
        numbers: the entries of arrays by name.

    Raises:
        NotProvedError: if it has an atom without a value, or a logarithm or root of none.

    Examples:
        >>> from attlas.verify.proofs.elements import Atom
        >>> from attlas.verify.proofs.points import Point
        >>> field = Field(Point("0"))
        >>> evaluated(field.symbol(Atom("x", False)) * 3, {"x": 2.0})
        (6.0, 6.0)
    """
    atoms: dict[int, float] = {}
    try:
        return _quotient(element, numbers, atoms)
    except (ValueError, OverflowError, ZeroDivisionError) as error:
        raise NotProvedError(f"what it compares cannot be evaluated ({error})") from error


def _quotient(
    element: Element, numbers: Mapping[str, float], atoms: dict[int, float]
) -> tuple[float, float]:
    field = element.field
    below = math.prod(
        _sum(field, field.factors[n], numbers, atoms)[0] ** e for n, e in element.below
    )
    value, size = _sum(field, element.top, numbers, atoms)
    return value / below, abs(size / below)


def _sum(
    field: Field, a: Polynomial, numbers: Mapping[str, float], atoms: dict[int, float]
) -> tuple[float, float]:
    total, size = 0.0, 0.0
    for term, coefficient in a.items():
        value = float(coefficient)
        for atom, exponent in term:
            value *= _atom(field, atom, numbers, atoms) ** float(exponent)
        total, size = total + value, size + abs(value)
    return total, size


def _atom(
    field: Field, number: int, numbers: Mapping[str, float], atoms: dict[int, float]
) -> float:
    if number in atoms:
        return atoms[number]
    atom: Any = field.atoms[number]
    rules: dict[str, Callable[[], float]] = {
        "input": lambda: (
            abs(numbers[atom.name.strip("|")]) if atom.positive else numbers[atom.name]
        ),
        "exp": lambda: math.exp(_quotient(atom.meaning, numbers, atoms)[0]),
        "log": lambda: math.log(_sum(field, atom.meaning, numbers, atoms)[0]),
        "cos": lambda: math.cos(_quotient(atom.meaning, numbers, atoms)[0]),
        "sin": lambda: math.sin(_quotient(atom.meaning, numbers, atoms)[0]),
        "root": lambda: _sum(field, atom.meaning, numbers, atoms)[0],
    }
    if atom.kind not in rules:
        raise NotProvedError("it compares a large expression")
    atoms[number] = rules[atom.kind]()
    return atoms[number]
