r"""Proofs of inequalities by sums of squares, for all real or positive numbers.

In each case of its signs (`attlas.verify.proofs.signed_polynomials`) right - left is brought to
polynomials that must not be negative; square roots are taken out one by one, by squaring. Each
polynomial, times 1 or a sum of squares of variables, is written as weighted squares times
constraints (`attlas.verify.proofs.gram`). These squares are the certificate: they are expanded and
compared in fractions, without the solver that they came from.
"""

import itertools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from attlas.claims.claim import Claim, Control
from attlas.claims.kinds.inequality import Inequality
from attlas.claims.proof import SQUARES, Proof
from attlas.claims.verdict import Outcome
from attlas.verify.digits.confirm import confirmed
from attlas.verify.proofs.confirmed_proof import CERTIFICATE, confirmed_proof
from attlas.verify.proofs.elements import NotProvedError
from attlas.verify.proofs.functions import OpaqueError
from attlas.verify.proofs.guard import refuse_uncovered
from attlas.verify.proofs.identities import program_of, read_by
from attlas.verify.proofs.parametrisations import TURNED, Parametrisation
from attlas.verify.proofs.rotations import groups, is_rotation_invariant
from attlas.verify.proofs.signed_polynomials import SignedCase, SignedExpansion
from attlas.verify.proofs.square_trees import Trees, disagreement
from attlas.verify.proofs.symbols import Domain, domain_of

SECONDS = 15.0
"""Seconds of a processor for the semidefinite programs of one claim."""
_CHECKED = 3
_DRAWS = 512
"""Draws in which distributions, ends of intervals and other sets are recognised."""
ENDED = {"it takes too long", "its expressions have too many terms"}
"""Reasons for which sets are not tried: their expressions have more terms."""
TRUSTED = (
    "the tracing of JAX, the exact arithmetic and the rules of attlas.verify.proofs, "
    "log x <= x - 1, and the expansion of squares in fractions; no solver; a constant of the "
    "program that is the float nearest to a fraction with a denominator of at most 1000, or to the "
    "root of one, stands for it"
)
_JUMPS = frozenset(
    {"lt", "le", "gt", "ge", "eq", "ne", "sign", "floor", "ceil", "round", "select_n", "cond"}
)
"""Operations by which a side may be discontinuous."""


def proved_by_squares(claim: Claim, *, seed: int = 0, seconds: float = SECONDS) -> Proof:
    r"""Prove an inequality for all numbers of the signs, or of the sets, that its sampler draws.

    Args:
        seconds: seconds of a processor for the semidefinite programs of one domain.

    Raises:
        NotProvedError: says why not.

    Examples:
        >>> import jax.numpy as jnp
        >>> from attlas.claims.claim import Control
        >>> from attlas.claims.statement import inequality
        >>> draw = lambda rng, count: {"x": rng.normal(size=(count, 3))}
        >>> @inequality(sample=draw, controls=[Control("half", factor=0.5)])
        ... def norms(x, *, factor=1.0):
        ...     r"$$\lVert x \rVert_1 \le \sqrt 3 \lVert x \rVert$$"
        ...     return jnp.abs(x).sum(), factor * jnp.sqrt(3) * jnp.linalg.norm(x)
        >>> proved_by_squares(norms).sentence()
        'proved by sums of squares for all real x of shape (3,), where both sides are defined'
    """
    if type(claim.kind.rule) is not Inequality or claim.backend == "numpy":
        raise NotProvedError("sums of squares are for inequalities in JAX")
    if claim.expect.outcome is not Outcome.SUPPORTED:
        raise NotProvedError("it is expected to be violated")
    with jax.enable_x64(True), np.errstate(all="ignore"):
        return _on_domains(claim, seed, seconds)


