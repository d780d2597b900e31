"""What `attlas list` shows: projects as their sources declare them, installed papers as they are.

The code of a project does not run to be listed. Installed papers are imported: whoever installs a
package trusts it.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from attlas.claims.claim import Claim, Source, Status
from attlas.claims.claim_maker import status_of_file
from attlas.claims.kinds.kind import Kind
from attlas.claims.todo import Todo
from attlas.core.errors import UserError
from attlas.experiments import find
from attlas.experiments.experiment import Experiment, paper_of_module
from attlas.projects.declared import Declaration, Declarations, declared
from attlas.projects.loading import shown_path
from attlas.projects.places import Place, is_place, is_written_as_place, read_place
from attlas.projects.project import Project, listed, paper_of, project_here
from attlas.verify import registry
from attlas.verify.searchable import is_searchable, why_not_attacked

COMPUTED = "(computed)"
"""In place of what only running the code of a project says."""
Named = TypeVar("Named", "ListedClaim", "ListedExperiment")


@dataclass(frozen=True)
class ListedClaim:
    """A claim in a list.

    Attributes:
        attacked: over what a search for a counterexample moves.
        place: file and line of the definition.
        home: empty, since no code was loaded.
    """

    name: str
    paper: str
    status: Status
    source: Source
    kind: str
    locator: str
    attacked: str
    place: tuple[str, int]
    home: str = ""


@dataclass(frozen=True)
class ListedExperiment:
    """An experiment in a list; one of an installed paper comes with its object."""

    name: str
    paper: str
    question: str
    place: tuple[str, int]
    experiment: Experiment | None = None


@dataclass(frozen=True)
class Listed:
    """Claims and experiments in a list, and lines on what only running code shows."""

    claims: tuple[ListedClaim, ...] = ()
    experiments: tuple[ListedExperiment, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Listed") -> "Listed":
        experiments = {e.name: e for e in (*self.experiments, *other.experiments)}
        claims = {claim.name: claim for claim in (*self.claims, *other.claims)}
        notes = tuple(dict.fromkeys((*self.notes, *other.notes)))
        return Listed(tuple(claims.values()), tuple(experiments.values()), notes)

    def named(self, name: str) -> "Listed":
        """Those of a name, of a slug without its paper, or of a paper; with all lines."""
        claims = tuple(c for c in self.claims if name in (c.name, c.paper, c.name.split("/", 1)[1]))
        experiments = tuple(e for e in self.experiments if name in (e.name, e.paper))
        return Listed(claims, experiments, self.notes)


def list_named(names: Sequence[str] = (), *, experiments: bool = True) -> Listed:
    """What names and places select, without duplicates; no code of a user's project runs.

    Args:
        names: claims, papers, experiments or places, as `attlas.site.selection.select` takes them.
        experiments: whether to list experiments of installed papers, which needs an extra.

    Raises:
        UserError: if a name is unknown, or a place declares nothing.

    Examples:
        >>> {claim.paper for claim in list_named(["trauger2023sequence"]).claims}
        {'trauger2023sequence'}
    """
    if not names:
        project = project_here()
        here = _of_environment() if project is None else _of_project(project) + _of_environment()
        return here if project is not None else _installed("", experiments) + here
    result = Listed()
    for name in names:
        result += _of_place(name) if is_written_as_place(name) else _of_name(name, experiments)
    return result


def _of_name(name: str, experiments: bool) -> Listed:
    project = project_here()
    here = (Listed() if project is None else _of_project(project)) + _of_environment()
    meant = here.named(name)
    if not meant.claims and not meant.experiments:
        meant = _installed(name, experiments) + meant
    if meant.claims or meant.experiments:
        return meant
    if is_place(name):
        return _of_place(name)
    known = [*here.claims, *_installed("", experiments=False).claims]
    raise UserError(registry.unknown_claim(name, known))


def list_declared(places: Sequence[Place]) -> tuple[Listed, tuple[Todo, ...]]:
    """The claims, experiments and stubs of a project's places, as their sources declare them.

    Raises:
        UserError: if a notebook among them has no tagged cell.

    Examples:
        >>> list_declared([])
        (Listed(claims=(), experiments=(), notes=()), ())
    """
    declarations = declared(places)
    stubs = tuple(filter(None, map(_declared_stub, declarations.stubs)))
    return _shown(declarations), stubs


def _declared_stub(declaration: Declaration) -> Todo | None:
    locator, reason = declaration.text("locator", 0), declaration.text("reason")
    if not locator:
        return None
    texts = (declaration.text("label") or "", declaration.text("kind") or "")
    return Todo(
        paper_of(declaration.place[0]) or "notebook",
        locator,
        *texts,
        declaration.texts("assumptions") or (),
        COMPUTED if reason is None else reason,
        declaration.docstring,
        declaration.place,
    )


def _of_place(text: str) -> Listed:
    found = _shown(declared([text]), text)
    if not found.claims and not found.experiments and not found.notes:
        raise UserError(f"{text} declares no claim and no experiment")
    return found


def _of_project(project: Project) -> Listed:
    """The claims and experiments of the project of the working directory."""
    only_experiments = project.experiments and not project.claims
    texts = (*(() if only_experiments else project.claims_or_folder), *project.experiments)
    return _shown(declared([read_place(text, project.root) for text in texts]))


def _of_environment() -> Listed:
    """Those of the places that ATTLAS_CLAIMS and ATTLAS_EXPERIMENTS list."""
    result = Listed()
    for variable in (registry.VARIABLE, find.VARIABLE):
        for place in listed(os.environ.get(variable, "")):
            try:
                result += _shown(declared([place]))
            except UserError as error:
                raise UserError(f"{variable} names '{place}': {error}") from error
    return result


def _installed(name: str, experiments: bool) -> Listed:
    """Those of installed papers, by a name or all."""
    claims = registry.installed_claims(name)
    tests = find.installed_experiments(name) if experiments or (name and not claims) else ()
    everything = Listed(tuple(map(_of_claim, claims)), tuple(map(_of_experiment, tests)))
    return everything.named(name) if name else everything


def _of_claim(claim: Claim) -> ListedClaim:
    reason = why_not_attacked(claim)
    attacked = f"not attacked: {reason}" if reason else ", ".join(claim.search_over)
    return ListedClaim(
        claim.name,
        claim.paper,
        claim.status,
        claim.source,
        str(claim.kind),
        claim.locator,
        attacked or ("its random draws" if is_searchable(claim) else "-"),
        claim.place,
    )


def _of_experiment(experiment: Experiment) -> ListedExperiment:
    e = experiment
    return ListedExperiment(e.name, e.paper, e.question, e.source, e)


def _shown(declarations: Declarations, place: str = "") -> Listed:
    """What declarations say, with a line for each that only running the code would complete."""
    claims = [(d, declared_claim(d)) for d in declarations.claims]
    experiments = [(d, _declared_experiment(d)) for d in declarations.experiments]
    unread = [d.place for d, shown in (*claims, *experiments) if shown is None]
    notes = [
        f"{shown_path(file)}:{line} makes its claims or experiments when it runs: "
        f"`attlas check {place or shown_path(file)}` runs it"
        for file, line in sorted({*declarations.unread, *unread})
    ]
    return Listed(
        tuple(shown for _, shown in claims if shown is not None),
        tuple(shown for _, shown in experiments if shown is not None),
        tuple(notes),
    )


def declared_claim(declaration: Declaration) -> ListedClaim | None:
    """A claim as its source declares it; None if its kind, source or status is computed."""
    makes = declaration.maker
    is_erratum, is_computed = makes == "erratum", makes == "computed"
    first = 1 if is_computed else 0
    try:
        source = Source[declaration.text("source", first + 1) or _default_source(is_erratum)]
        kind = _kind(declaration)
        status = _status(declaration, source, is_erratum)
    except KeyError:
        return None
    if None in (declaration.text("source", first + 1), declaration.text("status")):
        return None
    file, title = declaration.place[0], declaration.function.strip("_")
    paper = paper_of(file) or "notebook"
    locator = declaration.text("locator", first)
    if locator is None:
        locator = COMPUTED
    return ListedClaim(
        f"{paper}/{title.replace('_', '-')}",
        paper,
        status,
        source,
        str(kind),
        locator or title.replace("_", " ").capitalize(),
        _attacked(declaration, kind),
        declaration.place,
    )


def _default_source(is_erratum: bool) -> str:
    return Source.FOUND.name if is_erratum else Source.DERIVED.name


def _kind(declaration: Declaration) -> Kind:
    if declaration.maker == "computed":
        return Kind[declaration.text("kind", 0) or ""]
    if declaration.maker == "erratum":
        return Kind[declaration.text("of") or "INEQUALITY"]
    return Kind(declaration.maker)


def _status(declaration: Declaration, source: Source, is_erratum: bool) -> Status:
    if written := declaration.text("status"):
        return Status[written]
    if is_erratum:
        return Status.ERRATUM if source is Source.FOUND else Status.SUSPECTED_ERRATUM
    file = declaration.place[0]
    return Status.AS_PRINTED if source is Source.FOUND else status_of_file(file)


def _attacked(declaration: Declaration, kind: Kind) -> str:
    """What the source says about attacks; a default needs the objects themselves."""
    names = declaration.texts("search_over")
    if not kind.rule.searchable:
        return "-"
    if names:
        return ", ".join(names)
    if reason := declaration.text("not_attacked"):
        return f"not attacked: {reason}"
    return COMPUTED if names is None else "the default"


def _declared_experiment(declaration: Declaration) -> ListedExperiment | None:
    name, question = declaration.text("name"), declaration.text("question")
    paper = declaration.text("paper")
    if name is None or paper is None:
        return None
    package, _, module = declaration.module.rpartition(".")
    sentence = COMPUTED if question is None else " ".join(question.split("\n\n")[0].split())
    written = paper or paper_of_module(package, declaration.place[0])
    return ListedExperiment(name or module, written, sentence, declaration.place)
