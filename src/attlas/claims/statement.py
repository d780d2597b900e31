r"""Decorators that turn a function into a claim.

Positional parameters of the function are the arrays of one instance, read by name; keyword-only
parameters are what a control changes; the docstring is the statement between `$$`, or a sentence,
then a remark for the reader. The name comes from the function, the paper from the folder of
`attlas.claims`, elsewhere from the file. The engine makes the generator, works in float64, maps
the function over a batch and compiles it.

A check counts what it can notice. Thirty distinct instances support a claim, or all of a domain
whose size `enumerates` gives; a stored witness supports only an existence, or shows an erratum.
Each entry of stacked sides is a component that a control must violate; of those that are `alike`,
one statement at several places, more than half, and no other one is slacker by far. An identity
must notice a relative change of 1e-3 in each component. Each instance of a probability or
expectation is a trial, `independent` says what it draws anew, and copies and near-copies are
refused; an expectation stays within its range. Limits and rates have four scales, and no
assumption is NaN where it refuses.

Examples:
    The triangle inequality, from definition to verdict:

    >>> from attlas.claims.claim import Control, assume
    >>> import jax.numpy as jnp
    >>> def pairs(rng, count):
    ...     x = rng.normal(size=(count, 5))
    ...     return {"x": x, "y": x * rng.uniform(-1, 1, size=(count, 1))}
    >>> @inequality(
    ...     sample=pairs, search_over=("x", "y"), controls=[Control("half", factor=0.5)]
    ... )
    ... def triangle(x, y, *, factor=1.0):
    ...     r"$$\|x+y\| \le \|x\|+\|y\|$$"
    ...     norm = jnp.linalg.norm
    ...     return norm(x + y), factor * (norm(x) + norm(y))
    >>> triangle.name, triangle.kind.value, triangle.expect.outcome.value
    ('notebook/triangle', 'inequality', 'SUPPORTED')

    Checked on drawn instances with its control, then attacked; the witness of the best ratio is an
    instance that anyone can evaluate again. Without `search_over`, the random numbers move from
    which the sampler makes its instances, and nothing else needs to be said:

    >>> from attlas.verify.challenge import challenge, replay
    >>> from attlas.verify.check import check
    >>> report = check(triangle)
    >>> report.verdict.outcome.value, [c.verdict.outcome.value for c in report.controls]
    ('SUPPORTED', ['VIOLATED'])
    >>> found = challenge(triangle)
    >>> found.violated, found.ratio > 0.999
    (False, True)
    >>> abs(replay(triangle, dict(found.verdict.witness)).tightness - found.ratio) < 1e-9
    True

    A condition of the statement is an assumption; a map of named arrays brings a search back into
    its domain after each move:

    >>> def into_ball(x):
    ...     return {"x": x / jnp.maximum(1, jnp.linalg.norm(x))}
    >>> @inequality(
    ...     sample=lambda rng, count: {"x": rng.normal(size=(count, 5)) / 5},
    ...     assumptions=[assume(r"$\|x\| \le 1$", lambda x: jnp.linalg.norm(x) <= 1)],
    ...     search_over="x", project=into_ball, controls=[Control("cubed", power=3)],
    ... )
    ... def shorter(x, *, power=1):
    ...     r"$$\|x\|^2 \le \|x\|$$"
    ...     return jnp.linalg.norm(x) ** 2, jnp.linalg.norm(x) ** power
    >>> found = challenge(shorter)
    >>> found.violated, found.ratio > 0.999
    (False, True)

    A declared domain is all of these in one: it draws instances (no sampler is written where every
    array has a shape), is the assumption, and brings back what a search moves:

    >>> from attlas.claims.domains.vectors import Ball
    >>> @inequality(
    ...     domains=[Ball("x", 1.0, shape="n")], sizes={"n": 5},
    ...     controls=[Control("cubed", power=3)],
    ... )
    ... def declared(x, *, power=1):
    ...     r"$$\|x\|^2 \le \|x\|$$"
    ...     return jnp.linalg.norm(x) ** 2, jnp.linalg.norm(x) ** power
    >>> declared.assumptions[0].text, declared.search_over
    ('$\\|x\\|_{2} \\le 1$', ('x',))
    >>> challenge(declared, method="covariance", evaluations=640).ratio > 0.999
    True

    What is wrongly written fails when it is defined:

    >>> @inequality(sample=pairs, controls=[Control("half", scale=0.5)])
    ... def misspelt(x, y, *, factor=1.0):
    ...     r"$$\|x+y\| \le \|x\|+\|y\|$$"
    Traceback (most recent call last):
        ...
    attlas.core.errors.UserError: claim 'notebook/misspelt': control 'half' changes 'scale', ...
"""

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import numpy as np

from attlas.claims.claim import (
    Claim,
    Control,
    Expectation,
    Kind,
    Sides,
    Source,
    Status,
)
from attlas.claims.claim_maker import Decorator, Details, claim_maker
from attlas.claims.verdict import Outcome


def identity(
    locator: str = "", source: Source = Source.DERIVED, **details: Unpack[Details]
) -> Decorator:
    """A claim that two sides are equal; the function returns (left, right).

    Args:
        locator: where the statement stands; the function's name when empty.
        source: where our text of it comes from.
        **details: see `Details`.

    Returns:
        A decorator.
    """
    return claim_maker(Kind.IDENTITY, locator, source, details)


def inequality(
    locator: str = "", source: Source = Source.DERIVED, **details: Unpack[Details]
) -> Decorator:
    """A claim that left <= right, elementwise; the function returns (left, right).

    Args:
        locator: where the statement stands; the function's name when empty.
        source: where our text of it comes from.
        **details: see `Details`.

    Returns:
        A decorator.
    """
    return claim_maker(Kind.INEQUALITY, locator, source, details)


