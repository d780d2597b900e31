r"""The claim: a numbered statement that runs.

A claim names a statement of a paper, draws instances of it, and computes the two sides of
its (in)equality on one instance. How sides become a verdict depends on the `Kind` alone and
is decided in `attlas.verify`; a claim holds no algorithm and no tolerance of its own. Claims
are written as decorated functions: see `attlas.claims.statement`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool

from attlas.claims.domains.domain import Domain
from attlas.claims.sampling import Instance, Sampler, draw
from attlas.claims.verdict import Outcome, Witness
from attlas.core.named_call import call_by_name


class Kind(StrEnum):
    """What sort of statement it is; `attlas.verify.decide` has one rule for each."""

    IDENTITY = "identity"
    INEQUALITY = "inequality"
    LIMIT = "limit"
    RATE = "rate"
    EXISTENCE = "existence"
    PROBABILITY = "probability"
    EXPECTATION = "expectation"


class Source(StrEnum):
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


class Sides(NamedTuple):
    r"""The two sides of one instance, arrays of one common shape.

    `identity`: left = right. `inequality`: left <= right. `existence`: left <= right says that
    the object was found. `limit`: left[k] -> right[k] along the last axis, whose scales grow
    geometrically. `rate`: left[k] = O(right[k]) likewise. `probability`: left in {0, 1} and
    P(left = 1) >= right. `expectation`: E left <= E right.

    Attributes:
        left: left side.
        right: right side.
        magnitude: size of the terms that were added up to reach the sides, for rounding; the
            larger side when None.
        error: certified absolute error of the sides (a solver's gap), beyond rounding.
        scales: the growing parameter of a limit or rate; the engine fills it in.
        range: length of an interval that holds left - right, for an expectation; likewise.
    """

    left: Array
    right: Array
    magnitude: Array | None = None
    error: Array | float = 0.0
    scales: Array | None = None
    range: Array | None = None


@dataclass(frozen=True)
class Assumption:
    """A condition of the statement, as text and as predicate on named arrays of an instance."""

    text: str
    predicate: Callable[..., Any]

    def holds(self, instance: Instance) -> Bool[Array, ""]:
        """Whether the condition holds on one instance.

        Args:
            instance: arrays by name.

        Returns:
            A scalar.
        """
        return call_by_name(self.predicate, instance)


def assume(text: str, predicate: Callable[..., Any]) -> Assumption:
    r"""A condition of a statement; where it fails an instance is NOT_APPLICABLE.

    Args:
        text: the condition as a reader sees it; mathematics between dollar signs.
        predicate: its parameters name the arrays that it reads.

    Returns:
        The assumption.

    Examples:
        >>> import jax.numpy as jnp
        >>> bool(assume(r"$R \le 1$", lambda R: R <= 1).holds({"R": jnp.asarray(0.5)}))
        True
    """
    return Assumption(text, predicate)


@dataclass(frozen=True, init=False)
class Control:
    """A false variant that must come out VIOLATED: it shows that the check can fail.

    Name keyword-only parameters of the claim's function with other values (a structural
    mutation on the same instances, one compilation with the claim), or give `sample` (the same
    sides on instances outside the assumptions, which are then not tested), or both.

    Attributes:
        description: what is changed, as a reader sees it.
        sample: instances in place of the claim's own.
        expect: the outcome that it must have.
        changes: values of keyword-only parameters.

    Examples:
        >>> Control("right side halved", factor=0.5).changes
        {'factor': 0.5}
    """

    description: str
    sample: Sampler | None
    expect: Outcome
    changes: Mapping[str, Any]

    def __init__(
        self,
        description: str,
        *,
        sample: Sampler | None = None,
        expect: Outcome = Outcome.VIOLATED,
        **changes: Any,
    ):
        if sample is None and not changes:
            raise ValueError(f"control '{description}' changes nothing")
        for name, value in {
            "description": description,
            "sample": sample,
            "expect": expect,
            "changes": changes,
        }.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Expectation:
    """The outcome a claim expects, with a reason unless it is SUPPORTED."""

    outcome: Outcome = Outcome.SUPPORTED
    reason: str = ""

    def __post_init__(self):
        if self.outcome is not Outcome.SUPPORTED and not self.reason:
            raise ValueError(f"expecting {self.outcome} needs a reason")


@dataclass(frozen=True)
class ProofStep:
    """A place in the slack ledger: the steps of one chain of inequalities, in proof order."""

    chain: str
    position: int


@dataclass(frozen=True, repr=False)
class Claim:
    r"""A numbered statement that runs; made by the decorators of `attlas.claims.statement`.

    Attributes:
        name: `<paper>/<slug>`, unique.
        paper: key in `references.bib`, or the name of the user's own file.
        locator: "Lemma 13 (L2)", as a reader would look it up.
        statement: LaTeX.
        remark: for the reader; MyST with mathematics between dollar signs.
        kind: which rule decides.
        status: relation to the printed text.
        source: where our text comes from.
        function: computes the two sides; positional parameters name the arrays of the instance,
            keyword-only ones are what a control changes.
        sample: draws a batch of instances; host code and solvers are allowed here.
        controls: false variants.
        assumptions: conditions; where one fails the instance is NOT_APPLICABLE.
        domains: of arrays; their conditions are among the assumptions and their projections in
            `project` already.
        sizes: what a search may let grow, by name, with the values of a check; `sample` takes
            others by keyword.
        quantities: by name, on whose exponents the strength of the check is asked: the name of a
            size or of an array, or a function of named arrays. With `sizes`, grown ones are
            evaluated for it, and decide.
        attained: least tightness that the check or its search must exhibit, None where the
            statement does not claim to be tight.
        search_over: names of the arrays that a challenge may move (inequalities only); without
            any, it moves the random numbers that `sample` draws, which keeps within its support.
        project: differentiable map of named arrays into the assumptions, after each move;
            returns the arrays that it changes.
        recertify: computes solver outputs of a batch of moved instances again, with certificates;
            returns the arrays that it changes.
        evaluations: of the sides on one instance that a round of attack is granted, where they
            are dear; None for the usual number.
        not_attacked: why an inequality has nothing that an attack could move, where neither
            `search_over` nor the draws reach its arrays.
        expect: the outcome it must have.
        count: instances drawn by default.
        roundings: on the longest path to a side, for the tolerance.
        enumerates: how many instances the whole domain has, where `sample` lists them all.
        alike: whether the entries of the sides are one statement at several places, such as the
            entries of a vector identity; else each entry is a component with a control of its own.
        independent: of a probability or expectation: what each instance, a trial, draws anew.
        witness: stored instance that is evaluated in place of drawn ones: an erratum's, or the
            object of an existence; it supports nothing else.
        proof_step: place in a chain of inequalities.
        scales: of a limit or rate: the growing parameter.
        level: of a probability.
        range: of an expectation: of left minus right.
        place: file and line of the definition.
        home: of a user's own: the file or module by which another process finds it, filled in
            where it is loaded.
    """

    name: str
    paper: str
    locator: str
    statement: str
    remark: str
    kind: Kind
    status: Status
    source: Source
    function: Callable[..., Any]
    sample: Sampler
    controls: tuple[Control, ...]
    assumptions: tuple[Assumption, ...] = ()
    domains: tuple[Domain, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    quantities: Mapping[str, Any] = field(default_factory=dict)
    attained: float | None = None
    search_over: tuple[str, ...] = ()
    project: Callable[..., Mapping[str, Any]] | None = None
    recertify: Callable[..., Mapping[str, Any]] | None = None
    evaluations: int | None = None
    not_attacked: str = ""
    expect: Expectation = field(default_factory=Expectation)
    count: int = 64
    roundings: int = 64
    enumerates: int | None = None
    alike: bool = False
    independent: str = ""
    witness: Callable[[], Witness] | None = None
    proof_step: ProofStep | None = None
    scales: Any = None
    level: Any = None
    range: Any = None
    place: tuple[str, int] = ("", 0)
    home: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return f"Claim({self.name}, {self.locator}, {self.kind}: {self.statement})"

    def _repr_html_(self) -> str:
        from attlas.claims.report_text import claim_html

        return claim_html(self)

    def __call__(self, *arrays: Any, **changes: Any) -> Any:
        """The function itself: the two sides on arrays at hand."""
        return self.function(*arrays, **changes)

    def sides(self, instance: Instance, changes: Mapping[str, Any] | None = None) -> Sides:
        """The two sides on one instance.

        Args:
            instance: arrays by name.
            changes: values of keyword-only parameters, as a control gives them.

        Returns:
            The sides, with the scales of a limit or rate and the level of a probability.
        """
        changes = {} if changes is None else changes
        found = call_by_name(self.function, instance, changes)
        if self.kind is Kind.PROBABILITY and self.level is not None:
            found = found, self._read(self.level, instance, changes)
        if self.kind is Kind.PROBABILITY and not isinstance(found, Sides):
            event, level = found
            found = Sides(jnp.asarray(event, dtype=float), jnp.asarray(level, dtype=float))
        sides = found if isinstance(found, Sides) else Sides(*found)
        for detail in ("scales", "range"):
            given = getattr(self, detail)
            if given is not None:
                sides = sides._replace(**{detail: self._read(given, instance, changes)})
        return sides

    @staticmethod
    def _read(given: Any, instance: Instance, changes: Mapping[str, Any]) -> Any:
        """A detail that is a number, the name of an array, or a function of named arrays."""
        if isinstance(given, str):
            return instance[given]
        return call_by_name(given, instance, changes) if callable(given) else given

    def draw(self, seed: int, count: int, control: Control | None = None) -> Instance:
        """A batch of instances, drawn once in a process for equal arguments.

        Args:
            seed: of the draws.
            count: number of instances.
            control: whose sampler is used, if it has one.

        Returns:
            Arrays with a leading axis.
        """
        own = None if control is None else control.sample
        return draw(self.sample if own is None else own, seed, count)

    def sized(self, **sizes: int) -> "Claim":
        """The same claim on instances of other sizes.

        Args:
            **sizes: some of the declared sizes.

        Returns:
            A claim whose sampler draws them.
        """
        return replace(self, sample=partial(self.sample, **sizes), sizes={**self.sizes, **sizes})

    def moved_inside(self, instance: Instance) -> Instance:
        """An instance after `project`, which keeps it within the assumptions.

        Args:
            instance: arrays by name.

        Returns:
            The instance with the arrays that `project` changed.
        """
        if self.project is None:
            return instance
        return {**instance, **call_by_name(self.project, instance)}


class ErratumClass(StrEnum):
    """Classes of errata; only `REFUTED` needs a numerical witness."""

    REFUTED = "refuted"
    VACUITY = "vacuity"
    INVALID_PROOF = "invalid proof"
    GAP = "gap"
    TYPO = "typo"


@dataclass(frozen=True)
class Erratum:
    """A flaw of a paper, as text for the reader.

    Attributes:
        paper: key in `references.bib`.
        locator: where.
        kind: its class.
        text: what is wrong and what is right.
        claim: name of the claim that shows it; required when refuted.
    """

    paper: str
    locator: str
    kind: ErratumClass
    text: str
    claim: str = ""

    def __post_init__(self):
        if self.kind is ErratumClass.REFUTED and not self.claim:
            raise ValueError(f"erratum at {self.locator}: a refuted statement needs a witness")
