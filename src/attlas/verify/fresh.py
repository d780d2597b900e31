"""Fresh instances of a claim as a search: what is rare under a sampler need not lie near a draw."""

from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np

from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.sampling import draw_anew
from attlas.claims.verdict import ChallengeReport
from attlas.verify.attack import Origin, judge
from attlas.verify.climb import BROKEN, scores
from attlas.verify.evidence import Batch, Program
from attlas.verify.searchable import is_searchable

_CONFIRMATIONS = 2
"""First batches that are judged since an instance contradicts a limit or rate; of all later ones
that of the highest score is judged."""
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
        seed: the seed of the round; equal seeds draw equal instances.
        evaluations: how often the sides are evaluated on one instance; at least one batch is drawn.
        stop: called after each batch; the search ends where it is true.

    Returns:
        The report, `steps` the number of batches; None where `attlas.verify.searchable` has a
        reason not to search.
    """
    if not is_searchable(claim):
        return None
    best: dict[str, np.ndarray] = {}
    highest = np.full(claim.count, -np.inf)
    done = confirmed = 0
    suspicious, suspect_seed = -np.inf, None
    with FACTORISING, jax.enable_x64(True), np.errstate(all="ignore"):
        while not done or (
            (done + 2) * claim.count <= evaluations and not (stop is not None and stop())
        ):
            batch_seed = _APART * (seed + 1) + done
            batch: Batch = draw_anew(claim.sampler(), batch_seed, claim.count)
            score = scores(claim, *program(batch))
            broken = claim.kind.rule.scaled & (score >= BROKEN / 2)
            if broken.any():
                if confirmed < _CONFIRMATIONS:
                    report = judge(claim, program, batch, batch_seed, done + 1)
                    if report.violated:
                        return replace(report, method="draws")
                elif score.max() > suspicious:
                    suspicious, suspect_seed = score.max(), batch_seed
                confirmed += 1
                # Rows of several batches have no common seed, from which lines could be drawn.
                score = np.where(broken, -np.inf, score)
            higher = (score > highest) if best else np.ones(claim.count, dtype=bool)
            for name, value in batch.items():
                best[name] = np.array(value) if name not in best else best[name]
                best[name][higher] = np.asarray(value)[higher]
            highest = np.where(higher, score, highest)
            done += 1
        if suspect_seed is not None:
            batch = draw_anew(claim.sampler(), suspect_seed, claim.count)
            report = judge(claim, program, batch, suspect_seed, done)
            if report.violated:
                return replace(report, method="draws")
        # Those of the last batch are not selected: they tell how large sides usually are.
        origin = None if claim.kind.rule.scaled else Origin(batch)
        return replace(judge(claim, program, best, seed, done, origin), method="draws")
