"""Find claims and errata: those of the atlas, those of a user's project, and at any place."""

import difflib
import importlib.metadata
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jax

from attlas.core.claim import Claim, Erratum
from attlas.core.discovery import scan
from attlas.core.errors import UserError
from attlas.core.own.loading import load_place, objects_of, shown_path
from attlas.core.own.places import (
    is_importable,
    is_module_name,
    is_written_as_place,
    read_place,
)
from attlas.core.own.project import Project, project_of
from attlas.core.own.source import functions_defined

VARIABLE = "ATTLAS_CLAIMS"
GROUP = "attlas.claims"


@cache
def _all_claims() -> tuple[Claim, ...]:
    with jax.enable_x64(True):
        claims = scan("attlas.claims", Claim)
    return _named_once(claims)


def find_claims(names: Sequence[str] = ()) -> tuple[Claim, ...]:
    """Claims by name or by place, of the atlas and of one's own.

    One's own are those of the project of the working directory (`[tool.attlas]` in its
    `pyproject.toml`), of the places named in ATTLAS_CLAIMS, and of installed packages that
    announce some by the entry point `attlas.claims`.

    Args:
        names: claim names, papers, or slugs without the paper; or places: a file, a folder, a
            notebook with cells tagged `attlas`, a module, each also with `:NAME`. Where there
            are none: the claims of the project, or outside a project all that there are.

    Returns:
        The claims in order of paper and file.

    Raises:
        UserError: for an unknown name, with the nearest ones; for a place without claims, or that
            cannot be imported; for two claims of one name.

    Examples:
        >>> len(find_claims(["julistiono2024optimizing/lemma-12"]))
        1
    """
    if not names:
        own = _claims_of_project()
        return own or _named_once((*_all_claims(), *_own_claims()))
    chosen: dict[str, Claim] = {}
    known: tuple[Claim, ...] | None = None
    for name in names:
        found: Sequence[Claim] = ()
        if not is_written_as_place(name):
            known = (
                (*_all_claims(), *_own_claims(), *_claims_of_project()) if known is None else known
            )
            found = [c for c in known if name in (c.name, c.paper, c.name.split("/", 1)[1])]
        if not found:
            if not (is_written_as_place(name) or _is_place(name)):
                raise UserError(_unknown(name, known or ()))
            found = claims_of(name)
        for claim in found:
            _refuse_twice(chosen.setdefault(claim.name, claim), claim)
    return tuple(chosen.values())


def claims_of(place: str, base: Path | None = None) -> tuple[Claim, ...]:
    """The claims that a place of the user's defines.

    Args:
        place: a file, a folder, a notebook, a module, each also with `:NAME`.
        base: folder that paths are relative to; the working directory by default.

    Returns:
        The claims in order of file and line.

    Raises:
        UserError: if the place does not exist, cannot be imported (with the user's own file and
            line), defines no claim, or two of one name.
    """
    meant = read_place(place, base)
    with jax.enable_x64(True):
        claims = objects_of(meant, Claim)
        if not claims:
            raise UserError(
                f"{place} defines no claim: decorate a function with @attlas.inequality(...) or "
                "another kind, see `python -m pydoc attlas.core.statement`"
            )
        for loaded in load_place(meant):
            for name, path in loaded.files.items():
                if name == loaded.module.__name__:
                    _refuse_shadowed(path, vars(loaded.module))
    return _named_once(claims)


def find_errata(places: Sequence[str] = ()) -> tuple[Erratum, ...]:
    """All errata of the papers, or those of some places.

    Args:
        places: of one's own; those of the atlas and of the project when empty.

    Returns:
        The errata in order of paper and file.
    """
    if places:
        return tuple(e for place in places for e in objects_of(place, Erratum))
    project = project_of(Path.cwd())
    own = [] if project is None else _places_of(project)
    found = [e for place, base in own for e in objects_of(read_place(place, base), Erratum)]
    return (*scan("attlas.claims", Erratum), *found)


def _claims_of_project() -> tuple[Claim, ...]:
    """Those of the project of the working directory."""
    project = project_of(Path.cwd())
    if project is None or not (project.claims or not project.experiments):
        return ()
    return _named_once([c for place, base in _places_of(project) for c in claims_of(place, base)])


def _places_of(project: Project) -> list[tuple[str, Path]]:
    """The places that a project names, or its folder where it names none."""
    return [(place, project.root) for place in project.claims or (".",)]


def _own_claims() -> tuple[Claim, ...]:
    """Those of ATTLAS_CLAIMS and of installed packages."""
    found: list[Claim] = []
    for place in _listed(os.environ.get(VARIABLE, "")):
        try:
            found += claims_of(place)
        except UserError as error:
            raise UserError(f"{VARIABLE} names '{place}': {error}") from error
    for entry in importlib.metadata.entry_points(group=GROUP):
        try:
            found += claims_of(entry.value)
        except UserError as error:
            raise UserError(f"the installed '{entry.name}' announces claims: {error}") from error
    return _named_once(found)


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_place(name: str) -> bool:
    """Whether a text that is no known name means a path or a module."""
    there = bool(name) and Path(name).exists()
    return there or (is_module_name(name) and is_importable(name, Path.cwd()))


def _unknown(name: str, claims: Sequence[Claim]) -> str:
    known = {c.name for c in claims} | {c.paper for c in claims}
    known |= {c.name.split("/", 1)[1] for c in claims}
    # `lemma-13` means one of `lemma-13-...` before it means a misspelt `lemma-12`.
    near = sorted((n for n in known if name and name in n), key=lambda n: (len(n), n))[:3]
    near = near or difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(near)}?" if near else "see `attlas list claims`"
    return f"there is no claim or paper '{name}': {hint}"


def _named_once(claims: Sequence[Claim]) -> tuple[Claim, ...]:
    """The claims, each once; two of one name are refused."""
    found: dict[str, Claim] = {}
    for claim in claims:
        _refuse_twice(found.setdefault(claim.name, claim), claim)
    return tuple(found.values())


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
