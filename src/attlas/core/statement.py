r"""Decorators that turn a function into a claim.

Positional parameters of the function are the arrays of one instance, read by name; keyword-only
parameters are what a control changes; the docstring is the statement between `$$`, or a sentence,
then a remark for the reader. The name comes from the function, the paper from the folder of
`attlas.claims`, elsewhere from the file. The engine makes the generator, works in float64, maps
the function over a batch and compiles it.

Examples:
    The triangle inequality, from definition to verdict:

    >>> from attlas.core.claim import Control
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

    `check(triangle)`, `challenge(triangle)` and `replay(triangle, witness)` of `attlas` take it
    from here. A set that the search must not leave is a map back into it, by named arrays:
    `project=lambda x: {"x": x / jnp.maximum(1, jnp.linalg.norm(x))}`; a condition of the statement
    is `assumptions=[assume("$\\|x\\| \\le 1$", lambda x: jnp.linalg.norm(x) <= 1)]`.

    What is wrongly written fails when it is defined:

    >>> @inequality(sample=pairs, controls=[Control("half", scale=0.5)])
    ... def misspelt(x, y, *, factor=1.0):
    ...     r"$$\|x+y\| \le \|x\|+\|y\|$$"
    Traceback (most recent call last):
        ...
    attlas.core.errors.UserError: claim 'notebook/misspelt': control 'half' changes 'scale', ...
"""

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from attlas.core.claim import (
    Assumption,
    Claim,
    Control,
    Coverage,
    Expectation,
    Kind,
    ProofStep,
    Sides,
    Source,
    Status,
)
from attlas.core.errors import UserError
from attlas.core.sampling import Instance, Sampler
from attlas.core.verdict import Outcome, Witness
from attlas.core.well_formed import refuse_malformed, try_out

Decorator = Callable[[Callable[..., Any]], Claim]
_OURS = "attlas.claims."


class Details(TypedDict, total=False):
    """What every decorator takes by keyword; see `attlas.core.claim.Claim`.

    Attributes:
        sample: draws instances; not needed beside a witness.
        controls: false variants, at least one.
        assumptions: conditions, made by `assume`.
        search_over: name or names of the arrays that a challenge moves.
        project: map of named arrays back into the assumptions.
        recertify: solves again after a move.
        status: relation to the printed text; as printed where it was found, else reconstructed
            in the folder of a paper and new in a user's file.
        expect: any other outcome than SUPPORTED, with its reason.
        count: instances.
        roundings: on the longest path to a side.
        coverage: sampled, exhaustive or symbolic.
        witness: one stored instance, evaluated in place of drawn ones.
        proof_step: place in a chain of inequalities.
    """

    sample: Sampler
    controls: Sequence[Control]
    assumptions: Sequence[Assumption]
    search_over: str | Sequence[str]
    project: Callable[..., Mapping[str, Any]]
    recertify: Callable[..., Mapping[str, Any]]
    status: Status
    expect: Expectation
    count: int
    roundings: int
    coverage: Coverage
    witness: Callable[[], Witness]
    proof_step: ProofStep


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
    return _decorator(Kind.IDENTITY, locator, source, details)


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
    return _decorator(Kind.INEQUALITY, locator, source, details)


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
    return _decorator(Kind.EXISTENCE, locator, source, details)


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
        scales: at least three geometrically growing scales along the last axis of the sequence:
            numbers, the name of an array of the instance, or a function of named arrays.
        **details: see `Details`.

    Returns:
        A decorator.
    """
    return _decorator(Kind.LIMIT, locator, source, details, scales=scales)


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
    return _decorator(Kind.RATE, locator, source, details, scales=scales)


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
    return _decorator(Kind.PROBABILITY, locator, source, details, level=level)


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
    return _decorator(Kind.EXPECTATION, locator, source, details, range=range)


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
    return _decorator(of, locator, source, filled)


def computed(
    kind: Kind, locator: str = "", source: Source = Source.DERIVED, **details: Unpack[Details]
) -> Decorator:
    """A claim whose sides a host computation gives at once, for a whole batch.

    The function takes `(rng, count)` and keyword-only parameters for the controls, and returns
    the sides with a leading axis. Each control computes again from the same state of the
    generator; what they have in common is `attlas.core.sampling.shared`.

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
        return _decorator(kind, locator, source, filled, written=function)(read)

    return wrap


def _decorator(
    kind: Kind,
    locator: str,
    source: Source,
    details: Details,
    written: Callable[..., Any] | None = None,
    **special: Any,
) -> Decorator:
    if callable(locator):
        raise UserError(
            f"claim '{getattr(locator, '__name__', locator)}' has no control: write "
            f"@{kind}(sample=..., controls=[Control(...)]) above it"
        )

    def wrap(function: Callable[..., Any]) -> Claim:
        original = inspect.unwrap(written or function)
        ours = original.__module__.startswith(_OURS)
        paper = _paper(original)
        name = f"{paper}/{original.__name__.strip('_').replace('_', '-')}"
        statement, remark = _statement(name, original.__doc__)
        found = source is Source.FOUND
        default = Status.RECONSTRUCTED if ours else Status.NEW
        code = original.__code__
        given: dict[str, Any] = {
            "status": Status.AS_PRINTED if found else default,
            "locator": locator or original.__name__.strip("_").replace("_", " ").capitalize(),
            **details,
            **special,
        }
        searched = given.pop("search_over", ())
        if given.get("witness") is not None:
            given.setdefault("sample", _repeated(given["witness"]))
        if "sample" not in given:
            raise UserError(f"claim '{name}' draws no instance: give sample=, or a witness=")
        claim = Claim(
            name=name,
            paper=paper,
            statement=statement,
            remark=remark,
            kind=kind,
            source=source,
            function=function,
            controls=tuple(given.pop("controls", ())),
            assumptions=tuple(given.pop("assumptions", ())),
            search_over=(searched,) if isinstance(searched, str) else tuple(searched),
            place=(code.co_filename, code.co_firstlineno),
            **given,
        )
        refuse_malformed(claim)
        if not ours:
            try_out(claim)
        return claim

    return wrap


def _paper(function: Callable[..., Any]) -> str:
    """The folder below `attlas.claims`, or the name of the user's file."""
    if function.__module__.startswith(_OURS):
        return function.__module__.removeprefix(_OURS).split(".")[0]
    file = Path(function.__code__.co_filename)
    if file.suffix != ".py" or not os.path.exists(file):  # noqa: PTH110
        return "notebook"
    return file.parent.name if file.stem == "__init__" else file.stem


def _statement(name: str, docstring: str | None) -> tuple[str, str]:
    """LaTeX of the statement and the remark, from the docstring of the function."""
    text = inspect.cleandoc(docstring or "")
    if text.startswith("$$") and "$$" in text[2:]:
        statement, _, remark = text[2:].partition("$$")
        return " ".join(statement.split()), " ".join(remark.split())
    sentence, _, remark = text.partition("\n\n")
    if not sentence:
        raise UserError(f"claim '{name}' has no docstring: write the statement there, $$...$$")
    return rf"\text{{{' '.join(sentence.split())}}}", " ".join(remark.split())


def _repeated(witness: Callable[[], Witness]) -> Sampler:
    """The stored instance, as a batch of equal ones."""

    def sample(rng: np.random.Generator, count: int) -> Instance:
        del rng
        return {k: np.repeat(np.asarray(v)[None], count, axis=0) for k, v in witness().items()}

    return sample
