"""From a function with its details to a claim: name, paper, statement and defaults."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

import jax
import numpy as np

from attlas.claims.claim import (
    Assumption,
    Claim,
    Control,
    Expectation,
    Kind,
    ProofStep,
    Source,
    Status,
    assume,
)
from attlas.claims.sampling import Sampler
from attlas.claims.sides import Doubling
from attlas.claims.verdict import Outcome, Witness
from attlas.claims.well_formed import refuse_malformed, refuse_misfit, try_out
from attlas.core.errors import UserError, refuse_misfits
from attlas.core.names import call_by_name, nearest, parameters
from attlas.projects.project import is_announced, paper_of, project_of

if TYPE_CHECKING:  # most claims declare none
    from attlas.claims.domains.domain import Domain

BACKENDS = ("jax", "numpy")
Decorator = Callable[[Callable[..., Any]], Claim]


class Details(TypedDict, total=False):
    """What every decorator takes by keyword; `attlas.claims.claim.Claim` describes the others.

    Attributes:
        sample: draws instances; not needed beside a witness, nor where `domains` declare the
            shape of every array.
        domains: where arrays lie, such as `Ball("W", 1.0)`: each draws instances, is an assumption,
            and projects an array that a search moved.
        sizes: numbers of the names in the shapes, such as {"n": 4}; a search may let them grow.
        quantities: names of sizes and arrays, or functions of named arrays by name, whose
            exponents the check should test.
        attained: the statement claims to be tight: the least tightness that the check must show.
        controls: false variants, at least one.
        assumptions: conditions, made by `assume`.
        search_over: name or names of the arrays that a challenge moves; by default those with a
            domain where every array has one, else the random numbers of `sample`.
        project: map of named arrays back into the assumptions.
        recertify: solves again after a step of a search.
        status: relation to the printed text; as printed for `Source.FOUND`, else the `status` of
            the project, and new outside a project.
        expect: any other outcome than SUPPORTED, with its reason.
        independent: what each instance of a probability or expectation draws anew, independently
            of all others, such as "a sample and its labels"; required there. The check detects
            copies and near-copies, but no other dependence.
        backend: "numpy" where function, assumptions and `project` are plain NumPy: nothing is
            compiled, and a search uses no gradients.
    """

    sample: Sampler
    controls: Sequence[Control]
    assumptions: Sequence[Assumption]
    domains: "Sequence[Domain]"
    sizes: Mapping[str, int]
    quantities: Sequence[str] | Mapping[str, Any]
    attained: float
    search_over: str | Sequence[str]
    project: Callable[..., Mapping[str, Any]]
    recertify: Callable[..., Mapping[str, Any]]
    evaluations: int
    not_attacked: str
    status: Status
    expect: Expectation
    count: int
    roundings: int
    enumerates: int
    alike: bool
    independent: str
    witness: Callable[[], Witness]
    proof_step: ProofStep
    backend: Literal["jax", "numpy"]


def claim_maker(
    kind: Kind,
    locator: Any,
    source: Source,
    details: Details,
    written: Callable[..., Any] | None = None,
    **special: Any,
) -> Decorator:
    """The decorator of one kind of claim.

    Args:
        locator: place of the statement in the paper; the function's name when empty.
        written: the user's function, where the engine evaluates another one in its place.
        **special: details of one kind alone.

    Raises:
        UserError: names the claim, the argument and the remedy.

    Examples:
        >>> claim_maker(Kind.IDENTITY, len, Source.DERIVED, {})
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: claim 'len' has no control: write @identity(sample=..., ...
    """
    refuse_misplaced(kind, locator, details)

    def wrap(function: Callable[..., Any]) -> Claim:
        original = inspect.unwrap(written or function)
        code, title = original.__code__, original.__name__.strip("_")
        paper = _paper(original)
        name = f"{paper}/{title.replace('_', '-')}"
        stated = {"locator": locator, "source": source, **details, **special}
        refuse_misfit(f"claim '{name}'", kind, stated)
        statement, remark = _statement(name, original.__doc__)
        status = Status.AS_PRINTED if source is Source.FOUND else status_of_file(code.co_filename)
        claim = Claim(
            name=name,
            paper=paper,
            locator=str(locator) or title.replace("_", " ").capitalize(),
            statement=statement,
            remark=remark,
            kind=kind,
            source=source,
            function=function,
            place=(code.co_filename, code.co_firstlineno),
            **_filled(name, kind, function, {"status": status, **details, **special}),
        )
        refuse_malformed(claim)
        _refuse_unfit_for_kind(claim)
        # What is installed was tried when its author defined it; a trial costs 50 ms a claim.
        if not is_announced(original.__module__):
            try_out(claim)
        return claim

    return wrap


def refuse_misplaced(kind: Any, locator: Any, details: Details) -> None:
    """Refuse a value that is no kind, and a function in the place of the locator.

    Raises:
        UserError: names what stands there, and what to write.

    Examples:
        >>> refuse_misplaced(len, "", {})
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: <built-in function len> is no kind of claim: give one such ...
    """
    if not isinstance(kind, Kind):
        raise UserError(
            f"{kind!r:.40} is no kind of claim: give one such as Kind.INEQUALITY, first in "
            "@computed(...), or as of= in @erratum(...)"
        )
    if not details and callable(locator):
        needed = "".join(f"{name}=..., " for name in kind.rule.details[:1])
        raise UserError(
            f"claim '{getattr(locator, '__name__', locator)}' has no control: write "
            f"@{kind}({needed}sample=..., controls=[Control(...)]) above it"
        )


def _refuse_unfit_for_kind(claim: Claim) -> None:
    """Refuse details that concern other kinds, and trials that nothing calls independent."""
    where = f"claim '{claim.name}'"
    rule = claim.kind.rule
    searchable = " and ".join(kind.rule.plural for kind in Kind if kind.rule.searchable)
    trials = " and ".join(kind.rule.plural for kind in Kind if kind.rule.trials)
    if claim.search_over and not rule.searchable:
        raise UserError(f"{where}: search_over is for {searchable}: leave it out")
    if claim.not_attacked and (claim.search_over or not rule.searchable):
        raise UserError(
            f"{where}: not_attacked is for {searchable} without search_over: leave it out"
        )
    has_ratio = rule.searchable and not rule.scaled
    if claim.attained is not None and not (0 < claim.attained <= 1 and has_ratio):
        raise UserError(
            f"{where}: attained={claim.attained} is for inequalities: give a ratio up to 1"
        )
    if rule.trials and not claim.independent.strip():
        raise UserError(
            f"{where}: its trials must be independent draws: say what each of them draws anew, "
            "such as independent='a sample and its labels'"
        )
    if claim.independent and not rule.trials:
        raise UserError(f"{where}: independent is for {trials}: leave it out")
    for kind in Kind:
        for name in kind.rule.details:
            value = getattr(claim, name)
            is_given = bool(value) if isinstance(value, tuple) else value is not None
            if is_given and name not in rule.details:
                raise UserError(f"{where}: {name}= is for {_kinds_with(name)}: leave it out")
    if isinstance(claim.scales, Doubling):
        arrays, _, takes_all = parameters(claim.function)
        if not takes_all and claim.scales.name not in arrays:
            raise UserError(
                f"{where}: scales={claim.scales} are read by no parameter of the function: "
                f"{nearest(claim.scales.name, arrays)}"
            )


def _kinds_with(detail: str) -> str:
    return " and ".join(kind.rule.plural for kind in Kind if detail in kind.rule.details)


@refuse_misfits
def refuse_other_than_one(conditions: Mapping[str, Any]) -> None:
    """Refuse an expectation without a condition on left - right, or with several.

    Raises:
        UserError: names the three conditions.

    Examples:
        >>> refuse_other_than_one({"range": 1.0, "deviation": None, "variance": None})
    """
    if sum(value is not None for value in conditions.values()) != 1:
        raise UserError(
            "an expectation needs one condition on left - right: range=, deviation= or variance="
        )


def corrected_control(reason: str, corrected: Control | None) -> Control:
    """The control of an erratum that is the true statement.

    Args:
        reason: why the printed statement is false.
        corrected: the changes that make it true.

    Raises:
        UserError: if one of the two is missing.

    Examples:
        >>> corrected_control("x = -1", Control("of |x|", size=abs)).expect.value
        'SUPPORTED'
    """
    if not isinstance(reason, str) or not reason.strip() or not isinstance(corrected, Control):
        raise UserError(
            "an erratum needs reason='why the printed statement is false' and corrected=Control("
            "...) with the changes that make it true"
        )
    changes = {"sample": corrected.sample, **corrected.changes}
    return Control(corrected.description, expect=Outcome.SUPPORTED, **changes)


def _filled(
    name: str, kind: Kind, function: Callable[..., Any], details: dict[str, Any]
) -> dict[str, Any]:
    """The details as tuples, with the sampler that a witness or the domains stand for."""
    conditions = tuple(details.get("assumptions", ()))
    for condition in conditions:
        if not isinstance(condition, Assumption):
            raise UserError(
                f"claim '{name}': {condition!r} is not an assumption: "
                "write assume('text', predicate)"
            )
    if details.get("backend", "jax") not in BACKENDS:
        raise UserError(f"claim '{name}': backend={details['backend']!r} is neither jax nor numpy")
    if details.get("backend") == "numpy" and details.get("project") is not None:
        details["project"] = _on_host(details["project"])
    stated = tuple(details.get("parameters", ()))
    if stated:
        from attlas.claims.domains.trials import TrialSampler, refuse_parameters

        refuse_parameters(stated, details.get("sample"), f"claim '{name}'")
        numbers = tuple(details.get("sizes", {}).items())
        details["sample"] = TrialSampler(stated, details["sample"], numbers)
    domains = (*stated, *details.get("domains", ()))
    if domains:
        from attlas.claims.domains.declared import refuse_unfit

        refuse_unfit(domains, f"claim '{name}'")
    sizes = dict(details.get("sizes", {}))
    searched = details.get("search_over")
    if searched is None:
        searched = _searched_by_default(kind, function, details, domains)
    if details.get("witness") is not None:
        details.setdefault("sample", _repeated(details["witness"]))
    if domains:
        from attlas.claims.domains.declared import DeclaredSampler, projection

        details.setdefault("sample", DeclaredSampler(domains, tuple(sizes.items())))
        details["project"] = projection(domains, details.get("project"))
    if "sample" not in details:
        raise UserError(
            f"claim '{name}' draws no instance: give sample=, domains= with shapes, or a witness="
        )
    quantities = details.get("quantities", ())
    quantities = (quantities,) if isinstance(quantities, str) else quantities
    return {
        **details,
        "controls": tuple(details.get("controls", ())),
        "domains": domains,
        "sizes": sizes,
        "quantities": dict(quantities)
        if isinstance(quantities, Mapping)
        else {name: name for name in quantities},
        "assumptions": (*(assume(d.condition(), _inside(d)) for d in domains), *conditions),
        "search_over": (searched,) if isinstance(searched, str) else tuple(searched),
    }


def _inside(domain: "Domain") -> Callable[..., Any]:
    """The condition of a domain, as a predicate on named arrays."""
    return lambda **arrays: domain.holds(arrays)


def _on_host(project: Callable[..., Any]) -> Callable[..., Mapping[str, Any]]:
    """A projection in plain NumPy as one that a program of JAX calls, instance by instance."""

    def projected(**arrays: Any) -> Mapping[str, Any]:
        def call(instance: Mapping[str, Any]) -> Mapping[str, Any]:
            plain = {name: np.array(value) for name, value in instance.items()}
            moved = {**plain, **call_by_name(project, plain)}
            return {k: np.asarray(moved[k], dtype=plain[k].dtype) for k in plain}

        shapes = {k: jax.ShapeDtypeStruct(v.shape, v.dtype) for k, v in arrays.items()}
        return jax.pure_callback(call, shapes, arrays, vmap_method="sequential")

    return projected


def _searched_by_default(
    kind: Kind,
    function: Callable[..., Any],
    details: Mapping[str, Any],
    domains: "Sequence[Domain]",
) -> tuple[str, ...]:
    """The arrays with a domain, where no other array depends on them."""
    # An array that a sampler computes from others, such as a solution, must change with them:
    # unless the claim declares every array that it reads, or computes them again, the attack
    # perturbs the draws instead.
    expected = details.get("expect", Expectation()).outcome is Outcome.SUPPORTED
    if not kind.rule.searchable or not expected or details.get("not_attacked"):
        return ()
    names = {domain.name for domain in domains}
    read = parameters(function)
    redrawn = "sample" not in details or "recertify" in details
    if "witness" in details or not (redrawn or (not read.takes_all and set(read.arrays) <= names)):
        return ()
    return tuple(domain.name for domain in domains if domain.moves)


def _paper(function: Callable[..., Any]) -> str:
    """The key of the file's project, else the file."""
    return paper_of(function.__code__.co_filename) or "notebook"


def status_of_file(filename: str) -> Status:
    """The status that a file's project gives to claims that declare none and were not printed.

    Examples:
        >>> status_of_file("<stdin>").value
        'new'
    """
    file = Path(filename.partition("[cell ")[0])
    project = project_of(file.resolve()) if file.is_file() else None
    return Status.NEW if project is None else Status(project.status)


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

    def sample(rng: np.random.Generator, count: int) -> Mapping[str, np.ndarray]:
        del rng
        return {k: np.repeat(np.asarray(v)[None], count, axis=0) for k, v in witness().items()}

    return sample
