"""Find claims and errata: of installed papers, of a user's project, and at any place."""

import inspect
import os
import traceback
from collections.abc import Callable, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar, runtime_checkable

import jax

from attlas.claims.claim import Claim, Erratum
from attlas.core.errors import UserError, in_short, refuse_misfits
from attlas.projects.loading import (
    load_place,
    objects_of,
    objects_of_paper,
    objects_of_papers,
    shown_path,
)
from attlas.projects.places import Place, is_place, is_written_as_place, read_place
from attlas.projects.project import listed, project_here
from attlas.projects.source import functions_defined

if TYPE_CHECKING:  # a file of a user concerns none
    from attlas.projects.installed import InstalledPaper

P = ParamSpec("P")
R = TypeVar("R")
VARIABLE = "ATTLAS_CLAIMS"


def find_claims(names: Sequence[str] | str = ()) -> tuple[Claim, ...]:
    """Claims by name or by place, in order of paper and file.

    Names are looked up in the project of the working directory (`[tool.attlas]` in its
    `pyproject.toml`), then in the installed papers (packages that announce claims by the entry
    point `attlas.claims`) and the places that ATTLAS_CLAIMS names. Of an installed paper only the
    modules are imported whose text defines the name.

    Args:
        names: claim names, papers, or slugs without the paper; or places: a file, a folder, a
            notebook with cells tagged `attlas`, a module, each also with `:NAME`. Empty for the
            claims of the project, or outside a project for all. A single name need not be in a
            list.

    Raises:
        UserError: for an unknown name, with the nearest ones; for a place without claims, or that
            cannot be imported; for two claims of one name.

    Examples:
        >>> len(find_claims(["julistiono2024optimizing/lemma-12"]))
        1
    """
    if not names:
        installed = () if project_here() is not None else installed_claims()
        return _named_once((*installed, *_claims_of_project(), *_claims_of_environment()))
    selection: dict[str, Claim] = {}
    for name in (names,) if isinstance(names, str) else names:
        for claim in claims_of(name) if is_written_as_place(name) else _claims_named(name):
            _refuse_twice(selection.setdefault(claim.name, claim), claim)
    return tuple(selection.values())


def one_claim(claim: Any) -> Claim:
    """The claim itself, or the one that a name means.

    Raises:
        UserError: if it is neither a claim nor a name, or the name means several.

    Examples:
        >>> one_claim("lemma-12").name
        'julistiono2024optimizing/lemma-12'
    """
    if isinstance(claim, Claim):
        return claim
    if not isinstance(claim, str):
        raise UserError(
            f"a value of type {type(claim).__name__} is no claim: give one claim or its name, "
            "and loop over find_claims for several"
        )
    first, *others = find_claims(claim)
    if others:
        raise UserError(
            f"'{claim}' names {1 + len(others)} claims: choose one of "
            f"`attlas list claims {claim}`, such as '{first.name}'"
        )
    return first


