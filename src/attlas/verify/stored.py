"""A stored witness: an instance of an earlier search, evaluated again before new ones."""

from dataclasses import replace

import numpy as np

from attlas._jax.device_arrays import on_device
from attlas.claims.claim import Claim
from attlas.claims.verdict import Outcome, Verdict, Witness
from attlas.verify.evidence import Batch, Program, compile_program, gather
from attlas.verify.review import decided

REASON = "stored witness"
"""How the reason of a verdict begins where a stored instance decided."""


def replayed(claim: Claim, program: Program, batch: Batch, witness: Witness) -> Verdict | None:
    """The verdict on a stored instance alone; with the shapes of a check nothing is compiled.

    Returns:
        None where the instance does not fit the claim any more.
    """
    if set(witness) != set(batch):
        return None
    arrays = {name: np.asarray(value) for name, value in witness.items()}
    count = len(next(iter(batch.values())))
    same = all(
        (count, *value.shape) == batch[name].shape and value.dtype == batch[name].dtype
        for name, value in arrays.items()
    )
    rows = count if same else 1
    repeated = {k: on_device(np.repeat(v[None], rows, axis=0)) for k, v in arrays.items()}
    try:
        holds, sides = (program if same else compile_program(claim))(repeated)
    except (TypeError, ValueError, IndexError):
        # Of other shapes than the claim reads today.
        return None
    evidence = gather(claim, holds, sides[0]).select(0)
    one = {name: value[None] for name, value in arrays.items()}
    verdict, _ = decided(claim, evidence, one)
    return replace(verdict, witness=arrays)


def with_stored(claim: Claim, verdict: Verdict, replay: Verdict | None) -> Verdict:
    """The verdict on the stored instance where it violates; else with the larger tightness.

    A violation in floats that digits neither confirm nor withdraw is INCONCLUSIVE.
    """
    if replay is None or claim.witness is not None:
        return verdict
    numbers = {name: getattr(verdict, name) for name in ("applicable", "tried", "seed", "distinct")}
    if replay.outcome is Outcome.VIOLATED or replay.confirmed is not None:
        return replace(replay, reason=f"{REASON}: {replay.reason}", **numbers)
    if verdict.outcome is not Outcome.SUPPORTED or replay.tightness is None:
        return verdict
    if replay.tightness <= (verdict.tightness or -np.inf):
        return verdict
    reason = f"{verdict.reason}, tightest on the {REASON}"
    tight = {"tightness": replay.tightness, "witness": replay.witness, "index": None}
    return replace(verdict, reason=reason, **tight)