def _on_domains(claim: Claim, seed: int, seconds: float) -> Proof:
    """A proof on a domain that the draws declare, up to one rotation or of signs alone first."""
    batch, read = read_draws(claim, seed)
    reasons: list[str] = []
    rotated = ""
    if (domain := up_to_rotation(claim, batch, read)) is not None:
        try:
            return _proved(claim, domain, batch, seed, {"rotated": True}, seconds)
        except NotProvedError as reason:
            rotated = str(reason)
    tried: list[Domain] = []
    for discrete, digits in ((False, 0), (False, 1), (False, 2), (True, 0)):
        if digits and ENDED & {*reasons, rotated}:
            continue
        try:
            domain = domain_for(claim, batch, read, seed, digits, discrete)
            if (discrete and domain.values == ({},)) or (digits and not domain.sets):
                continue
            if any(domain.sets and domain.sets == earlier.sets for earlier in tried):
                continue
            tried.append(domain)
            choice = {"discrete": discrete, **({"digits": digits} if digits else {})}
            return _proved(claim, domain, batch, seed, choice, seconds)
        except NotProvedError as reason:
            reasons.append(str(reason))
    text = "; on sets: ".join(dict.fromkeys(reasons[:2]))
    raise NotProvedError(f"{text}; up to a rotation: {rotated}" if rotated not in text else text)


def read_draws(claim: Claim, seed: int) -> tuple[dict[str, Any], set[str]]:
    """The draws of a claim, and the arrays that its sides read.

    Raises:
        NotProvedError: if its sampler computes the sides.
    """
    batch = dict(claim.draw(seed, claim.count))
    if {"left", "right"} <= batch.keys():
        raise NotProvedError("its sides are computed outside of its program")
    return batch, read_by(claim, {name: value[0] for name, value in batch.items()})


def domain_for(
    claim: Claim,
    batch: Mapping[str, Any],
    read: set[str],
    seed: int,
    digits: int,
    discrete: bool = False,
) -> Domain:
    """The domain of draws, of signs alone or with the sets that many draws of a seed lie in.

    Args:
        digits: digits of the ends of intervals, 0 for signs alone.
    """
    wide = claim.draw(seed, max(_DRAWS, claim.count)) if digits else None
    return domain_of(batch, read, discrete, wide, digits)


def up_to_rotation(claim: Claim, batch: Mapping[str, Any], read: set[str]) -> Domain | None:
    """The domain of signs with vectors up to one rotation, None if the sides depend on the axes."""
    if claim.assumptions:
        return None
    domain = domain_of(batch, read, discrete=False)
    free = {
        name: shape
        for name, shape in domain.shapes.items()
        if domain.signs[name] == 0 and np.isnan(domain.fixed[name]).all()
    }
    instance = {name: value[0] for name, value in batch.items()}
    if domain.links or domain.values != ({},):
        return None
    for vectors in groups(free):
        program = program_of(claim, instance, {})
        if is_rotation_invariant(program, instance, vectors):
            rows = [math.prod(domain.shapes[name][:-1]) for name in vectors]
            sets = {
                name: Parametrisation(TURNED, row=sum(rows[:k])) for k, name in enumerate(vectors)
            }
            return replace(domain, sets=sets)
    return None


def _proved(
    claim: Claim,
    domain: Domain,
    batch: Mapping[str, Any],
    seed: int,
    choice: Mapping[str, Any],
    seconds: float,
) -> Proof:
    cases, split, domain = cases_of(claim, domain, batch, {})
    if "rotated" in choice and not domain.closed:
        raise NotProvedError("a side may jump where vectors are dependent")
    refuse_uncovered(claim, domain, cases, batch, seed, assumed=True)
    trees, until = Trees(), time.process_time() + seconds
    certificates = [[trees.tree(case, goal, until) for goal in case.goals] for case in cases]
    for control in claim.controls:
        if control.changes and control.expect is Outcome.VIOLATED:
            _refuse_control(claim, domain, batch, control, seconds)
    certificate = {
        **choice,
        "seed": seed,
        "split": split,
        "cases": [
            {"signs": dict(case.signs), "entries": entries}
            for case, entries in zip(cases, certificates, strict=True)
        ],
        "squares": trees.documents,
    }
    return confirmed_proof(
        claim,
        SQUARES,
        domain.sentence(not any(case.excluded for case in cases))
        + (" and its assumptions hold" if claim.assumptions else ""),
        domain.document(),
        TRUSTED,
        certificate,
        lambda proof: recheck_squares(claim, proof, seed=seed + 1),
        CERTIFICATE,
    )


