"""Proofs of bounds on worst cases of first-order methods, and of their failure at a stored run.

A bound has exact multipliers of the interpolation conditions; it fails at a run whose conditions
hold exactly. Both are checked in fractions, without the solver that they came from.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from attlas.claims._worst_cases.certificate import certificate, proves
from attlas.claims._worst_cases.worst_points import (
    Run,
    belongs,
    measured,
    short_run,
    worst_points,
)
from attlas.claims.claim import Claim
from attlas.claims.first_order.problem import StatedBound
from attlas.claims.proof import PERFORMANCE, Proof
from attlas.claims.verdict import Outcome
from attlas.core.errors import UserError
from attlas.verify.proofs.confirmed_proof import CERTIFICATE, confirmed_proof
from attlas.verify.proofs.elements import NotProvedError

_TRUSTED = (
    "the interpolation conditions of Taylor, Hendrickx and Glineur (2017), and the fractions of "
    "Python with which attlas.claims.first_order adds and factorises; neither a solver nor JAX"
)


def proved_worst_case(claim: Claim) -> Proof:
    r"""A proof of a bound on a worst case, or that it fails where it is expected to.

    Raises:
        NotProvedError: says why not.

    Examples:
        >>> from attlas.claims.claim import Control
        >>> from attlas.claims.first_order.function_classes import SmoothConvex
        >>> from attlas.claims.first_order.methods import GradientDescent
        >>> from attlas.claims.worst_case import worst_case
        >>> @worst_case(
        ...     functions=SmoothConvex(L=1), method=GradientDescent([1]), measure="value",
        ...     controls=[Control("nine tenths", factor=Fraction(9, 10))],
        ... )
        ... def one_step(*, factor=1):
        ...     r"$$f(x_1) - f_\star \le L R^2 / 6$$"
        ...     return factor * Fraction(1, 6)
        >>> print(proved_worst_case(one_step).sentence())
        proved by performance estimation for gradient descent with steps 1 on all 1-smooth ...
    """
    stated = claim.worst_case
    if not isinstance(stated, StatedBound):
        raise NotProvedError("it states no bound on a worst case")
    try:
        run = worst_points(stated.problem)
    except UserError as error:
        raise NotProvedError(str(error)) from error
    reached, bound = measured(stated.problem, run), stated.value()
    if claim.expect.outcome is Outcome.VIOLATED:
        short = short_run(stated.problem, bound)
        if short is None:
            raise NotProvedError(f"no run exceeds the bound: the worst reaches {_digits(reached)}")
        return _failing(claim, stated, short)
    if reached > bound:
        raise NotProvedError(f"it is false: a run reaches {_digits(reached)}")
    for control in claim.controls:
        if control.expect is Outcome.VIOLATED and stated.value(control.changes) >= reached:
            raise NotProvedError(f"the control '{control.description}' would be proved too")
    multipliers = certificate(stated.problem, bound)
    if multipliers is None:
        raise NotProvedError(
            f"no exact multipliers are obtained for a bound so near to {_digits(reached)}"
        )
    domain = f"for {stated.problem.words()}, where a run reaches {_digits(reached)}"
    written = {name: str(multiplier) for name, multiplier in multipliers.items()}
    return _proof(claim, domain, {"bound": str(bound), "multipliers": written})


def _failing(claim: Claim, stated: StatedBound, run: Run) -> Proof:
    reached = measured(stated.problem, run)
    domain = f"to fail for {stated.problem.words()}, where a run reaches {_digits(reached)}"
    arrays = {"vectors": run.vectors.tolist(), "values": run.values.tolist()}
    return _proof(claim, domain, {"bound": str(stated.value()), **arrays})


def _proof(claim: Claim, domain: str, document: dict[str, Any]) -> Proof:
    return confirmed_proof(
        claim,
        PERFORMANCE,
        domain,
        {},
        _TRUSTED,
        document,
        lambda proof: recheck_worst_case(claim, proof),
        CERTIFICATE,
    )


def _digits(number: Fraction) -> str:
    return f"{float(number):.6g}"


def recheck_worst_case(claim: Claim, proof: Proof) -> str:
    """Check the stored multipliers, or the stored run, in fractions.

    Returns:
        Why the proof is not confirmed; empty where it is.
    """
    stated: StatedBound | None = claim.worst_case
    document = proof.certificate
    if stated is None:
        return "the claim states no bound on a worst case now"
    bound = stated.value()
    if Fraction(document["bound"]) != bound:
        return f"its bound is {bound} now"
    if "multipliers" in document:
        multipliers = {name: Fraction(text) for name, text in document["multipliers"].items()}
        return proves(stated.problem, bound, multipliers)
    run = Run(np.array(document["vectors"]), np.array(document["values"]))
    if not belongs(stated.problem, run):
        return "the stored run is none on a function of the class"
    return "" if measured(stated.problem, run) > bound else "the stored run keeps to the bound"
