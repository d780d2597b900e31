"""Check many claims in a few processes, those of one file in this one.

Compilation is what costs, so the workers compile with the cheap flags and share the
persistent compilation cache; a check and its control already share one program.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from attlas._jax.processes import checker_variables, started_under, worker_pool
from attlas.claims.claim import Claim
from attlas.claims.verdict import CheckReport, Witness
from attlas.core.errors import UserError, in_short

RUN_ALPHA = 0.01
"""Error probability of a whole run, shared equally by its claims and controls."""


def check_group(
    group: tuple[str, Sequence[str]],
    count: int | None,
    seed: int,
    alpha: float,
    challenge_rounds: int,
    stored: Mapping[str, Witness],
) -> list[CheckReport]:
    """Check claims one after the other; runs in a worker process.

    Args:
        group: home of the claims of a user project, empty for installed papers; full claim names.
        count: instances, or None for the number that each claim declares.
        alpha: error probability granted to each claim.
        challenge_rounds: rounds of attack.
        stored: instances of earlier searches, by claim.

    Raises:
        UserError: names the claim whose parts failed, though two instances could be drawn.
    """
    from attlas.verify.check import check
    from attlas.verify.registry import claims_at

    reports = []
    for claim in claims_at(*group):
        try:
            report = check(
                claim,
                count=count,
                seed=seed,
                alpha=alpha,
                challenge_rounds=challenge_rounds,
                stored=stored.get(claim.name),
            )
        except UserError:
            raise
        except Exception as error:
            file, line = claim.place
            raise UserError(
                f"{Path(file).name}:{line}: claim '{claim.name}' fails on "
                f"{claim.count if count is None else count} instances with {in_short(error)}"
            ) from error
        reports.append(report)
    return reports


def planned_groups(
    claims: Sequence[Claim],
    *,
    count: int | None = None,
    seed: int = 0,
    challenge_rounds: int = 0,
    stored: Mapping[str, Witness] | None = None,
) -> list[partial[list[CheckReport]]]:
    """The calls of `check_group` that check claims, each for the claims of one file.

    Claims of one file stay in one process, where they share trajectories and solutions; the largest
    files come first.

    Args:
        count: instances of each, or None for the number that each claim declares.
        challenge_rounds: rounds of attack on each inequality.
        stored: instances of earlier searches, by claim; evaluated first.

    Returns:
        Functions without parameters that other processes can receive.
    """
    files: dict[tuple[str, str], list[str]] = {}
    for claim in claims:
        files.setdefault((claim.home, claim.home or claim.place[0]), []).append(claim.name)
    groups = [(home, names) for (home, _), names in files.items()]
    groups.sort(key=lambda group: len(group[1]), reverse=True)
    witnesses = stored or {}
    return [
        partial(
            check_group,
            (home, names),
            count=count,
            seed=seed,
            alpha=RUN_ALPHA / (2 * max(1, len(claims))),
            challenge_rounds=challenge_rounds,
            stored={name: witnesses[name] for name in names if name in witnesses},
        )
        for home, names in groups
    ]


def check_all(
    claims: Sequence[Claim],
    *,
    count: int | None = None,
    seed: int = 0,
    challenge_rounds: int = 0,
    processes: int = 2,
    stored: Mapping[str, Witness] | None = None,
) -> Iterator[CheckReport]:
    """Check claims in several processes; see `planned_groups` for the parameters.

    Claims of one file are checked in this process, where it was started under
    `attlas._jax.processes.checker_variables` as a worker is.

    Yields:
        One report for each claim, in the order in which they finish.

    Raises:
        UserError: if a worker process dies.
    """
    groups = planned_groups(
        claims, count=count, seed=seed, challenge_rounds=challenge_rounds, stored=stored
    )
    if len(groups) == 1 and checker_variables(processes).keys() <= os.environ.keys():
        # A worker would import everything once more for one file: half of a first answer.
        yield from groups[0]()
        return
    from concurrent.futures import as_completed
    from concurrent.futures.process import BrokenProcessPool

    few = min(processes, len(groups) or 1)
    try:
        with started_under(checker_variables(processes)), worker_pool(few) as pool:
            for finished in as_completed([pool.submit(group) for group in groups]):
                yield from finished.result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process that checked claims died (killed, or out of memory): check fewer claims, "
            "or use --processes 1; finished verdicts are stored"
        ) from error