def existence(
    locator: str = "", source: Source = Source.DERIVED, **details: Unpack[Details]
) -> Decorator:
    """A claim that something exists; (left, right) with left <= right where it was found.

    Args:
        locator: where the statement stands; the function's name when empty.
        source: where our text of it comes from.
        **details: see `Details`.

    Returns:
        A decorator.
    """
    return claim_maker(Kind.EXISTENCE, locator, source, details)


def limit(
    locator: str = "",
    source: Source = Source.DERIVED,
    *,
    scales: Any,
    **details: Unpack[Details],
) -> Decorator:
    """A claim that a sequence tends to a limit; the function returns (sequence, limit).

    Args:
        locator: where the statement stands; the function's name when empty.
        source: where our text of it comes from.
        scales: at least four geometrically growing scales along the last axis of the sequence:
            numbers, the name of an array of the instance, or a function of named arrays.
        **details: see `Details`.

    Returns:
        A decorator.
    """
    return claim_maker(Kind.LIMIT, locator, source, details, scales=scales)


def rate(
    locator: str = "",
    source: Source = Source.DERIVED,
    *,
    scales: Any,
    **details: Unpack[Details],
) -> Decorator:
    """A claim that left = O(right) along growing scales; the function returns (left, right).

    Args:
        locator: where the statement stands; the function's name when empty.
        source: where our text of it comes from.
        scales: as for `limit`.
        **details: see `Details`.

    Returns:
        A decorator.
    """
    return claim_maker(Kind.RATE, locator, source, details, scales=scales)


def probability(
    locator: str = "",
    source: Source = Source.DERIVED,
    *,
    level: Any = None,
    **details: Unpack[Details],
) -> Decorator:
    """A claim that an event has at least a probability; the function returns the event.

    Args:
        locator: where the statement stands; the function's name when empty.
        source: where our text of it comes from.
        level: the probability: a number, the name of an array of the instance, or a function of
            named arrays. None when the function returns (event, level).
        **details: see `Details`.

    Returns:
        A decorator.
    """
    return claim_maker(Kind.PROBABILITY, locator, source, details, level=level)


def expectation(
    locator: str = "",
    source: Source = Source.DERIVED,
    *,
    range: Any,
    **details: Unpack[Details],
) -> Decorator:
    """A claim that E left <= E right; the function returns (left, right).

    Args:
        locator: where the statement stands; the function's name when empty.
        source: where our text of it comes from.
        range: length of an interval that holds left - right: a number, the name of an array of
            the instance, or a function of named arrays.
        **details: see `Details`.

    Returns:
        A decorator.
    """
    return claim_maker(Kind.EXPECTATION, locator, source, details, range=range)


def erratum(
    locator: str = "",
    source: Source = Source.FOUND,
    *,
    of: Kind = Kind.INEQUALITY,
    reason: str,
    corrected: Control,
    **details: Unpack[Details],
) -> Decorator:
    """A printed statement that is false; its control is the corrected one, which must hold.

    Args:
        locator: where the statement stands.
        source: where our text of it comes from; unless it was found, the erratum is suspected.
        of: the kind of the statement.
        reason: why it is violated.
        corrected: the changes that make it true.
        **details: see `Details`; usually a `witness`. `controls` are further ones.

    Returns:
        A decorator.
    """
    found = source is Source.FOUND
    filled: Details = {
        "status": Status.ERRATUM if found else Status.SUSPECTED_ERRATUM,
        "expect": Expectation(Outcome.VIOLATED, reason),
    }
    filled |= details
    right = Control(
        corrected.description,
        sample=corrected.sample,
        expect=Outcome.SUPPORTED,
        **corrected.changes,
    )
    filled["controls"] = [right, *details.get("controls", ())]
    return claim_maker(of, locator, source, filled)


def computed(
    kind: Kind, locator: str = "", source: Source = Source.DERIVED, **details: Unpack[Details]
) -> Decorator:
    """A claim whose sides a host computation gives at once, for a whole batch.

    The function takes `(rng, count)` and keyword-only parameters for the controls, and returns
    the sides with a leading axis. Each control recomputes from the same state of the
    generator; what they have in common is `attlas.claims.sampling.shared`.

    Args:
        kind: what the two sides mean.
        locator: where the statement stands; the function's name when empty.
        source: where our text of it comes from.
        **details: see `Details`; neither `sample` nor `search_over`.

    Returns:
        A decorator.
    """

    def wrap(function: Callable[..., Any]) -> Claim:
        controls = tuple(details.get("controls", ()))
        variants = [{}, *(control.changes for control in controls)]

        def sample(rng: np.random.Generator, count: int) -> Mapping[str, Any]:
            state, batch = rng.bit_generator.state, {}
            for k, changes in enumerate(variants):
                rng.bit_generator.state = state
                found = function(rng, count, **changes)
                sides = found if isinstance(found, Sides) else Sides(*found)
                given = {name: part for name, part in sides._asdict().items() if part is not None}
                ones = np.ones_like(np.asarray(sides.left), dtype=float)
                batch |= {f"{name} {k}" if k else name: ones * v for name, v in given.items()}
            return batch

        def read(*, variant: int = 0, **batch: Any) -> Sides:
            names = {name: f"{name} {variant}" if variant else name for name in Sides._fields}
            return Sides(**{name: batch[at] for name, at in names.items() if at in batch})

        read.__name__, read.__doc__ = function.__name__, function.__doc__
        filled = Details(**details)
        filled["controls"] = [
            Control(control.description, expect=control.expect, variant=k)
            for k, control in enumerate(controls, 1)
        ]
        filled["sample"] = sample
        return claim_maker(kind, locator, source, filled, written=function)(read)

    return wrap
