r"""Proofs over a finite set of instances: the sides are enclosed at each of them.

The set is what the draws declare (`attlas.verify.proofs.finite_sets`). Whole numbers are exact in
the intervals of `attlas.verify.proofs.sharp_intervals`, so that a statement whose sides are equal
at some instance is decided there, too. Sides are compared as real numbers, without any allowance
for rounding, at all instances at which no assumption certainly fails.
"""

import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Claim
from attlas.claims.kinds.inequality import Entrywise
from attlas.claims.proof import ENUMERATION, Proof
from attlas.claims.verdict import Outcome
from attlas.core.names import parameters
from attlas.verify.digits.confirm import confirmed
from attlas.verify.digits.interpreter import evaluate
from attlas.verify.digits.precision import Unconfirmed
from attlas.verify.interval_rules import as_interval, as_truth
from attlas.verify.intervals import Undecided
from attlas.verify.proofs.confirmed_proof import confirmed_proof
from attlas.verify.proofs.elements import Field, NotProvedError
from attlas.verify.proofs.enclosure import Enclosure
from attlas.verify.proofs.exact_rules import Exact
from attlas.verify.proofs.finite_sets import FiniteSet, NoFiniteSetError, finite_set
from attlas.verify.proofs.functions import CaseError, Functions, OpaqueError, UndefinedError
from attlas.verify.proofs.identities import read_by
from attlas.verify.proofs.nodes import Node
from attlas.verify.proofs.plain_program import plain
from attlas.verify.proofs.points import Point, PointError

_AT_ONCE = 512
"""Instances that are enclosed at once."""
SECONDS, _AGAIN = 20.0, 20.0
"""Seconds of a processor for an enumeration; how often as many for one that ended somewhere."""
_ONE = 5.0
"""Seconds of a processor for one instance in fractions."""
_OTHER_SEEDS = 2
_CHECKED = 4
"""Instances that are evaluated in digits."""
_TRUSTED = (
    "the tracing of JAX, the outward rounding of +, -, *, / and roots of IEEE 754, the enumeration "
    "of attlas.verify.proofs and whole numbers that a sampler lists; where intervals leave "
    "equality open, its fractions, in which a float stands for the fraction next to it with a "
    "denominator of at most 1000"
)


def proved_by_enumeration(claim: Claim, *, seed: int = 0, seconds: float = SECONDS) -> Proof:
    r"""Prove an inequality or an identity at each instance of a finite set.

    Args:
        seed: the draws follow from it.
        seconds: seconds of a processor for the statement, and for each control.

    Raises:
        NotProvedError: says why not.

    Examples:
        >>> from attlas.claims.claim import Control
        >>> from attlas.claims.statement import inequality
        >>> bits = lambda rng, count: {"u": rng.integers(0, 2, size=(count, 3))}
        >>> @inequality(sample=bits, controls=[Control("halved", c=0.5)], not_attacked="whole")
        ... def largest(u, *, c=1.0):
        ...     r"$$\max_i u_i \le \sum_i u_i$$"
        ...     return jnp.max(u), c * jnp.sum(u.astype(float))
        >>> proved_by_enumeration(largest).sentence()
        'proved by enumeration for all u of shape (3,) with entries among 0, 1: 8 instances'
    """
    if not isinstance(claim.kind.rule, Entrywise) or claim.kind.rule.single_instance:
        raise NoFiniteSetError("only inequalities and identities are enumerated")
    if claim.backend == "numpy":
        raise NoFiniteSetError("its function is plain NumPy")
    if claim.expect.outcome is not Outcome.SUPPORTED:
        raise NoFiniteSetError("it is expected to be violated")
    with jax.enable_x64(True), np.errstate(all="ignore"):
        batch = _read_of(claim, seed)
        others = [_read_of(claim, seed + 1 + k) for k in range(_OTHER_SEEDS)]
        where = finite_set(
            batch, lambda: _Sides(claim, batch, {}).one, others, bool(claim.enumerates)
        )
        _refuse_failing(claim, where, {}, seconds)
        _refuse_controls(claim, where, seconds)
    shapes = {name: list(array.shape[1:]) for name, array in batch.items()}
    return confirmed_proof(
        claim,
        ENUMERATION,
        where.sentence() + (" that meet its assumptions" if claim.assumptions else ""),
        {"shapes": shapes},
        _TRUSTED,
        {**where.document(), **({"seconds": seconds} if seconds != SECONDS else {})},
        lambda proof: _in_digits(claim, where, seed),
    )


