"""Check many claims in a few processes.

Compilation is what costs, so the workers compile with the cheap flags and share the
persistent compilation cache; a check and its control already share one program.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from multiprocessing import get_context

from attlas.core.processes import checker_variables
from attlas.core.verdict import CheckReport

RUN_ALPHA = 0.01
"""Error probability of a whole run, shared equally by its claims and controls."""


def check_by_name(
    name: str, count: int | None, seed: int, alpha: float, challenge_rounds: int
) -> CheckReport:
    """Check one claim of the atlas; runs in a worker process.

    Args:
        name: full claim name.
        count: instances, or None for the claim's own number.
        seed: of the instances.
        alpha: error probability granted to the claim.
        challenge_rounds: rounds of gradient search.

    Returns:
        The report.
    """
    from attlas.verify.check import check
    from attlas.verify.registry import find_claims

    (claim,) = (c for c in find_claims([name]) if c.name == name)
    return check(claim, count=count, seed=seed, alpha=alpha, challenge_rounds=challenge_rounds)


def check_all(
    names: Sequence[str],
    *,
    count: int | None = None,
    seed: int = 0,
    challenge_rounds: int = 0,
    processes: int = 2,
) -> Iterator[CheckReport]:
    """Check claims of the atlas by name, yielding reports as they come.

    Args:
        names: full claim names.
        count: instances of each, or None for each claim's own number.
        seed: of the instances.
        challenge_rounds: rounds of gradient search for each inequality.
        processes: worker processes.

    Yields:
        One report for each name.
    """
    one = partial(
        check_by_name,
        count=count,
        seed=seed,
        alpha=RUN_ALPHA / (2 * max(1, len(names))),
        challenge_rounds=challenge_rounds,
    )
    before = dict(os.environ)
    os.environ.update(checker_variables(processes))
    try:
        with ProcessPoolExecutor(min(processes, len(names) or 1), get_context("spawn")) as pool:
            pending = [pool.submit(one, name) for name in names]
            try:
                for finished in as_completed(pending):
                    yield finished.result()
            finally:
                for left in pending:
                    left.cancel()
    finally:
        os.environ.clear()
        os.environ.update(before)
