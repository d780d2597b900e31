r"""The claim: a numbered statement that runs.

A claim names a statement of a paper, draws instances of it, and computes the two sides of
its (in)equality on one instance. How sides become a verdict depends on the `Kind` alone and
is decided in `attlas.verify`; a claim holds no algorithm and no tolerance of its own.

Examples:
    A claim of one's own takes fifteen lines (the triangle inequality, checked by name):

    >>> import jax
    >>> import jax.numpy as jnp
    >>> def draw(key):
    ...     x, y = jax.random.normal(key, (2, 5))
    ...     return {"x": x, "y": y}
    >>> def sides(i):
    ...     norm = jnp.linalg.norm
    ...     return Sides(norm(i["x"] + i["y"]), norm(i["x"]) + norm(i["y"]))
    >>> def halved(i):
    ...     return Sides(sides(i).lhs, sides(i).rhs / 2)
    >>> mine = Claim(
    ...     name="mine/triangle", paper="mine", locator="Fact 1",
    ...     statement=r"\|x+y\| \le \|x\|+\|y\|",
    ...     kind=Kind.INEQUALITY, status=Status.NEW, provenance=Provenance.DERIVED,
    ...     instances=each(draw), sides=sides, free=("x", "y"),
    ...     control=Control("right side halved", sides=halved))
    >>> mine.expect.outcome.value
    'SUPPORTED'
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import jax
from jaxtyping import Array, PRNGKeyArray

from attlas.core import claim as new
from attlas.core.verdict import Outcome, Witness

Instance = Mapping[str, Array]
"""One instance: arrays by name. A batch of instances has a leading axis on every array."""


class Kind(StrEnum):
    """What sort of statement it is; `attlas.verify.decide` has one rule for each."""

    IDENTITY = "identity"
    INEQUALITY = "inequality"
    LIMIT = "limit"
    RATE = "rate"
    EXISTENCE = "existence"
    PROBABILITY = "probability"
    EXPECTATION = "expectation"


class Provenance(StrEnum):
    """Where our text of the statement comes from."""

    FOUND = "found"
    RECALLED = "recalled"
    DERIVED = "derived"


class Status(StrEnum):
    """How our statement relates to the paper's."""

    AS_PRINTED = "as printed"
    RECONSTRUCTED = "reconstructed"
    ERRATUM = "erratum"
    SUSPECTED_ERRATUM = "suspected erratum"
    CORRECTED = "corrected"
    SHARPENED = "sharpened"
    NEW = "new"


class Coverage(StrEnum):
    """How the instances cover the statement's domain."""

    SAMPLED = "sampled"
    EXHAUSTIVE = "exhaustive"
    SYMBOLIC = "symbolic"


class Sides(NamedTuple):
    r"""The two sides of one instance, arrays of one common shape.

    `identity`: lhs = rhs. `inequality`: lhs <= rhs. `existence`: lhs <= rhs says that the
    object was found. `limit`: lhs[k] -> rhs[k] along the last axis, whose `scales` grow
    geometrically. `rate`: lhs[k] = O(rhs[k]) likewise. `probability`: lhs in {0, 1} and
    P(lhs = 1) >= rhs. `expectation`: E lhs <= E rhs.

    Attributes:
        lhs: left side.
        rhs: right side.
        scale: magnitude of the terms that were added up to reach the sides, for rounding;
            the larger side when None. For `expectation` the range of lhs - rhs.
        error: certified absolute error of the sides (a solver's gap), beyond rounding.
        scales: the growing parameter of a limit or rate.
    """

    lhs: Array
    rhs: Array
    scale: Array | None = None
    error: Array | float = 0.0
    scales: Array | None = None


@dataclass(frozen=True)
class Assumption:
    """A condition of the statement, as text and as predicate on one instance."""

    text: str
    holds: Callable[[Instance], Array]


@dataclass(frozen=True)
class Control:
    """A false variant that must come out `expect`, VIOLATED unless the claim is an erratum.

    Give `sides` (a structural mutation on the same instances, one compilation with the
    claim), or `instances` (the same sides on instances outside the assumptions, which are
    then not tested), or both.
    """

    description: str
    sides: Callable[[Instance], Sides] | None = None
    instances: Callable[[PRNGKeyArray, int], Instance] | None = None
    expect: Outcome = Outcome.VIOLATED

    def __post_init__(self):
        if self.sides is None and self.instances is None:
            raise ValueError(f"control '{self.description}' changes nothing")


@dataclass(frozen=True)
class Expectation:
    """The outcome a claim declares, with a reason unless it is SUPPORTED."""

    outcome: Outcome = Outcome.SUPPORTED
    reason: str = ""

    def __post_init__(self):
        if self.outcome is not Outcome.SUPPORTED and not self.reason:
            raise ValueError(f"expecting {self.outcome} needs a reason")


@dataclass(frozen=True)
class Link:
    """A place in the slack ledger: the links of one chain of inequalities, in proof order."""

    chain: str
    position: int


