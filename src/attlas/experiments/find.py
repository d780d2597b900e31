"""Find experiments by name or by place: in installed papers, in a project, at any place."""

import difflib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from attlas.core.errors import UserError
from attlas.experiments.experiment import Experiment
from attlas.projects.installed import InstalledPaper, installed_papers, known_places
from attlas.projects.loading import objects_of, objects_of_paper, objects_of_papers, shown_path
from attlas.projects.places import is_place, is_written_as_place, read_place
from attlas.projects.project import listed, project_here

VARIABLE = "ATTLAS_EXPERIMENTS"


def find_experiments() -> tuple[Experiment, ...]:
    """The experiments of the project of the working directory; outside a project, all.

    The environment variable ATTLAS_EXPERIMENTS names further places, separated by commas:
    packages, modules, files or folders. The order is that of package, module and line.

    Raises:
        UserError: if two experiments share a name, or a listed place cannot be imported.
    """
    if project_here() is not None:
        return _named_once((*_of_project(), *_of_environment()))
    return _named_once((*installed_experiments(), *_of_environment()))


def known_experiments() -> tuple[Experiment, ...]:
    """All experiments of installed papers, of the project and of the listed places.

    Raises:
        UserError: if two experiments share a name, or a listed place cannot be imported.
    """
    return _named_once((*installed_experiments(), *_of_project(), *_of_environment()))


def experiments_of(place: str, base: Path | None = None) -> tuple[Experiment, ...]:
    """The experiments that a user's file or module defines, in order of file and line.

    Args:
        place: a file, a folder, a notebook or a module, optionally followed by `:NAME`.
        base: folder that paths are relative to; the working directory by default.

    Raises:
        UserError: if the place does not exist, cannot be imported, or defines no experiment.
    """
    experiments = objects_of(read_place(place, base), Experiment)
    if not experiments:
        raise UserError(
            f"{place} defines no experiment: write EXPERIMENT = Experiment(...) there, see "
            "`python -m pydoc attlas.experiments.experiment`"
        )
    return experiments


def find_named(names: Sequence[str]) -> tuple[Experiment, ...]:
    """The experiments of some names, without duplicates, in the order of the names.

    Args:
        names: names, keys of papers, "all", or places (files, folders, modules).

    Raises:
        UserError: if a name is unknown; the message suggests the nearest ones.
    """
    experiments: list[Experiment] = []
    for name in names:
        if is_written_as_place(name):
            experiments += experiments_of(name)
        elif name == "all":
            experiments += find_experiments()
        else:
            experiments += _of_name(name)
    return _named_once(experiments)


def experiments_named(name: str) -> tuple[Experiment, ...]:
    """The experiments of a name or a paper; of installed papers it imports only modules so named.

    Raises:
        UserError: if a module that may define it cannot be loaded.

    Examples:
        >>> [experiment.paper for experiment in experiments_named("direction")]
        ['julistiono2024optimizing']
    """
    for within in (partial(_may_be_named, name), known_experiments):
        experiments = within()
        meant = tuple(e for e in experiments if name in (e.paper, e.name))
        if meant:
            return meant
    return ()


def _of_name(name: str) -> Sequence[Experiment]:
    """The experiments of a name; a name that is unknown may be a place, such as a folder."""
    experiments = experiments_named(name)
    if experiments:
        return experiments
    if not is_place(name):
        raise UserError(unknown_experiment(name, known_experiments()))
    return experiments_of(name)


def _may_be_named(name: str) -> tuple[Experiment, ...]:
    """The experiments of the project and the listed places, and of installed modules of a name."""
    return _named_once((*_of_project(), *_of_environment(), *installed_experiments(name)))


def installed_experiments(name: str = "") -> tuple[Experiment, ...]:
    """The experiments of installed papers: all, or those of a paper or of modules of a name.

    Raises:
        UserError: if a module of the paper that is named cannot be loaded.

    Examples:
        >>> [experiment.name for experiment in installed_experiments("direction")]
        ['direction']
    """
    if not name:
        return objects_of_papers(installed_papers(), InstalledPaper.experiment_modules, Experiment)

    def named(paper: InstalledPaper) -> list[str]:
        return [m for m in paper.experiment_modules() if name in (paper.key, m.rpartition(".")[2])]

    experiments: list[Experiment] = []
    for paper in installed_papers():
        if paper.project and name == paper.key:
            experiments += objects_of_paper(paper, named, Experiment)
        elif paper.project:
            # Another paper may have the experiment: one that does not load must not hide it.
            experiments += objects_of_papers([paper], named, Experiment)
    return tuple(experiments)


def _of_project() -> tuple[Experiment, ...]:
    """The experiments of the project of the working directory."""
    project = project_here()
    if project is None:
        return ()
    return tuple(e for place in project.experiments for e in experiments_of(place, project.root))


def _of_environment() -> tuple[Experiment, ...]:
    """The experiments of the places that ATTLAS_EXPERIMENTS lists."""
    experiments: list[Experiment] = []
    for place in listed(os.environ.get(VARIABLE, "")):
        try:
            experiments += objects_of(place, Experiment)
        except UserError as error:
            raise UserError(f"{VARIABLE} names '{place}': {error}") from error
    return tuple(experiments)


def _named_once(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """The experiments without duplicates; two different ones of the same name are an error."""
    by_name: dict[str, Experiment] = {}
    for experiment in experiments:
        first = by_name.setdefault(experiment.name, experiment)
        if first is not experiment:
            places = " and ".join(f"{shown_path(e.source[0])}" for e in (first, experiment))
            raise UserError(f"two experiments are named '{first.name}' ({places}): rename one")
    return tuple(by_name.values())


def unknown_experiment(name: str, experiments: Sequence[Experiment]) -> str:
    """The error message for a name that no experiment has, with the nearest names."""
    names = sorted({text for e in experiments for text in (e.name, e.paper)})
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "see `attlas list experiments`."
    return f"unknown experiment '{name}': {hint} {known_places()}"


def one_named(name: str) -> Experiment:
    """The experiment of a name.

    Raises:
        UserError: if the name is unknown or stands for several.
    """
    experiment, *others = find_named([name])
    if others:
        names = ", ".join(experiment.name for experiment in (experiment, *others))
        raise UserError(f"'{name}' stands for {1 + len(others)} experiments: name one of {names}")
    return experiment
