"""The claims, errata and experiments that names and places select; by default all."""

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
class Selection:
    """Selected claims, errata and experiments."""

    claims: tuple[Claim, ...]
    errata: tuple[Erratum, ...]
    experiments: tuple[Experiment, ...]


def select(names: Sequence[str] = (), *, experiments: bool = True) -> Selection:
    """Select claims, errata and experiments, without duplicates, in the order of the names.

    Args:
        names: claims, papers or experiments by name, or the user's files and folders; if empty the
            project of the working directory, outside a project everything.
        experiments: whether to look for them; importing those of the papers needs an extra.

    Raises:
        UserError: if a name is unknown, or a place defines nothing.

    Examples:
        >>> found = select(["julistiono2024optimizing"])
        >>> {claim.paper for claim in found.claims}
        {'julistiono2024optimizing'}
    """
    if not names:
        return Selection(find_claims(), find_errata(), find_experiments() if experiments else ())
    claims: dict[str, Claim] = {}
    errata: list[Erratum] = []
    tests: dict[str, Experiment] = {}
    for name in names:
        if is_written_as_place(name):
            objects = _of_place(name)
        else:
            objects = _of_name(name, experiments)
        claims |= {claim.name: claim for claim in objects.claims}
        errata += [erratum for erratum in objects.errata if erratum not in errata]
        tests |= {experiment.name: experiment for experiment in objects.experiments}
    return Selection(tuple(claims.values()), tuple(errata), tuple(tests.values()))


def _of_name(name: str, experiments: bool) -> Selection:
    claims, errata = claims_named(name), errata_of(name)
    tests = experiments_named(name) if experiments or not claims else ()
    if claims or errata or tests:
        return Selection(claims, errata, tests)
    if is_place(name):
        return _of_place(name)
    raise UserError(unknown_claim(name, known_claims()))


def _of_place(place: str) -> Selection:
    experiments = objects_of(place, Experiment) if ":" not in place else ()
    claims = find_claims([place]) if objects_of(place, Claim) or not experiments else ()
    return Selection(claims, find_errata([place]) if ":" not in place else (), experiments)
