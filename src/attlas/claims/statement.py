r"""Decorators that turn a function into a claim.

Positional parameters of the function are the arrays of one instance, read by name; keyword-only
parameters are what a control changes; the docstring is the statement between `$$`, or a sentence,
then a remark for the reader. The name comes from the function, the paper from the project of its
file. The engine makes the generator, works in float64, maps the function over a batch and compiles
it. Every decorator takes `locator`, where the statement stands ("Lemma 13 (L2)", by default the
name of the function), `source`, where our text of it comes from, and the `Details` by keyword.

A check is worth the errors that it detects. Thirty distinct instances support a claim, or all
instances of a domain whose size `enumerates` gives; a stored witness supports only an existence, or
shows an erratum. Each entry of stacked sides is a component that a control must violate; of entries
that are `alike`, one statement at several places, controls violate more than half, and the others
come at least half as near to their bound. An identity must detect a relative change of 1e-3 in each
component. Each instance of a probability or expectation is a trial, `independent` says what it
draws anew, and the check refuses copies and near-copies; an expectation stays within what its
range, deviation or variance allows. Limits and rates comply on every instance (a statement about
most data sets is a probability), and no assumption is NaN where it refuses.

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
    instance that anyone can evaluate again. Without `search_over` the attack perturbs the random
    numbers from which the sampler makes its instances:

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

    A condition of the statement is an assumption; `project` maps named arrays back into the domain
    after each step of a search:

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

    A declared domain is all of these in one: it draws instances (without a sampler, if every array
    has a shape), is the assumption, and is the projection of a search:

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

    A mistake in a definition fails at once:

    >>> @inequality(sample=pairs, controls=[Control("half", scale=0.5)])
    ... def misspelt(x, y, *, factor=1.0):
    ...     r"$$\|x+y\| \le \|x\|+\|y\|$$"
    Traceback (most recent call last):
        ...
    attlas.core.errors.UserError: claim 'notebook/misspelt': control 'half' changes 'scale', ...
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

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
from attlas.claims.claim_maker import (
    Decorator,
    Details,
    claim_maker,
    corrected_control,
    refuse_misplaced,
    refuse_other_than_one,
)
from attlas.claims.sides import Doubling
from attlas.claims.verdict import Outcome
from attlas.core.errors import refuse_misfits

if TYPE_CHECKING:  # most claims declare none
    from attlas.claims.domains.domain import Domain


def identity(
    locator: str = "", source: Source = Source.DERIVED, **details: Unpack[Details]
) -> Decorator:
    """A claim that two sides are equal; the function returns (left, right).

    Examples:
        >>> draw = lambda rng, count: {"x": rng.normal(size=count)}
        >>> @identity(sample=draw, controls=[Control("no 2x", factor=0.0)])
        ... def square(x, *, factor=2.0):
        ...     "$$(x + 1)^2 = x^2 + 2x + 1$$"
        ...     return (x + 1) ** 2, x**2 + factor * x + 1
        >>> square.function(3.0), square.function(3.0, factor=0.0)
        ((16.0, 16.0), (16.0, 10.0))
    """
    return claim_maker(Kind.IDENTITY, locator, source, details)


def inequality(
    locator: str = "", source: Source = Source.DERIVED, **details: Unpack[Details]
) -> Decorator:
    r"""A claim that left <= right, elementwise; the function returns (left, right).

    Examples:
        >>> draw = lambda rng, count: {"x": rng.normal(size=count)}
        >>> @inequality(sample=draw, controls=[Control("4x", factor=4.0)])
        ... def tangent(x, *, factor=2.0):
        ...     r"$$2x \le x^2 + 1$$"
        ...     return factor * x, x**2 + 1
        >>> tangent.function(1.0), tangent.function(1.0, factor=4.0)
        ((2.0, 2.0), (4.0, 2.0))
    """
    return claim_maker(Kind.INEQUALITY, locator, source, details)


def existence(
    locator: str = "", source: Source = Source.DERIVED, **details: Unpack[Details]
) -> Decorator:
    """A claim that an object exists; the function returns (left, right), found if left <= right.

    Examples:
        >>> zero = lambda: {"x": np.array(1.0)}
        >>> @existence(witness=zero, controls=[Control("x^2 + 1", shift=1.0)])
        ... def has_zero(x, *, shift=-1.0):
        ...     "$$x^2 - 1$$ has a zero."
        ...     return abs(x**2 + shift), 0 * x
        >>> [float(side) for side in has_zero.function(**zero())]
        [0.0, 0.0]
    """
    return claim_maker(Kind.EXISTENCE, locator, source, details)


def limit(
    locator: str = "",
    source: Source = Source.DERIVED,
    *,
    scales: Any = None,
    **details: Unpack[Details],
) -> Decorator:
    r"""A claim that a sequence tends to a limit; the function returns (sequence, limit).

    Args:
        scales: four or more geometrically growing scales along the last axis of the sequence:
            numbers, the name of an array of the instance, or a function of named arrays; or
            `Doubling("t", 16)`, which a check doubles until it decides.

    Examples:
        >>> draw, n = lambda rng, count: {"x": rng.normal(size=count)}, 10.0 ** np.arange(4)
        >>> @limit(scales=n, sample=draw, controls=[Control("to 1", goal=1.0)])
        ... def vanishes(x, *, goal=0.0):
        ...     r"$$x / n \to 0$$"
        ...     return x / n, goal * np.ones(4)
        >>> [side.tolist() for side in vanishes.function(1.0)]
        [[1.0, 0.1, 0.01, 0.001], [0.0, 0.0, 0.0, 0.0]]
    """
    return claim_maker(Kind.LIMIT, locator, source, details, scales=scales)


def rate(
    locator: str = "",
    source: Source = Source.DERIVED,
    *,
    scales: Any = None,
    **details: Unpack[Details],
) -> Decorator:
    """A claim that left = O(right) along `scales`, see `limit`; returns (left, right).

    Examples:
        >>> draw, n = lambda rng, count: {"x": rng.normal(size=count)}, 10.0 ** np.arange(4)
        >>> @rate(scales=n, sample=draw, controls=[Control("of order 1/n", power=-1)])
        ... def grows_linearly(x, *, power=1):
        ...     "$$n + x = O(n)$$"
        ...     return n + x, n**power
        >>> [side.tolist() for side in grows_linearly.function(1.0)]
        [[2.0, 11.0, 101.0, 1001.0], [1.0, 10.0, 100.0, 1000.0]]
    """
    return claim_maker(Kind.RATE, locator, source, details, scales=scales)


def probability(
    locator: str = "",
    source: Source = Source.DERIVED,
    *,
    level: Any = None,
    parameters: "Sequence[Domain]" = (),
    **details: Unpack[Details],
) -> Decorator:
    r"""A claim that an event has at least a probability; the function returns the event.

    Args:
        level: the probability: a number, the name of an array of the instance, or a function of
            named arrays. None when the function returns (event, level).
        parameters: domains with shapes of arrays for all of which the probability is stated, such
            as `Box("p", 0, 1, shape=())`. The sampler draws the trials alone, and takes those
            parameters that its keyword-only ones name. A check decides on the average over drawn
            parameters, and a search looks for the worst, which fresh trials confirm.

    Examples:
        >>> draw, never = lambda rng, n: {"t": rng.uniform(size=n)}, Control("never", most=0.0)
        >>> @probability(level=0.5, sample=draw, independent="a number", controls=[never])
        ... def often(t, *, most=0.75):
        ...     r"$$P(t < 3/4) \ge 1/2$$"
        ...     return t < most
        >>> often.level, often.function(0.7), often.function(0.7, most=0.0)
        (0.5, True, False)
    """
    special = {"level": level, "parameters": tuple(parameters)}
    return claim_maker(Kind.PROBABILITY, locator, source, details, **special)


def expectation(
    locator: str = "",
    source: Source = Source.DERIVED,
    *,
    range: Any = None,
    deviation: Any = None,
    variance: Any = None,
    **details: Unpack[Details],
) -> Decorator:
    r"""A claim that E left <= E right; the function returns (left, right).

    One condition on X = left - right is stated: a number, the name of an array of the instance, or
    a function of named arrays.

    Args:
        range: length of an interval that contains X.
        deviation: s with $E e^{t (X - E X)} \le e^{s^2 t^2 / 2}$ for all t, for unbounded X.
        variance: a bound on the variance of X, where its tails are heavier.

    Raises:
        UserError: if not exactly one of the three is given.

    Examples:
        >>> draw, less = lambda rng, n: {"t": rng.uniform(size=n)}, Control("less", most=0.1)
        >>> @expectation(range=1.0, sample=draw, independent="a number", controls=[less])
        ... def mean_of_uniform(t, *, most=0.6):
        ...     r"$$E t \le 0.6$$"
        ...     return t, most
        >>> mean_of_uniform.range, mean_of_uniform.function(0.5)
        (1.0, (0.5, 0.6))
    """
    refuse_misplaced(Kind.EXPECTATION, locator, details)
    conditions = {"range": range, "deviation": deviation, "variance": variance}
    refuse_other_than_one(conditions)
    return claim_maker(Kind.EXPECTATION, locator, source, details, **conditions)


@refuse_misfits
def erratum(
    locator: str = "",
    source: Source = Source.FOUND,
    *,
    of: Kind = Kind.INEQUALITY,
    reason: str = "",
    corrected: Control | None = None,
    **details: Unpack[Details],
) -> Decorator:
    r"""A printed statement that is false; its control is the corrected one, which must hold.

    Args:
        source: other than FOUND, the erratum is a suspected one.
        corrected: the changes that make it true.
        **details: usually with a `witness`; `controls` are further ones.

    Examples:
        >>> draw = lambda rng, count: {"x": rng.normal(size=count)}
        >>> @erratum(sample=draw, reason="x = -1", corrected=Control("of |x|", size=abs))
        ... def root_of_square(x, *, size=lambda x: x):
        ...     r"$$|x| \le x$$"
        ...     return abs(x), size(x)
        >>> root_of_square.function(-1.0), root_of_square.function(-1.0, size=abs)
        ((1.0, -1.0), (1.0, 1.0))
        >>> root_of_square.expect.outcome.value, root_of_square.controls[0].expect.value
        ('VIOLATED', 'SUPPORTED')
    """
    right = corrected_control(reason, corrected)
    printed = source is Source.FOUND
    filled: Details = {
        "status": Status.ERRATUM if printed else Status.SUSPECTED_ERRATUM,
        "expect": Expectation(Outcome.VIOLATED, reason),
    }
    filled |= details
    filled["controls"] = [right, *details.get("controls", ())]
    return claim_maker(of, locator, source, filled)


def computed(
    kind: Kind | None = None,
    locator: str = "",
    source: Source = Source.DERIVED,
    *,
    scales: Any = None,
    **details: Unpack[Details],
) -> Decorator:
    r"""A claim whose sides a host computation gives at once, for a whole batch.

    The function takes `(rng, count)` and keyword-only parameters for the controls, and returns
    the sides with a leading axis. Each control recomputes from the same state of the
    generator; `attlas.claims.sampling.shared` caches what they have in common.

    Args:
        scales: of a limit or rate whose `Sides` have none: numbers, or `Doubling("t", 16)`, for
            which the function takes a keyword-only parameter t.

    Examples:
        >>> @computed(Kind.INEQUALITY, controls=[Control("half", factor=0.5)])
        ... def square_is_positive(rng, count, *, factor=1.0):
        ...     r"$$0 \le x^2$$"
        ...     return 1 - factor * np.ones(count), rng.normal(size=count) ** 2
        >>> sorted(square_is_positive.sample(np.random.default_rng(0), 2))
        ['error', 'error 1', 'left', 'left 1', 'right', 'right 1']
    """
    refuse_misplaced(kind, locator, details)
    assert kind is not None

    def wrap(function: Callable[..., Any]) -> Claim:
        controls = tuple(details.get("controls", ()))
        sample = _computed_sampler(function, [{}, *(control.changes for control in controls)])
        if isinstance(scales, Doubling):
            scales.declare(sample)

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
        special = {} if scales is None else {"scales": scales}
        return claim_maker(kind, locator, source, filled, written=function, **special)(read)

    return wrap


def _computed_sampler(
    function: Callable[..., Any], variants: Sequence[Mapping[str, Any]]
) -> Callable[..., Mapping[str, Any]]:
    """The sides of each variant by name, all from one state of the generator."""

    def sample(rng: np.random.Generator, count: int, **scales: Any) -> Mapping[str, Any]:
        state, batch = rng.bit_generator.state, {}
        for k, changes in enumerate(variants):
            rng.bit_generator.state = state
            value = function(rng, count, **scales, **changes)
            sides = value if isinstance(value, Sides) else Sides(*value)
            ones = np.ones_like(np.asarray(sides.left), dtype=float)
            listed = {name: side for name, side in sides._asdict().items() if side is not None}
            batch |= {f"{name} {k}" if k else name: ones * listed[name] for name in listed}
        return batch

    return sample
