r"""Proofs of identities along the paths that drawn instances take through the program of a claim.

Splitting every comparison of symbols into cases needs up to 2^k of them; the draws take at most as
many paths as there are draws. An instance decides each comparison, by its own numbers in many
digits, while the program of left - right runs on symbols modulo a prime
(`attlas.verify.proofs.points`). If left - right vanishes, the identity holds for all arrays whose
comparisons come out the same: an open set around the instance, as far as its zeros, whole numbers
and equal entries are kept. Other instances on the same path need no evaluation of their own.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np

from attlas.claims.claim import Claim
from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Unconfirmed
from attlas.verify.proofs.elements import Atom, Element, Field, LargeError, NotProvedError
from attlas.verify.proofs.exact_rules import Exact
from attlas.verify.proofs.functions import Functions, UndefinedError
from attlas.verify.proofs.identities import program_of
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.points import BITS, Point, PointError
from attlas.verify.proofs.polynomials import Number, Polynomial
from attlas.verify.proofs.reals import Reals
from attlas.verify.proofs.symbols import Domain, entry_name, linked

SECONDS = 90.0
"""Seconds of a processor after which a proof is given up."""
_FREE_POINTS, _MOST_POINTS = 8, 512
"""Points at which entries have no sign yet, and all points that are tried for roots."""
_MOST_TERMS = 4096
"""Terms of an exponent among which logarithms are looked for."""
_EXPANDED = 2000
"""Products of two terms that the expansion of one expression may take."""
_LEAST_BITS, _MOST_BITS = 96, 1024
"""Bits that the error of a path leaves of its prime, below which a larger one is taken."""
_WHOLE = 1024
"""Whole numbers up to this size stay numbers."""
Row = Mapping[str, Any]


class Decisions(Functions):
    """Functions that an instance decides where they compare."""

    def __init__(self, field: Field, signs: Mapping[str, int], numbers: Mapping[str, float]):
        """Take the signs that entries have as symbols, and the entries of the instance."""
        super().__init__(field, signs, split_extremes=True)
        self.large: dict[str, tuple[str, Node]] = {}
        self.reals = Reals(field, numbers, self.large)
        # Signs of what was compared, 0 where it only must not vanish.
        self.compared: list[tuple[Node | Polynomial, int]] = []

    def _sign_of_nonzero(self, a: Node, strict: bool) -> int:
        del strict
        return self._at_instance(a)

    def _note_nonzero(self, a: Node) -> None:
        """Keep an expression that must not vanish, which the instance must not contradict."""
        self.reals.sign(a)
        self.compared.append((a, 0))

    def absolute(self, a: Any) -> Any:
        """The absolute value."""
        if isinstance(a, float):
            return abs(a)
        return -a if self.sign(a) < 0 else a

    def _at_instance(self, a: Node | Polynomial) -> int:
        sign = self.reals.sign(a)
        self.compared.append((a, sign))
        return sign

    def _decided(self, name: str, a: Polynomial) -> int:
        del name
        return self._at_instance(a)

    def _exclude(self, number: int) -> None:
        """Nothing is excluded: what the instance decides is kept in `compared`."""

    def exp(self, a: Any) -> Node:
        """The exponential; of a large sum, the logarithms among its terms are taken out."""
        if isinstance(a, float):
            return super().exp(a)
        try:
            a.expanded()
        except LargeError:
            result = Node.constant(self.field, 1)
            for logarithm, base, times in self._logarithms(a):
                a = a - logarithm * times
                result = result * self.power(base, times)
            return result * super().exp(a)
        return super().exp(a)

    def _antilogarithm(self, atom: Atom) -> Node | None:
        name, operand = self.large.get(atom.name, ("", None))
        return operand if name == "log" else super()._antilogarithm(atom)

    def _exponent(self, atom: Atom) -> Element | Node | None:
        name, operand = self.large.get(atom.name, ("", None))
        return operand if name == "exp" else super()._exponent(atom)

    def _logarithms(self, a: Node) -> list[tuple[Node, Node, Number]]:
        """The logarithms that are terms of a sum, of what they are, and how often they occur."""
        terms: list[tuple[Node, Node, Number]] = []
        waiting: list[tuple[Node, Number]] = [(a, 1)]
        for _ in range(_MOST_TERMS):
            if not waiting:
                break
            node, times = waiting.pop()
            made = node.made
            if isinstance(made, Element):
                terms += self._single_logarithm(made, times)
                continue
            operation, left, right = made
            if operation == "+":
                waiting += [(left, times), (right, times)]
            elif operation == "*":
                for x, y in ((left, right), (right, left)):
                    if y.number is not None:
                        waiting.append((x, times * y.number))
        return terms

    def _single_logarithm(self, a: Element, times: Number) -> list[tuple[Node, Node, Number]]:
        if a.below or len(a.top) != 1:
            return []
        ((term, coefficient),) = a.top.items()
        base = None
        if len(term) == 1 and term[0][1] == 1:
            base = self._antilogarithm(self.field.atoms[term[0][0]])
        if base is None:
            return []
        return [(Node.of(Element(self.field, {term: 1})), base, times * coefficient)]

    def _noted(self, atom: Atom, name: str, a: Node) -> None:
        self.degrees += sum(a.degrees) * (1 + len(self.large))
        self.large.setdefault(atom.name, (name, a))


@dataclass(frozen=True)
class Path:
    """What is proved around one instance.

    Attributes:
        layout: its zeros, whole numbers, equal entries and arrays of integers.
        decisions: what was compared.
        bits: a false identity passes with a probability of at most 2 to minus this.
        digest: sha256 of its layout and of the signs of its comparisons.
    """

    layout: bytes
    decisions: Decisions = field(repr=False)
    bits: int
    digest: str

    def holds(self, row: Row, domain: Domain, layout: bytes) -> bool:
        """Whether another instance goes the same way."""
        if layout != self.layout:
            return False
        decisions, numbers = self.decisions, _numbers(row, domain)
        if any(numbers[label] * sign <= 0 for label, sign in decisions.signs.items()):
            return False
        reals = Reals(decisions.field, numbers, decisions.large)
        try:
            return all(sign in (0, reals.sign(a)) for a, sign in decisions.compared)
        except NotProvedError:
            return False


class Paths:
    """The program of a claim, or of one of its controls, along the paths of instances."""

    def __init__(
        self,
        claim: Claim,
        row: Row,
        read: set[str],
        changes: Row,
        salt: str,
        seconds: float = SECONDS,
    ):
        """Trace the program on an instance, whose arrays `read` its sides read."""
        self._program = program_of(claim, row, changes)
        self._names = sorted(row)
        self._read = read
        self._salt, self._bits = salt, BITS
        self.until = time.process_time() + seconds

    def along(self, row: Row) -> Path:
        """The path of an instance, modulo a larger prime where its degree needs one.

        Raises:
            NotProvedError: if left - right does not vanish on it, or has no exact rule.
        """
        path = self._along(row)
        if path.bits < _LEAST_BITS and self._bits < _MOST_BITS:
            self._bits = _MOST_BITS
            path = self._along(row)
        return path

    def _along(self, row: Row) -> Path:
        domain, layout = self.layout(row)
        numbers = _numbers(row, domain)
        signs = {label: 1 if value > 0 else -1 for label, value in numbers.items() if value}
        for attempt in range(_MOST_POINTS):
            point = Point(self._salt, attempt, self._bits)
            algebra = Field(point, until=self.until, expanded=_EXPANDED)
            free = attempt < _FREE_POINTS
            decisions = Decisions(algebra, {} if free else signs, numbers)
            try:
                gap = self._gap(row, domain, decisions)
            except PointError:
                continue
            except UndefinedError:
                raise NotProvedError("a side is not defined at an instance") from None
            if any(not isinstance(v, Node) or not v.is_zero() for v in gap):
                raise NotProvedError("left - right does not vanish")
            degrees = sum(sum(v.degrees) for v in gap) + decisions.degrees
            roots = sum(atom.kind in ("root", "large") for atom in algebra.atoms)
            bits = degrees.bit_length() + point.denominators.bit_length() + 2 * roots
            outcome = layout + bytes(sign % 256 for _, sign in decisions.compared)
            return Path(layout, decisions, self._bits - 1 - bits, sha256(outcome).hexdigest())
        raise NotProvedError(f"none of {_MOST_POINTS} points has its roots")

    def _gap(self, row: Row, domain: Domain, decisions: Decisions) -> list[Any]:
        exact = Exact(decisions)
        symbols = {**row, **domain.symbols(exact, {})}
        try:
            (gap,) = evaluate(exact, self._program, [symbols[name] for name in self._names])
        except Unconfirmed as reason:
            raise NotProvedError(str(reason).removesuffix(" in digits")) from reason
        return list(exact.exact(gap).ravel())

    def layout(self, row: Row) -> tuple[Domain, bytes]:
        """The symbols of an instance, and what stays as it is in it as bytes."""
        signs, shapes, fixed, constants = {}, {}, {}, []
        for name in sorted(self._read):
            array = np.asarray(row[name])
            if array.dtype.kind != "f":
                constants.append(array.tobytes())
                continue
            signs[name], shapes[name] = 0, array.shape
            short = (array == np.rint(array)) & (np.abs(array) <= _WHOLE)
            fixed[name] = np.where(short, array + 0.0, np.nan)  # there is one zero
            constants.append(fixed[name].tobytes())
        links = linked({name: np.asarray(row[name])[None] for name in signs}, fixed)
        constants.append(repr(sorted(links.items())).encode())
        return Domain(signs, shapes, fixed, ({},), links), b"|".join(constants)


def _numbers(row: Row, domain: Domain) -> dict[str, float]:
    """The entries of arrays of symbols by their names."""
    return {
        entry_name(name, place): float(np.asarray(row[name])[place])
        for name, shape in domain.shapes.items()
        for place in np.ndindex(shape)
    }


def digest_of(paths: Sequence[Path]) -> str:
    """sha256 of the digests of all paths, which does not depend on their order."""
    return sha256("".join(sorted(path.digest for path in paths)).encode()).hexdigest()


def proved_paths(
    claim: Claim,
    rows: Sequence[Row],
    control_rows: Sequence[Row],
    read: set[str],
    salt: str,
    seconds: float = SECONDS,
) -> list[Path]:
    """The paths of all instances, on each of which a claim holds and none of its controls.

    Args:
        rows: instances of the claim.
        control_rows: instances of those controls that have their own.
        read: the arrays that the sides read.
        salt: text from which the random points follow.
        seconds: seconds of a processor for the claim, and for each control.

    Raises:
        NotProvedError: says which instance or control stands against it.
    """
    program = Paths(claim, rows[0], read, {}, salt, seconds)
    paths: list[Path] = []
    for row in rows:
        domain, layout = program.layout(row)
        if not any(path.holds(row, domain, layout) for path in paths):
            paths.append(program.along(row))
    if all(atom.kind != "input" for p in paths for atom in p.decisions.field.atoms):
        raise NotProvedError("its draws are whole numbers, and no symbols")
    for row in control_rows:
        domain, layout = program.layout(row)
        if any(path.holds(row, domain, layout) for path in paths):
            raise NotProvedError("a control has instances in its domain")
    for control in claim.controls:
        if control.changes and _is_proved(claim, rows, read, control.changes, salt, seconds):
            raise NotProvedError(f"the control '{control.description}' would be proved too")
    return paths


def _is_proved(
    claim: Claim, rows: Sequence[Row], read: set[str], changes: Row, salt: str, seconds: float
) -> bool:
    try:
        program = Paths(claim, rows[0], read, changes, salt, seconds)
        for row in rows:
            program.along(row)
    except NotProvedError:
        return False
    return True
