r"""The claim: a numbered statement that runs.

A claim names a statement of a paper, draws instances of it, and computes the two sides of
its (in)equality on one instance. How sides become a verdict depends on the `Kind` alone, whose
object is in `attlas.claims.kinds`; a claim has no algorithm and no tolerance of its own. Claims
are written as decorated functions: see `attlas.claims.statement`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from jaxtyping import Array, Bool

from attlas.claims.kinds.kind import Kind
from attlas.claims.sampling import Instance, Sampler, draw
from attlas.claims.sides import Doubling, Rule, Sides, read_detail
from attlas.claims.verdict import Outcome, Provenance, Witness
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.names import call_by_name, parameters

if TYPE_CHECKING:  # most claims declare none
    from attlas.claims.domains.domain import Domain


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


@dataclass(frozen=True)
class Assumption:
    """A condition of the statement, as text and as a predicate on named arrays of an instance."""

    text: str
    predicate: Callable[..., Any]

    def holds(self, instance: Instance) -> Bool[Array, ""]:
        """Whether the condition holds on one instance."""
        return call_by_name(self.predicate, instance)


def assume(text: str, predicate: Callable[..., Any]) -> Assumption:
    r"""A condition of a statement; where it fails an instance is NOT_APPLICABLE.

    Args:
        text: the condition as a reader sees it; mathematics between dollar signs.
        predicate: its parameters name the arrays that it reads.

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
            raise UserError(f"expecting {self.outcome!s:.40} needs a reason: give one beside it")


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
        paper: key in `references.bib`, or the name of the user's file.
        locator: "Lemma 13 (L2)", as a reader would look it up.
        statement: LaTeX.
        remark: for the reader; MyST with mathematics between dollar signs.
        function: computes the two sides; positional parameters name the arrays of the instance,
            keyword-only ones are what a control changes.
        sample: draws a batch of instances; host code and solvers are allowed here.
        assumptions: conditions; where one fails the instance is NOT_APPLICABLE.
        domains: sets in which arrays lie; their conditions are among the assumptions and their
            projections in `project` already.
        sizes: sizes that a search may let grow, by name, with the values of a check; `sample`
            takes others by keyword.
        quantities: quantities whose exponents the check should test, by name: the name of a size
            or of an array, or a function of named arrays. With `sizes`, the check evaluates grown
            ones too, and they decide.
        attained: least tightness that the check or its search must show, None if the statement
            does not claim to be tight.
        search_over: names of the arrays that a challenge may move (inequalities only); without
            any, it perturbs the random numbers that `sample` draws, within their support.
        project: differentiable map of named arrays into the assumptions, applied after each step
            of a search; returns the arrays that it changes.
        recertify: computes solver outputs of a batch of moved instances again, with certificates;
            returns the arrays that it changes.
        evaluations: number of evaluations of the sides that a round of attack may use, for claims
            that take long; None for the default.
        not_attacked: why an attack has nothing to move, where neither `search_over` nor the draws
            change the arrays of an inequality.
        roundings: number of roundings on the longest path to a side, for the tolerance.
        enumerates: number of instances of the domain, where `sample` lists them all.
        alike: whether the entries of the sides are one statement at several places, such as the
            entries of a vector identity; else each entry is a component that needs a control.
        independent: what each instance, a trial of a probability or expectation, draws anew.
        witness: stored instance that is evaluated instead of drawn ones: of an erratum, or the
            object of an existence; it supports nothing else.
        proof_step: place in a chain of inequalities.
        scales: growing parameter of a limit or rate; a `Doubling` where the check may double it.
        level: level of a probability.
        parameters: domains of what a probability is stated for all of; a search looks for the
            worst.
        worst_case: `StatedBound` on a method over a class of functions, which is proved exactly.
        backend: "jax", which traces and compiles the function for a whole batch, or "numpy", which
            calls it once for each instance.
        range: range of left - right, for an expectation.
        deviation: sub-Gaussian parameter of left - right, in place of a range.
        variance: bound on the variance of left - right, in place of a range.
        place: file and line of the definition.
        home: file or module by which another process finds the claim of a user project, filled in
            when it is loaded.
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
    domains: "tuple[Domain, ...]" = ()
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
    parameters: "tuple[Domain, ...]" = ()
    range: Any = None
    deviation: Any = None
    variance: Any = None
    worst_case: Any = None
    backend: str = "jax"
    place: tuple[str, int] = ("", 0)
    home: str = field(default="", compare=False)

    def __repr__(self) -> str:
        return f"Claim({self.name}, {self.locator}, {self.kind}: {self.statement})"

    def _repr_html_(self) -> str:
        # The pages know claims; a claim looks them up when a notebook shows it.
        from attlas.claims.report_text import claim_html

        return claim_html(self)

    def __call__(self, *arrays: Any, **changes: Any) -> Any:
        """The function itself: the two sides on arrays at hand."""
        return self.function(*arrays, **changes)

    @property
    def rule(self) -> Rule:
        """The rule of the kind; on scales that are doubled a decision must persist."""
        return self.kind.rule.persistent() if self.declared else self.kind.rule

    @property
    def declared(self) -> Mapping[str, Any]:
        """The scales that are doubled, by the name of the parameter that reads them."""
        return self.scales.named if isinstance(self.scales, Doubling) else {}

    def sides(self, instance: Instance, changes: Mapping[str, Any] | None = None) -> Sides:
        """The two sides on one instance."""
        changes = {} if changes is None else changes
        instance = {**instance, **self.declared}
        value = call_by_name(self.function, instance, changes)
        if self.level is not None:
            value = value, read_detail(self.level, instance, changes)
        sides = self.kind.rule.sides(value)
        for name in ("scales", "range", "deviation", "variance"):
            detail = getattr(self, name)
            if isinstance(detail, Doubling):
                detail = detail.name
            if detail is not None:
                sides = sides._replace(**{name: read_detail(detail, instance, changes)})
        return sides

    def draw(self, seed: int, count: int, control: Control | None = None) -> Instance:
        """A batch of instances, drawn once in a process for equal arguments.

        Args:
            count: number of instances, the leading axis of every array.
            control: its sampler replaces that of the claim, if it has one.
        """
        return draw(self.sampler(control), seed, count)

    def sampler(self, control: Control | None = None) -> Sampler:
        """The sampler of the claim, or of a control, with the doubled scales that it reads."""
        sampler = self.sample if control is None or control.sample is None else control.sample
        if self.declared and self.declared.keys() <= set(parameters(sampler).options):
            return partial(sampler, **self.declared)
        return sampler

    def sized(self, **sizes: int) -> "Claim":
        """The same claim on instances of other sizes, some of the declared ones."""
        return replace(self, sample=partial(self.sample, **sizes), sizes={**self.sizes, **sizes})

    def project_instance(self, instance: Instance) -> Instance:
        """An instance after `project`, which brings it back into the assumptions."""
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


