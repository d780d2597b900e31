"""Find experiments by name: in `attlas.experiments` and in packages of one's own."""

import difflib
import os
from collections.abc import Sequence

from attlas.core.discovery import scan
from attlas.core.errors import UserError
from attlas.runs.experiment import Experiment

PACKAGE = "attlas.experiments"
VARIABLE = "ATTLAS_EXPERIMENTS"


def find_experiments() -> tuple[Experiment, ...]:
    """All experiments, found by scanning.

    The environment variable ATTLAS_EXPERIMENTS names further packages, separated by commas.

    Returns:
        Experiments in order of package, module and line.

    Raises:
        UserError: if two have one name, or a named package cannot be imported.
        ModuleNotFoundError: if an experiment imports what is not installed.
    """
    found: list[Experiment] = []
    own = [name.strip() for name in os.environ.get(VARIABLE, "").split(",") if name.strip()]
    for package in [PACKAGE, *own]:
        try:
            found += scan(package, Experiment)
        except ModuleNotFoundError as error:
            if error.name is None or not package.startswith(error.name):
                raise
            raise UserError(
                f"{VARIABLE} names '{package}', which cannot be imported: put its folder on "
                "PYTHONPATH or install it"
            ) from error
    names = [experiment.name for experiment in found]
    for experiment in found:
        if names.count(experiment.name) > 1:
            raise UserError(f"two experiments are named '{experiment.name}': rename one")
    return tuple(found)


def find_named(names: Sequence[str]) -> tuple[Experiment, ...]:
    """The experiments of the given names; `all`, or a paper's key, stands for several.

    Args:
        names: as a user writes them.

    Returns:
        Experiments, each once, in the order asked for.

    Raises:
        UserError: if a name is unknown; the line says the nearest names.
    """
    known = find_experiments()
    chosen: dict[str, Experiment] = {}
    for name in names:
        meant = [e for e in known if name in ("all", e.paper, e.name)]
        if not meant:
            raise UserError(unknown_experiment(name, known))
        chosen.update({experiment.name: experiment for experiment in meant})
    return tuple(chosen.values())


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
    hint = f"did you mean {' or '.join(near)}?" if near else "see `attlas list experiments`"
    return f"unknown experiment '{name}': {hint}"


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
