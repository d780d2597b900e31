"""Check many claims in a few processes; those of one file in this one.

The workers compile with the cheap flags and share the persistent compilation cache.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product

from attlas._jax.processes import checker_variables, started_under, worker_pool
from attlas.claims.claim import Claim
from attlas.claims.verdict import CheckReport, Witness
from attlas.core.errors import UserError
from attlas.verify.check import check, search_effort
from attlas.verify.evidence import compile_program
from attlas.verify.registry import failure

RUN_ALPHA = 0.01
"""Error probability of a whole run, shared equally by its claims and controls."""


def alpha_of(claims: int) -> float:
    """The error probability that a run of so many claims grants to each.

    Examples:
        >>> alpha_of(5)
        0.001
    """
    return RUN_ALPHA / (2 * max(1, claims))


def check_group(
    group: tuple[str, Sequence[str]],
    count: int | None,
    seeds: Sequence[int],
    alpha: float,
    challenge: int | float,
    stored: Mapping[str, Witness],
) -> list[CheckReport]:
    """Check claims one after the other; runs in a worker process.

    Args:
        group: home of the claims, by which this process loads them; full claim names.
        count: instances, or None for the number that each claim declares.
        seeds: at each of which every claim is checked.
        alpha: error probability granted to each claim.
        stored: instances of earlier searches, by claim.

    Raises:
        UserError: names the claim whose parts failed, though two instances could be drawn.
    """
    from attlas.projects.read_files import undeclared_reads, watched_reads
    from attlas.verify.registry import claims_at

    reports, programs = [], {}
    with watched_reads():
        # Claims of one file share at one seed what their samplers draw, and at all a program.
        for seed, claim in product(seeds, claims_at(*group)):
            try:
                if len(seeds) > 1 and claim.name not in programs:
                    programs[claim.name] = compile_program(claim)
                report = check(
                    claim,
                    count=count,
                    seed=seed,
                    alpha=alpha,
                    challenge=challenge,
                    stored=stored.get(claim.name),
                    program=programs.get(claim.name),
                )
            except UserError:
                raise
            except Exception as error:
                raise UserError(failure(claim, error, count)) from error
            reports.append(report)
    undeclared = undeclared_reads()
    return [replace(report, undeclared=undeclared) for report in reports]


def planned_groups(
    claims: Sequence[Claim],
    *,
    count: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    challenge: int | float | None = None,
    effort: int | float = 1.0,
    stored: Mapping[str, Witness] | None = None,
    alpha: float | None = None,
) -> list[partial[list[CheckReport]]]:
    """The calls of `check_group` that check claims, each for the claims of one file.

    Claims of one file stay in one process, where they share trajectories and solutions; the largest
    files come first.

    Args:
        count: instances of each, or None for the number that each claim declares.
        seed: the first seed.
        seeds: how many seeds, one after the other; each check is granted what it has alone.
        challenge: searches of each claim, or a part of one; None for `search_effort`'s default.
        effort: factor of two processor seconds for each search.
        stored: instances of earlier searches, by claim; evaluated first.
        alpha: error probability granted to each claim; by default as if these were all.

    Returns:
        Functions without parameters that other processes can receive.
    """
    files: dict[tuple[str, str], list[Claim]] = {}
    for claim in claims:
        files.setdefault((claim.home, claim.home or claim.place[0]), []).append(claim)
    groups = [(home, members) for (home, _), members in files.items()]
    groups.sort(key=lambda group: len(group[1]), reverse=True)
    witnesses = stored or {}
    return [
        partial(
            check_group,
            (home, [claim.name for claim in members]),
            count=count,
            seeds=range(seed, seed + seeds),
            alpha=alpha_of(len(claims)) if alpha is None else alpha,
            challenge=search_effort(members[0], challenge, effort),
            stored={c.name: witnesses[c.name] for c in members if c.name in witnesses},
        )
        for home, members in groups
    ]


def check_all(
    claims: Sequence[Claim],
    *,
    count: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    challenge: int | float | None = None,
    effort: int | float = 1.0,
    processes: int = 2,
    stored: Mapping[str, Witness] | None = None,
    alpha: float | None = None,
) -> Iterator[CheckReport]:
    """Check claims in several processes; see `planned_groups` for the parameters.

    Claims of one file are checked in this process, where it was started under
    `attlas._jax.processes.checker_variables` as a worker is.

    Yields:
        One report for each claim and seed, in the order in which they finish.

    Raises:
        UserError: if a worker process dies.
    """
    groups = planned_groups(
        claims,
        count=count,
        seed=seed,
        seeds=seeds,
        challenge=challenge,
        effort=effort,
        stored=stored,
        alpha=alpha,
    )
    if not groups:
        return
    if len(groups) == 1 and checker_variables(processes).keys() <= os.environ.keys():
        # A worker would import everything once more for one file: half of a first answer.
        yield from groups[0]()
        return
    from concurrent.futures import as_completed
    from concurrent.futures.process import BrokenProcessPool

    few = min(processes, len(groups))
    try:
        with started_under(checker_variables(processes)), worker_pool(few) as pool:
            for finished in as_completed([pool.submit(group) for group in groups]):
                yield from finished.result()
    except BrokenProcessPool as error:
        raise UserError(
            "a process that checked claims died (killed, or out of memory): check fewer claims, "
            "or use --processes 1; finished verdicts are stored"
        ) from error