OUR_WORDING = (Provenance.RECALLED, Provenance.RECONSTRUCTED)
"""A paper's statement in our wording."""


@runtime_checkable
class Stated(Protocol):
    """A claim, or what a source says of one."""

    @property
    def status(self) -> Status:
        """How our statement relates to the paper's."""
        ...

    @property
    def source(self) -> Source:
        """Where our text of the statement comes from."""
        ...


@refuse_misfits
def provenance_of(claim: Stated) -> Provenance:
    """The provenance of a claim's statement; `PRINTED` only if we read it in the paper.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> provenance_of(one_claim("trauger2023sequence/lemma-3-2")).value
        'as printed'
        >>> provenance_of(one_claim("gu2024exploring/theorem-6-6")).value
        'as recalled'
    """
    if claim.status in (Status.AS_PRINTED, Status.ERRATUM):
        return Provenance.PRINTED
    if claim.status in (Status.CORRECTED, Status.SHARPENED):
        return Provenance.OWN
    if claim.source is Source.RECALLED:
        return Provenance.RECALLED
    return Provenance.OWN if claim.status is Status.NEW else Provenance.RECONSTRUCTED


@refuse_misfits
def provenance_text(claim: Stated) -> str:
    """The provenance of a claim's statement, with its status if that says more.

    Examples:
        >>> from attlas.verify.registry import one_claim
        >>> provenance_text(one_claim("trauger2023sequence/lemma-3-2"))
        'as printed'
        >>> provenance_text(one_claim("gu2024exploring/theorem-f-2-units"))
        'as reconstructed: suspected erratum'
    """
    provenance = provenance_of(claim)
    plain = Status.AS_PRINTED if provenance is Provenance.PRINTED else Status.RECONSTRUCTED
    return str(provenance) if claim.status is plain else f"{provenance}: {claim.status}"


def wording_sentence(provenances: Iterable[Provenance]) -> str:
    """A sentence on statements that are the paper's in our words; empty without any.

    Examples:
        >>> print(wording_sentence([Provenance.PRINTED, Provenance.RECALLED]))
        A verdict on a statement as recalled is about our wording of the paper.
        >>> wording_sentence([Provenance.PRINTED])
        ''
    """
    present = set(provenances)
    ours = [str(provenance) for provenance in OUR_WORDING if provenance in present]
    if not ours:
        return ""
    return f"A verdict on a statement {' or '.join(ours)} is about our wording of the paper."
