r"""Proofs along one coordinate: the value of right - left at zero, and its derivatives.

Where G = right - left is smooth between s = 0 and s, G >= 0 follows from $G|_{s=0} \ge 0$ and
$s \, \partial_s G \ge 0$, or from $G|_{s=0} \ge 0$, $\partial_s G|_{s=0} = 0$ and
$\partial_s^2 G \ge 0$. These have fewer logarithms and are proved as inequalities are
(`attlas.verify.proofs.squares`). G is smooth if no comparison makes a case, and if all that is
divided by, or that a logarithm is of, is a sum of positive terms.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import Inequality
from attlas.claims.proof import SQUARES, Proof
from attlas.claims.verdict import Outcome
from attlas.verify.proofs.confirmed_proof import CERTIFICATE, confirmed_proof
from attlas.verify.proofs.elements import Field, NotProvedError
from attlas.verify.proofs.functions import Functions
from attlas.verify.proofs.guard import refuse_uncovered
from attlas.verify.proofs.parametrisations import INTERVAL
from attlas.verify.proofs.polynomials import Polynomial
from attlas.verify.proofs.signed_polynomials import SignedCase
from attlas.verify.proofs.square_trees import Trees, disagreement
from attlas.verify.proofs.squares import (
    ENDED,
    SECONDS,
    TRUSTED,
    cases_of,
    disagreement_in_digits,
    domain_for,
    read_draws,
)
from attlas.verify.proofs.symbols import Domain, entry_name

_MOST_ENTRIES, _MOST_COORDINATES = 4, 6
"""Entries of an array, and of all arrays, along which derivatives are tried."""
_NEAR = 1e-9
NO_SIGN = "no derivative along a coordinate has a sign"
_TRUSTED = f"{TRUSTED}; and the derivatives of JAX"


@dataclass(frozen=True)
class Slope:
    """A coordinate, and how many derivatives are taken along it."""

    name: str
    place: tuple[int, ...]
    depth: int

    def statements(self) -> list[tuple[int, bool]]:
        """What is proved: the order of a derivative, and whether it is taken at zero."""
        return [(k, True) for k in range(self.depth)] + [(self.depth, False)]

    def transform(self, order: int, at_zero: bool) -> Callable[[Any], Any]:
        """From left - right, as a function of an instance, to a derivative of it.

        An odd derivative that is not taken at zero is multiplied by the coordinate.
        """

        def transformed(gap: Callable[..., Any]) -> Callable[..., Any]:
            def derivative(instance: Mapping[str, Any]) -> Any:
                array = jnp.asarray(instance[self.name])

                def along(value: Any) -> Any:
                    return gap({**instance, self.name: array.at[self.place].set(value)})

                function = along
                for _ in range(order):
                    function = jax.jacfwd(function)
                value = jnp.zeros(()) if at_zero else array[self.place]
                result = function(value)
                return result * value if order % 2 and not at_zero else result

            return derivative

        return transformed


def proved_by_slopes(claim: Claim, *, seed: int = 0, seconds: float = SECONDS) -> Proof:
    r"""Prove an inequality by its value and its derivatives along one coordinate.

    Args:
        seconds: seconds of a processor for the semidefinite programs of one coordinate.

    Raises:
        NotProvedError: says why not.

    Examples:
        >>> from attlas.claims.claim import Control
        >>> from attlas.claims.statement import inequality
        >>> draw = lambda rng, count: {"s": rng.normal(size=count)}
        >>> @inequality(sample=draw, controls=[Control("half", factor=0.5)])
        ... def cosh(s, *, factor=1.0):
        ...     r"$$\log \cosh s \le s^2 / 2$$"
        ...     return jnp.log(jnp.cosh(s)), factor * s**2 / 2
        >>> proved_by_slopes(cosh).sentence()
        'proved by sums of squares for all real s, where both sides are defined'
    """
    if type(claim.kind.rule) is not Inequality or claim.backend == "numpy":
        raise NotProvedError("derivatives are for inequalities in JAX")
    if claim.expect.outcome is not Outcome.SUPPORTED or claim.assumptions:
        raise NotProvedError("derivatives are for inequalities without assumptions")
    reason = NO_SIGN
    with jax.enable_x64(True), np.errstate(all="ignore"):
        batch, read = read_draws(claim, seed)
        for digits in (0, 1, 2):
            domain = domain_for(claim, batch, read, seed, digits)
            if (digits and not domain.sets) or reason in ENDED:
                continue
            for slope in _slopes(claim, domain, batch):
                try:
                    return _proved(claim, domain, batch, seed, digits, slope, seconds)
                except NotProvedError as error:
                    reason = str(error)
    raise NotProvedError(reason)


def _is_free(domain: Domain, name: str, place: tuple[int, ...]) -> bool:
    """Whether an entry varies by itself, and its segment to zero lies in the domain."""
    linked = {entry_name(n, p) for n, p, _ in domain.links.values()} | domain.links.keys()
    where = domain.sets.get(name)
    return (
        name in domain.shapes
        and place in set(np.ndindex(domain.shapes[name]))
        and bool(np.isnan(domain.fixed[name][place]))
        and entry_name(name, place) not in linked
        and (where is None or (where.kind == INTERVAL and where.ends[0] <= 0 <= where.ends[1]))
    )


def _slopes(claim: Claim, domain: Domain, batch: Mapping[str, Any]) -> Iterator[Slope]:
    """Coordinates along which the draws do not contradict a proof."""
    places = [
        (name, place)
        for name, shape in domain.shapes.items()
        for place in np.ndindex(shape)
        if np.prod(shape) <= _MOST_ENTRIES and _is_free(domain, name, place)
    ]

    def gap(instance: Mapping[str, Any]) -> Any:
        sides = claim.sides(instance, {})
        return jnp.asarray(sides.left, dtype=float) - jnp.asarray(sides.right, dtype=float)

    arrays = {n: jnp.asarray(v) for n, v in batch.items() if v.dtype.kind in "biuf"}
    for name, place in places[:_MOST_COORDINATES]:
        values = []
        for order, at_zero in ((0, True), (1, True), (1, False), (2, False)):
            function = Slope(name, place, 2).transform(order, at_zero)(gap)
            values.append(np.asarray(jax.vmap(function)(arrays)))
        base, first, slope, curvature = values
        if not (base <= _NEAR).all():
            continue
        if (slope <= _NEAR).all():
            yield Slope(name, place, 1)
        if (np.abs(first) <= _NEAR).all() and (curvature <= _NEAR).all():
            yield Slope(name, place, 2)


def _proved(
    claim: Claim,
    domain: Domain,
    batch: Mapping[str, Any],
    seed: int,
    digits: int,
    slope: Slope,
    seconds: float,
) -> Proof:
    domain = _smooth(claim, domain, batch, seed)
    trees = Trees()
    statements = _trees(claim, domain, batch, slope, {}, trees, seconds)
    for control in claim.controls:
        if control.changes and control.expect is Outcome.VIOLATED:
            try:
                _trees(claim, domain, batch, slope, control.changes, Trees(), seconds)
            except NotProvedError:
                continue
            raise NotProvedError(f"the control '{control.description}' would be proved too")
    return confirmed_proof(
        claim,
        SQUARES,
        domain.sentence(everywhere=True),
        domain.document(),
        _TRUSTED,
        {
            "digits": digits,
            "seed": seed,
            "slope": [slope.name, list(slope.place), slope.depth],
            "statements": statements,
            "squares": trees.documents,
        },
        lambda proof: recheck_slopes(claim, proof, seed=seed + 1),
        CERTIFICATE,
    )


def _smooth(claim: Claim, domain: Domain, batch: Mapping[str, Any], seed: int | None) -> Domain:
    """The closed domain of sides that are smooth in it and that contains the draws of a seed."""
    cases, _, closed = cases_of(claim, domain, batch, {})
    if not closed.closed:
        raise NotProvedError("a side may jump")
    _refuse_singular(cases)
    if seed is not None:
        refuse_uncovered(claim, closed, cases, batch, seed)
    return closed


def _statements(
    claim: Claim,
    domain: Domain,
    batch: Mapping[str, Any],
    slope: Slope,
    changes: Mapping[str, Any],
) -> Iterator[tuple[SignedCase, bool]]:
    """The cases of all that is to be proved, and whether it has to vanish."""
    for order, at_zero in slope.statements():
        cases, *_ = cases_of(
            claim, domain, batch, changes, transform=slope.transform(order, at_zero)
        )
        if at_zero and order == 0:
            _refuse_singular(cases)
        for case in cases:
            yield case, at_zero and order > 0


def _trees(
    claim: Claim,
    domain: Domain,
    batch: Mapping[str, Any],
    slope: Slope,
    changes: Mapping[str, Any],
    trees: Trees,
    seconds: float,
) -> list[Any]:
    until, documents = time.process_time() + seconds, []
    for case, vanishes in _statements(claim, domain, batch, slope, changes):
        if vanishes and any(case.goals):
            raise NotProvedError("a derivative does not vanish at zero")
        entries = [trees.tree(case, goal, until) for goal in case.goals]
        documents.append({"signs": dict(case.signs), "entries": entries})
    return documents


def _refuse_singular(cases: tuple[SignedCase, ...]) -> None:
    """Refuse sides that may be infinite or not smooth somewhere in the domain."""
    for case in cases:
        if case.signs:
            raise NotProvedError("a side may have a kink")
        logs = [atom.meaning for atom in case.field.atoms if atom.kind == "log"]
        for a in (*case.field.poles, *logs):
            if not _never_vanishes(case.field, a):
                raise NotProvedError("a side may be infinite")


def _never_vanishes(field: Field, a: Polynomial) -> bool:
    signs = {c > 0 for c in a.values()}
    if len(signs) != 1:
        return False
    positive = a if True in signs else {term: -c for term, c in a.items()}
    return Functions(field).never_vanishes(positive)


def recheck_slopes(claim: Claim, proof: Proof, *, seed: int = 0) -> str:
    """Expand the stored squares of all derivatives, and evaluate a few draws in digits.

    Returns:
        Why the proof is not confirmed; empty where it is.
    """
    certificate = proof.certificate
    name, place, depth = certificate["slope"]
    slope = Slope(name, tuple(place), depth)
    with jax.enable_x64(True), np.errstate(all="ignore"):
        try:
            batch, read = read_draws(claim, certificate["seed"])
            domain = domain_for(claim, batch, read, certificate["seed"], certificate["digits"])
            if domain.document() != proof.where or depth not in (1, 2) or claim.assumptions:
                return "its sampler declares another domain now"
            if not _is_free(domain, name, tuple(place)):
                return "its coordinate is not free now"
            domain = _smooth(claim, domain, batch, seed=None)
            statements = list(_statements(claim, domain, batch, slope, {}))
        except NotProvedError as reason:
            return str(reason)
        if len(statements) != len(certificate["statements"]):
            return "it has other cases now"
        for (case, vanishes), document in zip(statements, certificate["statements"], strict=True):
            if dict(case.signs) != document["signs"] or (vanishes and any(case.goals)):
                return "it has other cases now"
            if len(case.goals) != len(document["entries"]):
                return "its sides have other shapes now"
            for goal, tree in zip(case.goals, document["entries"], strict=True):
                if why := disagreement(case, goal, tree, certificate["squares"]):
                    return why
        return disagreement_in_digits(claim, claim.draw(seed, claim.count))
