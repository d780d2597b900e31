"""What a page or a list is about: everything in reach, or what some names and places mean."""

from collections.abc import Sequence
from dataclasses import dataclass

from attlas.claims.claim import Claim, Erratum
from attlas.core.errors import UserError
from attlas.experiments.experiment import Experiment
from attlas.experiments.find import experiments_named, find_experiments
from attlas.projects.loading import objects_of
from attlas.projects.places import is_place, is_written_as_place
from attlas.verify.registry import (
    claims_named,
    errata_of,
    find_claims,
    find_errata,
    known_claims,
    unknown_claim,
)


@dataclass(frozen=True)
class Chosen:
    """Claims, errata and experiments that belong together."""

    claims: tuple[Claim, ...]
    errata: tuple[Erratum, ...]
    experiments: tuple[Experiment, ...]


def chosen(names: Sequence[str] = ()) -> Chosen:
    """What some names and places mean.

    Args:
        names: of claims, papers or experiments, or places of the user's; when empty the project
            of the working directory, outside a project everything.

    Returns:
        Each object once, in the order asked for.

    Raises:
        UserError: if a name is unknown, or a place defines nothing.

    Examples:
        >>> found = chosen(["julistiono2024optimizing"])
        >>> {claim.paper for claim in found.claims}
        {'julistiono2024optimizing'}
    """
    if not names:
        return Chosen(find_claims(), find_errata(), find_experiments())
    claims: dict[str, Claim] = {}
    errata: list[Erratum] = []
    experiments: dict[str, Experiment] = {}
    for name in names:
        found = _of_place(name) if is_written_as_place(name) else _of_name(name)
        claims |= {claim.name: claim for claim in found.claims}
        errata += [erratum for erratum in found.errata if erratum not in errata]
        experiments |= {experiment.name: experiment for experiment in found.experiments}
    return Chosen(tuple(claims.values()), tuple(errata), tuple(experiments.values()))


def _of_name(name: str) -> Chosen:
    claims, experiments = claims_named(name), experiments_named(name)
    errata = errata_of(name)
    if claims or errata or experiments:
        return Chosen(claims, errata, experiments)
    if is_place(name):
        return _of_place(name)
    raise UserError(unknown_claim(name, known_claims()))


def _of_place(place: str) -> Chosen:
    experiments = objects_of(place, Experiment) if ":" not in place else ()
    claims = find_claims([place]) if objects_of(place, Claim) or not experiments else ()
    return Chosen(claims, find_errata([place]) if ":" not in place else (), experiments)