def each(draw: Callable[[PRNGKeyArray], Instance]) -> Callable[[PRNGKeyArray, int], Instance]:
    """Turn a function that draws one instance into one that draws a batch.

    Args:
        draw: pure function of a key.

    Returns:
        Function of a key and a count, one compiled program for each count.
    """
    batch = jax.jit(jax.vmap(draw))

    def instances(key: PRNGKeyArray, count: int) -> Instance:
        return batch(jax.random.split(key, count))

    return instances


@dataclass(frozen=True)
class Claim:
    r"""A numbered statement that runs.

    Attributes:
        name: `<paper>/<slug>`, unique.
        paper: key in `references.bib`.
        locator: "Lemma 13 (L2)", as a reader would look it up.
        statement: LaTeX.
        kind: which rule decides.
        status: relation to the printed text.
        provenance: where our text comes from.
        instances: `(key, count) -> batch`; host code and solvers are allowed here.
        sides: pure function of one instance; the engine maps and compiles it.
        control: a false variant, or several.
        assumptions: conditions; where one fails the instance is NOT_APPLICABLE.
        free: names of the arrays that a challenge may move (inequalities only).
        domain: differentiable map of an instance into the assumptions, after each move.
        resolve: recomputes solver outputs of a batch of moved instances, with certificates.
        expect: declared outcome.
        count: instances drawn by default.
        terms: roundings on the longest path to a side, for the tolerance.
        coverage: sampled, exhaustive or symbolic.
        witness: stored instance that is evaluated in place of drawn ones (errata carry one).
        ledger: place in a chain of inequalities.
        note: remark for the reader, plain text.
        source: file and line, filled in.
    """

    name: str
    paper: str
    locator: str
    statement: str
    kind: Kind
    status: Status
    provenance: Provenance
    instances: Callable[[PRNGKeyArray, int], Instance]
    sides: Callable[[Instance], Sides]
    control: Control | tuple[Control, ...]
    assumptions: tuple[Assumption, ...] = ()
    free: tuple[str, ...] = ()
    domain: Callable[[Instance], Instance] | None = None
    resolve: Callable[[Instance], Instance] | None = None
    expect: Expectation = field(default_factory=Expectation)
    count: int = 64
    terms: int = 64
    coverage: Coverage = Coverage.SAMPLED
    witness: Callable[[], Witness] | None = None
    ledger: Link | None = None
    note: str = ""
    source: tuple[str, int] = ("", 0)

    def __post_init__(self):
        if not self.name.startswith(f"{self.paper}/"):
            raise ValueError(f"claim name '{self.name}' must start with '{self.paper}/'")
        if not self.controls:
            raise ValueError(f"claim '{self.name}' has no control: can its check fail?")
        printed = self.status in (Status.AS_PRINTED, Status.ERRATUM)
        if printed and self.provenance is not Provenance.FOUND:
            raise ValueError(
                f"claim '{self.name}': '{self.status}' needs a statement that was found"
            )
        if self.free and self.kind is not Kind.INEQUALITY:
            raise ValueError(f"claim '{self.name}': only inequalities are challenged")
        if self.source == ("", 0):
            object.__setattr__(self, "source", _place_of_definition())

    @property
    def controls(self) -> tuple[Control, ...]:
        """The controls, also where there is only one."""
        return self.control if isinstance(self.control, tuple) else (self.control,)


def _place_of_definition() -> tuple[str, int]:
    """File and line of the call that made a claim, behind the frames that only pass it on."""
    passing = {__name__, "jaxtyping", "beartype"}
    frame = sys._getframe(1)
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", __name__))
        if module not in passing and module.split(".")[0] not in passing:
            break
        frame = frame.f_back
    return frame.f_code.co_filename, frame.f_lineno


def adapt(old: Claim) -> "new.Claim":
    """A claim of the old form as one of the new."""

    def wrap(sides: new.Sides) -> new.Sides:
        return new.Sides(sides.lhs, sides.rhs, sides.scale, sides.error, sides.scales)

    def function(*, sides=old.sides, **instance):
        return wrap(sides(instance))

    def named(function):
        return lambda **instance: function(instance)

    def sampler(draw):
        return draw

    controls = tuple(
        new.Control(
            c.description,
            sample=sampler(c.instances),
            expect=c.expect,
            **({} if c.sides is None else {"sides": c.sides}),
        )
        for c in old.controls
    )
    return new.Claim(
        name=old.name, paper=old.paper, locator=old.locator, statement=old.statement,
        remark=old.note, kind=new.Kind(old.kind), status=new.Status(old.status),
        source=new.Source(old.provenance), function=function, sample=sampler(old.instances),
        controls=controls,
        assumptions=tuple(new.Assumption(a.text, named(a.holds)) for a in old.assumptions),
        search_over=old.free, project=None if old.domain is None else named(old.domain),
        expect=new.Expectation(old.expect.outcome, old.expect.reason), count=old.count,
        roundings=old.terms, coverage=new.Coverage(old.coverage), witness=old.witness,
        proof_step=None if old.ledger is None else new.ProofStep(*vars(old.ledger).values()),
        place=old.source,
    )  # fmt: skip