def refuse_failing_claim(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of a claim, or of its name, answer an error of the claim in one line.

    An error is one of the claim where its sampler, sides, assumptions, projection or controls stand
    in the traceback; it stays the cause. Other errors are ours and pass.

    Returns:
        The same function; it raises `UserError` for such an error, with the line of the claim, and
        for arguments and fields of another type than annotated, as `refuse_misfits` does.

    Examples:
        >>> @refuse_failing_claim
        ... def is_expected_to_hold(claim: Claim) -> bool:
        ...     return claim.expect.outcome == "SUPPORTED"
        >>> is_expected_to_hold(one_claim("trauger2023sequence/lemma-3-2"))
        True
    """
    checked = refuse_misfits(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return checked(*args, **kwargs)
        except UserError:
            raise
        except Exception as error:
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            claim = one_claim(next(iter(bound.arguments.values())))
            if not any(
                f.f_code in _codes(claim) for f, _ in traceback.walk_tb(error.__traceback__)
            ):
                raise
            raise UserError(failure(claim, error, bound.arguments.get("count", 0))) from error

    return called


@refuse_misfits
def failure(claim: Claim, error: Exception, count: int | None) -> str:
    """The line on a claim whose parts failed on so many instances; None stands for its own number.

    Examples:
        >>> claim = one_claim("trauger2023sequence/lemma-3-2")
        >>> failure(claim, KeyError("x"), 2).partition(": ")[2]
        "claim 'trauger2023sequence/lemma-3-2' fails on 2 instances with KeyError: 'x'"
    """
    number = claim.count if count is None else count
    tried = f" on {number} instances" if number else ""
    where = f"{Path(claim.place[0]).name}:{claim.place[1]}"
    return f"{where}: claim '{claim.name}' fails{tried} with {in_short(error)}"


def _codes(claim: Claim) -> list[Any]:
    """The programs of a claim's own functions."""
    functions: list[Any] = [claim.function, claim.sample, claim.project, claim.recertify]
    functions += [claim.witness, claim.scales, claim.level, claim.range, claim.deviation]
    functions += [claim.variance, *(each.predicate for each in claim.assumptions)]
    functions += [control.sample for control in claim.controls]
    plain = [f.func if isinstance(f, partial) else f for f in functions if callable(f)]
    return [getattr(inspect.unwrap(f), "__code__", None) for f in plain]


def _claims_named(name: str) -> Sequence[Claim]:
    """The claims of a name, which may be a place that is not written as one."""
    claims = claims_named(name)
    if claims:
        return claims
    if not is_place(name):
        raise UserError(unknown_claim(name, known_claims()))
    return claims_of(name)


def claims_named(name: str) -> tuple[Claim, ...]:
    """The claims of a name or of a paper's key; those of the project here come before all others.

    Raises:
        UserError: if a module that may define the name cannot be loaded.

    Examples:
        >>> claims_named("no-such-lemma")
        ()
    """
    for within in (_claims_of_project, partial(_installed_and_listed, name), known_claims):
        claims = within()
        meant = tuple(c for c in claims if name in (c.name, c.paper, c.name.split("/", 1)[1]))
        if meant:
            return meant
    return ()


def _installed_and_listed(name: str) -> tuple[Claim, ...]:
    """The claims of the installed modules that may define a name, and of the listed places."""
    return _named_once((*installed_claims(name), *_claims_of_environment()))


def installed_claims(name: str = "") -> tuple[Claim, ...]:
    """The claims of installed papers: all, or those of the modules that may define a name.

    Raises:
        UserError: if a module of the paper that is named cannot be loaded.

    Examples:
        >>> {claim.paper for claim in installed_claims("trauger2023sequence")}
        {'trauger2023sequence'}
    """
    from attlas.projects.installed import InstalledPaper, installed_papers

    key, slash, slug = name.rpartition("/")
    claims: list[Claim] = []
    with jax.enable_x64(True):
        if not name:
            return objects_of_papers(installed_papers(), InstalledPaper.claim_modules, Claim)
        for paper in installed_papers():
            if name == paper.key:
                claims += objects_of_paper(paper, InstalledPaper.claim_modules, Claim)
            elif slash and key == paper.key and paper.project:
                claims += objects_of_paper(paper, partial(_defining, slug), Claim)
            elif not slash and paper.project:
                # Another paper may have the claim: one that does not load must not hide it.
                claims += objects_of_papers([paper], partial(_defining, slug), Claim)
    return tuple(claims)


def _defining(slug: str, paper: "InstalledPaper") -> tuple[str, ...]:
    return paper.claim_modules_defining(slug)


def known_claims() -> tuple[Claim, ...]:
    """Every claim that a name can mean here: of installed papers, of the project, or listed.

    Raises:
        UserError: if a listed place cannot be loaded, or two claims have one name.
    """
    return _named_once((*installed_claims(), *_claims_of_project(), *_claims_of_environment()))


def claims_at(home: str, names: Sequence[str]) -> tuple[Claim, ...]:
    """Claims by their full names, in a process that is to check them.

    Raises:
        UserError: if one is missing there.
    """
    claims = {claim.name: claim for claim in (claims_of(home) if home else ())}
    for name in names:
        if name not in claims:
            raise UserError(
                f"the claim '{name}' is defined in this process alone: write it into a file, or "
                "use `attlas.check`"
            )
    return tuple(claims[name] for name in names)


def claims_of(place: str, base: Path | None = None) -> tuple[Claim, ...]:
    """The claims that a place of a user defines, in order of file and line.

    Args:
        place: a file, a folder, a notebook, a module, each also with `:NAME`.
        base: folder that paths are relative to; the working directory by default.

    Raises:
        UserError: if the place does not exist, cannot be imported (with the user's file and line),
            defines neither claims nor stubs, or two claims of one name.
    """
    meant = read_place(place, base)
    with jax.enable_x64(True):
        claims = objects_of(meant, Claim)
        if not claims and not _stubs(meant):  # a paper may still be all to do
            raise UserError(
                f"{place} defines no claim: decorate a function with @attlas.inequality(...) or "
                "another kind, see `python -m pydoc attlas.claims.statement`"
            )
        for loaded in load_place(meant):
            for name, path in loaded.files.items():
                if name == loaded.module.__name__:
                    _refuse_shadowed(path, vars(loaded.module))
    return _named_once(claims)


def find_errata(places: Sequence[str] = ()) -> tuple[Erratum, ...]:
    """The errata of some places, in order of file.

    Args:
        places: without any, the project of the working directory, or outside a project all
            installed papers.
    """
    if places:
        return tuple(e for place in places for e in objects_of(place, Erratum))
    project = project_here()
    if project is None:
        from attlas.projects.installed import InstalledPaper, installed_papers

        with jax.enable_x64(True):
            return objects_of_papers(installed_papers(), InstalledPaper.claim_modules, Erratum)
    locations = [read_place(place, project.root) for place in project.claims_or_folder]
    return tuple(e for place in locations for e in objects_of(place, Erratum))


def errata_of(paper: str) -> tuple[Erratum, ...]:
    """The errata of one paper: of the project of the working directory, or an installed one.

    Examples:
        >>> {erratum.paper for erratum in errata_of("trauger2023sequence")}
        {'trauger2023sequence'}
    """
    project = project_here()
    if project is not None and project.key == paper:
        return find_errata()
    from attlas.projects.installed import InstalledPaper, installed_papers

    with jax.enable_x64(True):
        errata = [
            erratum
            for installed in installed_papers()
            if installed.key == paper
            for erratum in objects_of_paper(installed, InstalledPaper.claim_modules, Erratum)
        ]
    return tuple(erratum for erratum in errata if erratum.paper == paper)


def _stubs(place: Place) -> bool:
    """Whether a place has stubs of statements, none of which is a claim."""
    from attlas.claims.todo import Todo

    return bool(objects_of(place, Todo))


def _claims_of_project() -> tuple[Claim, ...]:
    """The claims of the project of the working directory."""
    project = project_here()
    if project is None or (project.experiments and not project.claims):
        return ()
    return tuple(c for place in project.claims_or_folder for c in claims_of(place, project.root))


def _claims_of_environment() -> tuple[Claim, ...]:
    """The claims of the places that ATTLAS_CLAIMS lists."""
    claims: list[Claim] = []
    for place in listed(os.environ.get(VARIABLE, "")):
        try:
            claims += claims_of(place)
        except UserError as error:
            raise UserError(f"{VARIABLE} names '{place}': {error}") from error
    return tuple(claims)


@runtime_checkable
class _Named(Protocol):
    """A claim, or what a source says of one."""

    @property
    def name(self) -> str: ...

    @property
    def paper(self) -> str: ...


def unknown_claim(name: str, claims: Sequence[_Named]) -> str:
    """The error for a name that none of the claims has: nearest names, and where to look."""
    import difflib

    from attlas.projects.installed import known_places

    names = {c.name for c in claims} | {c.paper for c in claims}
    names |= {c.name.split("/", 1)[1] for c in claims}
    # `lemma-13` means one of `lemma-13-...` before it means a misspelt `lemma-12`.
    near = sorted((n for n in names if name and name in n), key=lambda n: (len(n), n))[:3]
    near = near or difflib.get_close_matches(name, sorted(names), n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "see `attlas list claims`."
    return f"there is no claim or paper '{name}': {hint} {known_places()}"


def _named_once(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The claims, each once; two of one name are refused."""
    unique: dict[str, Claim] = {}
    for claim in claims:
        _refuse_twice(unique.setdefault(claim.name, claim), claim)
    return tuple(unique.values())


def _refuse_twice(first: Claim, second: Claim) -> None:
    if first is second or first.place == second.place:
        return
    places = " and ".join(f"{shown_path(c.place[0])}:{c.place[1]}" for c in (first, second))
    raise UserError(f"{places} both define the claim '{first.name}': rename one of the functions")


def _refuse_shadowed(path: Path, defined: dict[str, object]) -> None:
    """Refuse a file in which a later function of the same name hides a claim."""
    first: dict[str, str] = {}
    for name, where in functions_defined(path):
        if name in first and isinstance(defined.get(name), Claim):
            raise UserError(
                f"{shown_path(first[name])} and {shown_path(where)} both define '{name}': rename "
                "one of the functions"
            )
        first.setdefault(name, where)