def _read_of(claim: Claim, seed: int) -> dict[str, np.ndarray]:
    """The drawn arrays that sides or assumptions read."""
    batch = claim.draw(seed, claim.count)
    if {"left", "right"} <= batch.keys():
        raise NoFiniteSetError("its sides are computed outside of its program")
    read = read_by(claim, {name: value[0] for name, value in batch.items()})
    for assumption in claim.assumptions:
        read |= set(parameters(assumption.predicate).arrays) & batch.keys()
    for name in sorted(read):
        if batch[name].dtype.kind not in "biuf":
            raise NoFiniteSetError(f"'{name}' is no array of numbers")
    if not read:
        raise NoFiniteSetError("its sides read no array")
    return {name: np.asarray(batch[name]) for name in sorted(read)}


class _Sides:
    """The sides and assumptions of a claim as programs of one instance, and of many."""

    def __init__(self, claim: Claim, batch: Mapping[str, np.ndarray], changes: Mapping[str, Any]):
        """Trace the programs; what the sides do not read is as first drawn."""
        names = sorted(batch)
        first = {name: jnp.asarray(value[0]) for name, value in claim.draw(0, claim.count).items()}

        def outputs(*arrays: Any) -> list[Any]:
            instance = {**first, **dict(zip(names, arrays, strict=True))}
            sides = claim.sides(instance, changes)
            left, right = (jnp.asarray(side, dtype=float) for side in (sides.left, sides.right))
            holds = [jnp.asarray(a.holds(instance), dtype=bool) for a in claim.assumptions]
            return [jnp.ravel(left - right), *holds]

        self.one = jax.make_jaxpr(outputs)(*(jnp.asarray(batch[name][0]) for name in names))
        self._names, self._types = names, {name: batch[name].dtype for name in names}

    @cached_property
    def _many(self) -> Any:
        ones = [
            jnp.ones((_AT_ONCE, *v.aval.shape), dtype=v.aval.dtype) for v in self.one.jaxpr.invars
        ]
        return jax.make_jaxpr(jax.vmap(lambda *arrays: plain(self.one, *arrays)))(*ones)

    def enclosed(self, instances: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
        """Ends of left - right, and where no assumption certainly fails."""
        inputs = [instances[name].astype(self._types[name]) for name in self._names]
        gap, *holds = Enclosure().values(self._many, inputs)
        ends = as_interval(gap)
        may = [np.broadcast_to(as_truth(h).may, _AT_ONCE) for h in holds]
        return ends.low, ends.high, np.all([np.ones(_AT_ONCE, dtype=bool), *may], axis=0)

    def refuse_in_fractions(self, instance: Mapping[str, Any], equality: bool) -> None:
        """Compare the sides of one instance in rational numbers, where they are nearly equal.

        Raises:
            NotProvedError: if left - right is not zero, or no fraction and not zero.
        """
        field = Field(Point("0"), until=time.process_time() + _ONE, exact=True)
        exact = Exact(Functions(field))
        inputs = [np.asarray(instance[name], dtype=self._types[name]) for name in self._names]
        at = _text_of(instance)
        try:
            gap = exact.exact(evaluate(exact, self.one, inputs)[0])
        except (Unconfirmed, CaseError, UndefinedError, OpaqueError, PointError) as reason:
            raise NotProvedError(f"intervals do not decide it at {at}") from reason
        for value in gap.ravel():
            if not isinstance(value, Node) or (value.number is None and not value.is_zero()):
                raise NotProvedError(f"neither intervals nor fractions decide it at {at}")
            if value.number is not None and (value.number != 0 if equality else value.number > 0):
                raise _ViolationError(f"it fails at {at}")


def _refuse_failing(
    claim: Claim, where: FiniteSet, changes: Mapping[str, Any], seconds: float
) -> None:
    """Refuse a statement that an instance does not certainly fulfil.

    Raises:
        NotProvedError: says at which; `_ViolationError` if it certainly fails there.
    """
    until = time.process_time() + seconds
    equality, tried = claim.kind.rule.equality, 0
    sides = None
    for instances in where.batches(_AT_ONCE):
        if time.process_time() > until:
            raise NotProvedError(f"it takes more than {seconds:g} seconds")
        try:
            sides = sides or _Sides(claim, instances, changes)
            low, high, may = sides.enclosed(instances)
        except Undecided as reason:
            raise NotProvedError(str(reason)) from reason
        tried += int(may.sum())
        fails = (low > 0) | (high < 0) if equality else low > 0
        if (fails.any(axis=1) & may).any():
            k = int(np.argmax(fails.any(axis=1) & may))
            at = _text_of({name: v[k] for name, v in instances.items()})
            raise _ViolationError(f"it fails at {at}")
        open_ones = ((low != 0) | (high != 0) if equality else ~(high <= 0)).any(axis=1) & may
        for k in np.flatnonzero(open_ones):
            if time.process_time() > until:
                raise NotProvedError(f"it takes more than {seconds:g} seconds")
            sides.refuse_in_fractions({name: v[k] for name, v in instances.items()}, equality)
    if not tried:
        raise NotProvedError("its assumptions hold at no instance")


class _ViolationError(NotProvedError):
    """The statement certainly fails at an instance."""


def _text_of(instance: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name} = {np.asarray(v).tolist()}" for name, v in instance.items())
    return text if len(text) <= 160 else f"{text[:157]}..."


def _refuse_controls(claim: Claim, where: FiniteSet, seconds: float) -> None:
    """Refuse a set in which a control that stands for a false statement is not violated."""
    for control in claim.controls:
        if control.expect is not Outcome.VIOLATED:
            continue
        if control.sample is not None:
            batch = claim.draw(0, claim.count, control)
            names = where.listed or {**where.values, **where.fixed}
            if not control.changes and where.contains({n: np.asarray(batch[n]) for n in names}):
                text = f"the control '{control.description}' has instances in the set"
                raise NotProvedError(text)
        if not control.changes:
            continue
        try:
            _refuse_failing(claim, where, control.changes, seconds)
        except _ViolationError:
            continue
        except NotProvedError as reason:
            text = f"the control '{control.description}' is not refuted: {reason}"
            raise NotProvedError(text) from reason
        raise NotProvedError(f"the control '{control.description}' would be proved too")


def recheck_enumeration(claim: Claim, proof: Proof, *, seed: int = 0) -> str:
    """Enumerate the instances again, and evaluate some of them in digits.

    Returns:
        Why the proof is not confirmed; empty where it is.
    """
    with jax.enable_x64(True), np.errstate(all="ignore"):
        try:
            batch = _read_of(claim, 0)
            others = [_read_of(claim, 1 + k) for k in range(_OTHER_SEEDS)]
            where = finite_set(
                batch, lambda: _Sides(claim, batch, {}).one, others, bool(claim.enumerates)
            )
            stored = dict(proof.certificate)
            seconds = stored.pop("seconds", SECONDS)
            if where.document() != stored:
                return "its sampler draws from another set now"
            if not where.contains(_read_of(claim, seed)):
                return f"its sampler draws outside of that set at seed {seed}"
            _refuse_failing(claim, where, {}, seconds * _AGAIN)
        except NotProvedError as reason:
            return str(reason)
    return _in_digits(claim, where, seed)


def _in_digits(claim: Claim, where: FiniteSet, seed: int) -> str:
    """Evaluate random instances in digits, which share no arithmetic with the enumeration."""
    rng = np.random.default_rng(seed)
    with jax.enable_x64(True):
        first = {name: np.asarray(v[0]) for name, v in claim.draw(0, claim.count).items()}
        instances = next(where.batches(min(where.count(), 4096)))
        for k in rng.integers(0, len(next(iter(instances.values()))), _CHECKED):
            row = {n: np.asarray(v[k], dtype=first[n].dtype) for n, v in instances.items()}
            instance = {name: on_device(value) for name, value in {**first, **row}.items()}
            if not all(bool(a.holds(instance)) for a in claim.assumptions):
                continue
            confirmation = confirmed(claim, instance)
            if confirmation.violates:
                return confirmation.reason
    return ""
