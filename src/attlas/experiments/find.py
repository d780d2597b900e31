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
    packages, modules, files or folders.

    Returns:
        Experiments in order of package, module and line.

    Raises:
        UserError: if two have one name, or a named place cannot be imported.
    """
    if project_here() is not None:
        return _named_once((*_of_project(), *_of_environment()))
    return _named_once((*_installed(), *_of_environment()))


def known_experiments() -> tuple[Experiment, ...]:
    """Every experiment that a name can mean here: of installed papers, the project, or listed.

    Returns:
        Experiments, each once.

    Raises:
        UserError: if two have one name, or a named place cannot be imported.
    """
    return _named_once((*_installed(), *_of_project(), *_of_environment()))


def experiments_of(place: str, base: Path | None = None) -> tuple[Experiment, ...]:
    """The experiments that a place of the user's defines.

    Args:
        place: a file, a folder, a notebook, a module, each also with `:NAME`.
        base: folder that paths are relative to; the working directory by default.

    Returns:
        Experiments in order of file and line.

    Raises:
        UserError: if the place does not exist, cannot be imported, or defines no experiment.
    """
    found = objects_of(read_place(place, base), Experiment)
    if not found:
        raise UserError(
            f"{place} defines no experiment: write EXPERIMENT = Experiment(...) there, see "
            "`python -m pydoc attlas.experiments.experiment`"
        )
    return found


def find_named(names: Sequence[str]) -> tuple[Experiment, ...]:
    """The experiments of the given names; `all`, or a paper's key, stands for several.

    Args:
        names: as a user writes them; places too.

    Returns:
        Experiments, each once, in the order asked for.

    Raises:
        UserError: if a name is unknown; the line says the nearest names.
    """
    chosen: list[Experiment] = []
    for name in names:
        if is_written_as_place(name):
            chosen += experiments_of(name)
        elif name == "all":
            chosen += find_experiments()
        else:
            chosen += _of_name(name)
    return _named_once(chosen)


def experiments_named(name: str) -> tuple[Experiment, ...]:
    """The experiments of a name; of installed papers only modules of that name are imported.

    Args:
        name: of an experiment, or the key of a paper.

    Returns:
        Experiments; none where nothing has that name.

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
    """The experiments of a name, which may be a place that is not written as one."""
    experiments = experiments_named(name)
    if experiments:
        return experiments
    if not is_place(name):
        raise UserError(unknown_experiment(name, known_experiments()))
    return experiments_of(name)


def _may_be_named(name: str) -> tuple[Experiment, ...]:
    """The experiments of the project and the listed places, and of installed modules of a name."""

    def named(paper: InstalledPaper) -> list[str]:
        return [m for m in paper.experiment_modules() if name in (paper.key, m.rpartition(".")[2])]

    experiments = [*_of_project(), *_of_environment()]
    for paper in installed_papers():
        if paper.project and name == paper.key:
            experiments += objects_of_paper(paper, named, Experiment)
        elif paper.project:
            # Another paper may have the experiment: one that does not load must not hide it.
            experiments += objects_of_papers([paper], named, Experiment)
    return _named_once(experiments)


def _of_project() -> tuple[Experiment, ...]:
    """Those that the project of the working directory names."""
    project = project_here()
    if project is None:
        return ()
    return tuple(e for place in project.experiments for e in experiments_of(place, project.root))


def _of_environment() -> tuple[Experiment, ...]:
    """Those of the places that ATTLAS_EXPERIMENTS lists."""
    found: list[Experiment] = []
    for place in listed(os.environ.get(VARIABLE, "")):
        try:
            found += objects_of(place, Experiment)
        except UserError as error:
            raise UserError(f"{VARIABLE} names '{place}': {error}") from error
    return tuple(found)


def _installed() -> tuple[Experiment, ...]:
    return objects_of_papers(installed_papers(), InstalledPaper.experiment_modules, Experiment)


def _named_once(experiments: Sequence[Experiment]) -> tuple[Experiment, ...]:
    """The experiments, each once; two of one name are refused."""
    found: dict[str, Experiment] = {}
    for experiment in experiments:
        first = found.setdefault(experiment.name, experiment)
        if first is not experiment:
            places = " and ".join(f"{shown_path(e.source[0])}" for e in (first, experiment))
            raise UserError(f"two experiments are named '{first.name}' ({places}): rename one")
    return tuple(found.values())


def unknown_experiment(name: str, known: Sequence[Experiment]) -> str:
    """The line for a name that no experiment has.

    Args:
        name: what was asked for.
        known: all experiments.

    Returns:
        The text of the error, with the nearest names.
    """
    names = sorted({text for e in known for text in (e.name, e.paper)})
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "see `attlas list experiments`."
    return f"unknown experiment '{name}': {hint} {known_places()}"


def one_named(name: str) -> Experiment:
    """The one experiment of a name.

    Args:
        name: as a user writes it.

    Returns:
        The experiment.

    Raises:
        UserError: if the name is unknown or stands for several.
    """
    found, *others = find_named([name])
    if others:
        names = ", ".join(experiment.name for experiment in (found, *others))
        raise UserError(f"'{name}' stands for {1 + len(others)} experiments: name one of {names}")
    return found