def cases_of(
    claim: Claim,
    domain: Domain,
    batch: Mapping[str, Any],
    changes: Mapping[str, Any],
    split: bool | None = None,
    transform: Callable[[Any], Any] | None = None,
) -> tuple[tuple[SignedCase, ...], bool, Domain]:
    """The cases of signs with their polynomials, how they came about, and the domain.

    What continuity covers is not excluded, and the domain is closed then. Maxima that cancel, as
    those in a softmax do, need no cases.

    Args:
        split: whether a maximum is one of its operands, by cases; None if only where it must be.
        transform: a map from left - right to the function that must not be positive.
    """
    instance = {name: value[0] for name, value in batch.items()}
    expansion = SignedExpansion(claim, domain, instance, changes, claim.name, transform=transform)
    expansion.split_extremes = bool(split)
    try:
        cases = expansion.signed_cases()
    except OpaqueError as reason:
        if split is not None:
            raise NotProvedError(f"a case depends on {reason}") from reason
        return cases_of(claim, domain, batch, changes, True, transform)
    if expansion.conditional or _operations(expansion.program) & _JUMPS:
        return cases, bool(split), domain
    closed = tuple(replace(case, excluded={}) for case in cases)
    return closed, bool(split), replace(domain, closed=True)


def _refuse_control(
    claim: Claim, domain: Domain, batch: Mapping[str, Any], control: Control, seconds: float
) -> None:
    """Refuse a proof if that of a false statement would be found too."""
    try:
        (cases, *_), trees = cases_of(claim, domain, batch, control.changes), Trees()
        until = time.process_time() + seconds
        for case in cases:
            for goal in case.goals:
                trees.tree(case, goal, until)
    except NotProvedError:
        return
    raise NotProvedError(f"the control '{control.description}' would be proved too")


def recheck_squares(claim: Claim, proof: Proof, *, seed: int = 0) -> str:
    """Expand the stored squares in fractions, and evaluate a few draws in digits.

    Returns:
        Why the proof is not confirmed; empty where it is.
    """
    with jax.enable_x64(True), np.errstate(all="ignore"):
        certificate = proof.certificate
        origin, digits = certificate.get("seed", 0), certificate.get("digits", 0)
        try:
            batch, read = read_draws(claim, origin)
            if "rotated" in certificate:
                domain = up_to_rotation(claim, batch, read)
            else:
                discrete = certificate["discrete"]
                domain = domain_for(claim, batch, read, origin, digits, discrete)
            if domain is None or domain.document() != proof.where:
                return "its sampler declares another domain now"
            # Proofs from before maxima could stay as they are have no word for it.
            cases, *_ = cases_of(claim, domain, batch, {}, certificate.get("split", True))
        except NotProvedError as reason:
            return str(reason)
        stored = proof.certificate["cases"]
        if [dict(case.signs) for case in cases] != [document["signs"] for document in stored]:
            return "it has other cases now"
        for case, document in zip(cases, stored, strict=True):
            if len(document["entries"]) != len(case.goals):
                return "its sides have other shapes now"
            for goal, tree in zip(case.goals, document["entries"], strict=True):
                if why := disagreement(case, goal, tree, proof.certificate["squares"]):
                    return why
        return disagreement_in_digits(claim, claim.draw(seed, claim.count))


def disagreement_in_digits(claim: Claim, batch: Mapping[str, Any]) -> str:
    """Why a few instances in digits do not confirm a proof; empty where they do."""
    instances = ({name: value[k] for name, value in batch.items()} for k in range(claim.count))
    held = (i for i in instances if all(bool(a.holds(i)) for a in claim.assumptions))
    for instance in itertools.islice(held, _CHECKED):
        confirmation = confirmed(claim, instance)
        if confirmation.violates:
            return confirmation.reason
    return ""


def _operations(program: Any) -> set[str]:
    """Names of the operations of a program and of those in it."""
    names = set()
    for equation in getattr(program, "jaxpr", program).eqns:
        names.add(equation.primitive.name)
        for value in equation.params.values():
            for part in value if isinstance(value, tuple | list) else (value,):
                if hasattr(part, "eqns") or hasattr(part, "jaxpr"):
                    names |= _operations(part)
    return names
