"""Fresh instances of a claim as a search: what is rare under a sampler need not lie near a draw."""

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.sampling import draw_anew
from attlas.claims.verdict import ChallengeReport
from attlas.verify.attack import judge
from attlas.verify.climb import scores
from attlas.verify.evidence import Batch, Program
from attlas.verify.searchable import is_searchable

_APART = 1_000_003
"""Distance of the seeds of fresh batches from that of the check, and of one round from the next."""


def drawn_afresh(
    claim: Claim,
    program: Program,
    *,
    seed: int,
    evaluations: int,
    stop: Callable[[], bool] | None = None,
) -> ChallengeReport | None:
    """Evaluate fresh batches, and decide on that instance of each row which has the largest score.

    Args:
        program: the claim's compiled program.
        seed: of the round; equal seeds draw equal instances.
        evaluations: of the sides on one instance; at least one batch is drawn.
        stop: called after each batch; the search ends where it is true.

    Returns:
        The report, `steps` the number of batches; None where `attlas.verify.searchable` has a
        reason not to search.
    """
    if not is_searchable(claim):
        return None
    best: dict[str, np.ndarray] = {}
    highest = np.full(claim.count, -np.inf)
    done = 0
    with FACTORISING, jax.enable_x64(True), np.errstate(all="ignore"):
        while not done or (
            (done + 2) * claim.count <= evaluations and not (stop is not None and stop())
        ):
            batch: Batch = draw_anew(claim.sample, _APART * (seed + 1) + done, claim.count)
            score = scores(claim, *program(batch))
            higher = (score > highest) if best else np.ones(claim.count, dtype=bool)
            for name, value in batch.items():
                best[name] = np.array(value) if name not in best else best[name]
                best[name][higher] = np.asarray(value)[higher]
            highest = np.where(higher, score, highest)
            done += 1
        return replace(judge(claim, program, best, seed, done), method="draws")
