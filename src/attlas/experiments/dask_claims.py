"""Checks of claims as tasks of dask.distributed, one for the claims of each file."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attlas._files.plain_file import printable
from attlas._jax.processes import checker_variables
from attlas.claims.claim import Claim
from attlas.claims.verdict import CheckReport, Witness
from attlas.core.errors import UserError
from attlas.experiments.compatibility import run_if_compatible
from attlas.experiments.dask_backend import dask_client, ended, require_workers
from attlas.experiments.environment import environment
from attlas.verify.check_many import planned_groups

_ONE_AT_A_TIME = threading.Lock()
"""A worker may have several threads; a check drops compiled programs that others may hold."""


def check_on_dask(
    claims: Sequence[Claim],
    *,
    on: str,
    workers: int = 2,
    insecure: bool = False,
    count: int | None = None,
    seed: int = 0,
    seeds: int = 1,
    challenge: int | float | None = None,
    effort: int | float = 1.0,
    stored: Mapping[str, Witness] | None = None,
    alpha: float | None = None,
) -> Iterator[tuple[CheckReport, dict[str, Any]]]:
    """Check claims on a dask cluster, yielding reports as they come.

    Remote workers need the same attlas, and the user's files with everything they import and read.
    Backend and workers are those of `attlas.experiments.dask_backend.run_dask`.

    Args:
        claims: found by `attlas.verify.registry.find_claims`.
        count: instances per claim; by default each claim's own number.
        seed: the first of them.
        seeds: how many seeds.
        challenge: searches of each claim, or a part of one; None for the default of
            `attlas.verify.check.search_effort`.
        effort: factor of two processor seconds for each search.
        stored: instances from earlier searches, by claim; evaluated first.
        alpha: error probability granted to each claim; by default as if these were all.

    Yields:
        The report of each claim, and the environment of the worker that made it.

    Raises:
        UserError: if no scheduler answers or it goes away, or a worker is incompatible.
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
    with dask_client(on, workers, insecure, checker_variables(workers)) as client:
        driver = require_workers(client, {claim.home or __name__ for claim in claims}, on)
        futures = [
            client.submit(run_if_compatible, driver, checked, group, pure=False) for group in groups
        ]
        for future, result in ended(futures, on, "finished verdicts are stored, check again"):
            if future.status != "finished":
                # Of a failed task the result is (type, exception, traceback).
                raise UserError(printable(f"dask gave a check up ({future.status}): {result[1]}"))
            if isinstance(result, str):
                raise UserError(f"a worker of {on} {result}")
            reports, worker_environment = result
            yield from ((report, worker_environment) for report in reports)


def checked(
    group: Callable[[], list[CheckReport]],
) -> tuple[list[CheckReport], dict[str, Any]] | str:
    """Check the claims of one file on a worker.

    Returns:
        The reports and the worker's environment, or an error line.
    """
    try:
        with _ONE_AT_A_TIME:
            return group(), environment()
    except UserError as error:
        return f"says: {error}"
    except Exception as error:  # noqa: BLE001 (reported by the driver)
        return printable(
            f"could not check ({type(error).__name__}: {error}): `--on local` and "
            "`attlas --debug` show the traceback"
        )
