"""Proofs of claims, and the reason where there is none."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from attlas.claims.claim import Claim
from attlas.claims.proof import EVALUATION, EXPANSION, PATHS, Proof
from attlas.claims.verdict import Outcome
from attlas.verify.proofs.boxes import proved_on_box
from attlas.verify.proofs.confirmed_proof import confirmed_proof
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.enumeration import proved_by_enumeration
from attlas.verify.proofs.finite_sets import NoFiniteSetError
from attlas.verify.proofs.guard import refuse_uncovered
from attlas.verify.proofs.identities import read_by, vanishes
from attlas.verify.proofs.paths import SECONDS, digest_of, proved_paths
from attlas.verify.proofs.points import BITS
from attlas.verify.proofs.recheck import recheck
from attlas.verify.proofs.slopes import NO_SIGN, proved_by_slopes
from attlas.verify.proofs.squares import proved_by_squares
from attlas.verify.proofs.symbols import Domain, domain_of
from attlas.verify.proofs.witnesses import proved_at_witness
from attlas.verify.proofs.worst_cases import proved_worst_case
from attlas.verify.registry import refuse_failing_claim

_TRUSTED = {
    EXPANSION: "the tracing of JAX, and the exact arithmetic and the rules for exponentials, "
    "logarithms, roots, sines, matrices and signs of attlas.verify.proofs; a constant of the "
    "program that is the float nearest to a fraction with a denominator of at most 1000 stands "
    "for that fraction, and one that is the root of such a fraction, or the quotient of the roots "
    "of its terms, or a fraction times or over the root of a whole number, in floats for that root",
}
_TRUSTED[EVALUATION] = (
    f"{_TRUSTED[EXPANSION]}; and a random point modulo a random prime of {BITS} bits or more"
)
_TRUSTED[PATHS] = (
    f"{_TRUSTED[EVALUATION]}; that no side depends on the direction of an eigenvector; and the "
    "signs of compared expressions at drawn instances, in many digits"
)


@refuse_failing_claim
def prove(claim: Claim, *, seed: int = 0, seconds: float | None = None) -> Proof | str:
    """Prove a claim on the domain that its sampler's draws declare, or at a stored witness.

    A claim with a witness is proved to fail there, or to hold if it is an existence. A bound on a
    worst case is proved by exact multipliers of its semidefinite program. An inequality is proved
    by sums of squares for all numbers, or on a box of few by branch and bound; a statement over a
    finite set is proved at each of its instances. Of an identity
    neither the claim nor one of its controls is evaluated in floats. A proof counts only if every
    drawn instance lies in a case that is proved, no control is proved, and evaluations in digits
    at other points agree.

    Args:
        seed: it gives the draws and the random points.
        seconds: seconds of a processor for each search of a method, by default 15 for sums of
            squares, 5 for a box, 20 for a finite set and 90 for an identity along its draws; what
            expands expressions has its own.

    Returns:
        The proof, or why there is none, method by method.

    Examples:
        >>> from attlas.claims.claim import Control
        >>> from attlas.claims.statement import identity
        >>> draw = lambda rng, count: {"x": rng.normal(size=count)}
        >>> @identity(sample=draw, controls=[Control("no 2x", factor=0.0)])
        ... def square(x, *, factor=2.0):
        ...     "$$(x + 1)^2 = x^2 + 2x + 1$$"
        ...     return (x + 1) ** 2, x**2 + factor * x + 1
        >>> prove(square).sentence()
        'proved by expansion for all real x, where both sides are defined'
    """
    by_object = proved_at_witness if claim.witness is not None else None
    if claim.worst_case is not None:
        by_object = proved_worst_case
    if by_object is not None:
        try:
            return by_object(claim)
        except NotProvedError as reason:
            return str(reason)
    if claim.count < 1:
        return "it draws no instance"
    limit = {} if seconds is None else {"seconds": seconds}
    try:
        return proved_by_enumeration(claim, seed=seed, **limit)
    except NoFiniteSetError:
        listed = ""
    except NotProvedError as reason:
        listed = f"by enumeration: {reason}"
    result = _proved_for_all(claim, seed, limit)
    return f"{result}; {listed}" if isinstance(result, str) and listed else result


def _proved_for_all(claim: Claim, seed: int, limit: Mapping[str, float]) -> Proof | str:
    if not claim.kind.rule.equality:
        return _proved_inequality(claim, seed, limit)
    if claim.expect.outcome is not Outcome.SUPPORTED:
        return "it is expected to be violated"
    if claim.backend == "numpy":
        return "its function is plain NumPy"
    with jax.enable_x64(True):
        batch = dict(claim.draw(seed, claim.count))
        if {"left", "right"} <= batch.keys():
            return "its sides are computed outside of its program"
        try:
            return _proved(claim, batch, seed, limit)
        except NotProvedError as reason:
            return str(reason)


def _proved_inequality(claim: Claim, seed: int, limit: Mapping[str, float]) -> Proof | str:
    try:
        return proved_by_squares(claim, seed=seed, **limit)
    except NotProvedError as reason:
        algebra = str(reason)
    try:
        return proved_by_slopes(claim, seed=seed, **limit)
    except NotProvedError as reason:
        slopes = "" if str(reason) in (NO_SIGN, algebra) else f"; by derivatives: {reason}"
    try:
        return proved_on_box(claim, seed=seed, **limit)
    except NotProvedError as reason:
        text = str(reason) if str(reason) == algebra else f"{reason}; by squares: {algebra}"
        return f"{text}{slopes}"


def _proved(claim: Claim, batch: Mapping[str, Any], seed: int, limit: Mapping[str, float]) -> Proof:
    instance = {name: value[0] for name, value in batch.items()}
    read = read_by(claim, instance)
    reasons = []
    for discrete in (False, True):
        try:
            domain = domain_of(batch, read, discrete)
            if discrete and domain.values == ({},):
                break
            return _on(claim, domain, instance, batch, seed)
        except NotProvedError as reason:
            reasons.append(str(reason))
    try:
        return proved_along_draws(claim, batch, read, seed, **limit)
    except NotProvedError as reason:
        text = reasons[0] if str(reason) == reasons[0] else f"{reasons[0]}; along draws: {reason}"
        raise NotProvedError(text) from reason


@refuse_failing_claim
def proved_along_draws(
    claim: Claim,
    batch: Mapping[str, Any],
    read: set[str],
    seed: int,
    seconds: float = SECONDS,
) -> Proof:
    """Prove an identity on every path that a draw takes through its program.

    Args:
        batch: the draws of `seed`.
        read: the arrays that the sides read.
        seconds: seconds of a processor for the claim, and for each control.

    Raises:
        NotProvedError: says why not.
    """
    salt = f"{claim.name} {seed}"
    if strange := sorted(name for name in read if batch[name].dtype.kind not in "biuf"):
        raise NotProvedError(f"'{strange[0]}' is no array of numbers")
    rows, control_rows = _instances(batch), []
    for control in claim.controls:
        if control.sample is not None and not control.changes:
            control_rows += _instances(claim.draw(seed, claim.count, control))
    paths = proved_paths(claim, rows, control_rows, read, salt, seconds)
    bits = min(path.bits for path in paths) - len(paths).bit_length()
    if bits < 64:
        raise NotProvedError("its degree is too large for a random point")
    shapes = {name: np.shape(rows[0][name]) for name in sorted(read)}
    arrays = [f"{name} of shape {shape}" if shape else name for name, shape in shapes.items()]
    count = "the one path" if len(paths) == 1 else f"the {len(paths)} paths"
    return confirmed_proof(
        claim,
        PATHS,
        f"for all {', '.join(arrays)} on {count} of {len(rows)} draws: with their zeros, whole "
        "numbers and equal or opposite entries, wherever comparisons come out as theirs",
        {"shapes": {name: list(shape) for name, shape in shapes.items()}},
        _TRUSTED[PATHS],
        {"salt": salt, "bits": bits, "paths": len(paths), "digest": digest_of(paths)},
        lambda proof: recheck(claim, proof, seed=seed + 1),
    )


def _on(
    claim: Claim,
    domain: Domain,
    instance: Mapping[str, Any],
    batch: Mapping[str, Any],
    seed: int,
) -> Proof:
    salt = f"{claim.name} {seed}"
    cases = vanishes(claim, domain, instance, {}, salt)
    refuse_uncovered(claim, domain, cases, batch, seed)
    for control in claim.controls:
        if control.changes and _is_proved(claim, domain, instance, control.changes, salt):
            raise NotProvedError(f"the control '{control.description}' would be proved too")
    try:
        expanded = vanishes(claim, domain, instance, {}, salt, exact=True)
        refuse_uncovered(claim, domain, expanded, batch, seed)
        method, cases = EXPANSION, expanded
    except NotProvedError:
        method = EVALUATION
    certificate: dict[str, Any] = {
        "salt": salt,
        "cases": [{"signs": dict(c.signs), "excluded": sorted(c.excluded)} for c in cases],
    }
    if method == EVALUATION:
        certificate["bits"] = min(case.bits for case in cases)
        if certificate["bits"] < 64:
            raise NotProvedError("its degree is too large for a random point")
    everywhere = not any(case.excluded for case in cases)
    return confirmed_proof(
        claim,
        method,
        domain.sentence(everywhere),
        domain.document(),
        _TRUSTED[method],
        certificate,
        lambda proof: recheck(claim, proof, seed=seed + 1),
    )


def _is_proved(
    claim: Claim,
    domain: Domain,
    instance: Mapping[str, Any],
    changes: Mapping[str, Any],
    salt: str,
) -> bool:
    try:
        vanishes(claim, domain, instance, changes, salt)
    except NotProvedError:
        return False
    return True


def _instances(batch: Mapping[str, Any]) -> list[dict[str, Any]]:
    count = len(next(iter(batch.values())))
    return [{name: value[k] for name, value in batch.items()} for k in range(count)]
