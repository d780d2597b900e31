r"""The parameter at which an event of a stated probability is rarest.

"For every p, P(event) >= level" fails where it fails at one p. Candidates are drawn from the
domains of the parameters, half of them are replaced in each round by neighbours of the worst and by
fresh ones, and the counts of those that stay add up. The count of the worst is biased, since it was
selected for it: fresh trials at that parameter alone decide, by the exact interval of the frequency
and at shares of the error probability that add up to it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import jax
import numpy as np

from attlas._jax.factorising import FACTORISING
from attlas.claims.claim import Claim
from attlas.claims.domains.declared import projection
from attlas.claims.sampling import draw_anew
from attlas.claims.verdict import ChallengeReport, Outcome, Verdict
from attlas.verify.evidence import Evidence, Program, decide, gather

METHOD = "parameters"
SECONDS = 2.0
"""Processor seconds of a search at effort 1, without compilation."""
CANDIDATES, TRIALS = 64, 16
"""Parameters that are compared in a round, and the trials of each."""
_ROUNDS = (8, 512)
"""Least and largest number of rounds that a measured budget grants."""
_LOOKS = 3
"""Looks at the worst parameter, each at four times the trials of the one before."""
_RIVALS = 2
"""Worst parameters that are tested on fresh trials."""
_APART = 2_000_003
"""Distance of the seeds of fresh trials from those of the check, and of rounds from each other."""

Values = Mapping[str, np.ndarray]


def worst_parameter(
    claim: Claim,
    program: Program,
    *,
    seed: int = 0,
    effort: int | float = 1.0,
    evaluations: int | None = None,
    seconds: float | None = None,
    alpha: float = 1e-3,
) -> ChallengeReport:
    """Search for a parameter at which the probability is below its level.

    Args:
        claim: a probability with `parameters`.
        program: its compiled program.
        effort: factor of two processor seconds, where no evaluations are given.
        evaluations: trials of the search, without those that confirm its result.
        seconds: limit of wall time of the rounds.
        alpha: error probability of all fresh trials together.

    Returns:
        The report; its verdict is that of the fresh trials, with the parameter as its witness.
    """
    with FACTORISING, jax.enable_x64(True):
        trials = _Trials(claim, program, seed)
        rounds = _rounds(trials, effort) if evaluations is None else _rounds_of(evaluations)
        end = np.inf if seconds is None else time.perf_counter() + seconds
        candidates = _searched(trials, rounds, lambda: time.perf_counter() >= end)
        verdict = _confirmed(trials, candidates, alpha)
    return ChallengeReport(
        None,
        verdict.outcome is Outcome.VIOLATED,
        CANDIDATES,
        candidates.rounds,
        verdict,
        evaluations=trials.evaluations,
        method=METHOD,
    )


def verdict_at(claim: Claim, program: Program, witness: Values, *, alpha: float = 1e-3) -> Verdict:
    """The verdict on fresh trials at one parameter.

    Args:
        witness: the parameters, without a leading axis.
    """
    with FACTORISING, jax.enable_x64(True):
        trials = _Trials(claim, program, seed=-1)
        return _looked(trials, {k: np.asarray(v)[None] for k, v in witness.items()}, alpha)


@dataclass
class _Trials:
    """Fresh trials at selected parameters, and how many were made."""

    claim: Claim
    program: Program
    seed: int
    evaluations: int = 0
    batches: int = 0

    def at(self, values: Values) -> Evidence:
        """The evidence of one batch: each parameter has an equal share of its trials, in order."""
        count = CANDIDATES * TRIALS
        repeats = count // len(next(iter(values.values())))
        selected = {name: np.repeat(value, repeats, axis=0) for name, value in values.items()}
        self.batches += 1
        seed = _APART * (self.seed + 2) + self.batches
        batch = draw_anew(partial(self.claim.sample, selected=selected), seed, count)
        holds, sides = self.program(batch)
        self.evaluations += count
        return gather(self.claim, holds, sides[0], batch=batch)

    def parameters(self, rng: np.random.Generator, count: int) -> Values:
        """Parameters from their domains."""
        batch = self.claim.sample(rng, count)
        return {domain.name: np.asarray(batch[domain.name]) for domain in self.claim.parameters}


def _rounds_of(evaluations: int) -> int:
    return max(1, evaluations // (CANDIDATES * TRIALS))


def _rounds(trials: _Trials, effort: int | float) -> int:
    """Rounds that an effort allows, a power of two: the clock decides how much, never what."""
    cost = np.inf
    values = trials.parameters(np.random.default_rng([trials.seed, 300]), CANDIDATES)
    for _ in range(2):  # the first compiles
        started = time.process_time()
        trials.at(values)
        cost = min(cost, time.process_time() - started)
    allowed = SECONDS * effort / max(cost, 1e-6)
    least, most = _ROUNDS
    return 2 ** int(np.clip(np.round(np.log2(allowed)), np.log2(least), np.log2(most)))


@dataclass
class _Candidates:
    """Parameters, and how often their events happened.

    Attributes:
        values: arrays by name, with a leading axis of candidates.
        hits: for each event, shape (candidates, events).
        tried: applicable trials, shape (candidates,).
        level: the largest so far, of the same shape as the hits.
    """

    values: dict[str, np.ndarray]
    hits: np.ndarray
    tried: np.ndarray
    level: np.ndarray
    rounds: int = 0

    def order(self) -> np.ndarray:
        """Indices, the worst first; an untried one counts as at its level."""
        mean = (self.hits + self.level) / (self.tried + 1)[:, None]
        return np.argsort((mean - self.level).min(axis=1), kind="stable")

    def at(self, index: np.ndarray) -> dict[str, np.ndarray]:
        """The parameters at some places."""
        return {name: value[index] for name, value in self.values.items()}


def _searched(trials: _Trials, rounds: int, late: Callable[[], bool]) -> _Candidates:
    """The candidates after some rounds."""
    rng = np.random.default_rng([trials.seed, 301])
    values = trials.parameters(rng, CANDIDATES)
    evidence = trials.at(values)
    candidates = _Candidates(dict(values), *_counted(evidence), rounds=1)
    project = jax.jit(jax.vmap(lambda moved: projection(trials.claim.parameters)(**moved)))
    while candidates.rounds < rounds and not late():
        order = candidates.order()
        parents, replaced = order[: CANDIDATES // 8], order[CANDIDATES // 2 :]
        fresh = trials.parameters(rng, len(replaced))
        moved = _moved(rng, candidates.at(parents), fresh, len(replaced))
        moved = {**moved, **{k: np.asarray(v) for k, v in project(moved).items()}}
        near = rng.uniform(size=len(replaced)) < 0.75
        for name, value in candidates.values.items():
            shape = (-1, *(1,) * (value.ndim - 1))
            value[replaced] = np.where(near.reshape(shape), moved[name], fresh[name])
        for counted in (candidates.hits, candidates.tried, candidates.level):
            counted[replaced] = 0
        hits, tried, level = _counted(trials.at(candidates.values))
        candidates.hits += hits
        candidates.tried += tried
        candidates.level = np.maximum(candidates.level, level)
        candidates.rounds += 1
    return candidates


def _counted(evidence: Evidence) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hits of each event and applicable trials at each candidate, and the levels."""
    applicable = evidence.applicable.reshape(CANDIDATES, TRIALS)
    event = evidence.left.reshape(CANDIDATES, TRIALS, -1) > 0.5
    level = np.where(applicable[..., None], evidence.right.reshape(event.shape), 0).max(axis=1)
    hits = (event & applicable[..., None]).sum(axis=1).astype(float)
    return hits, applicable.sum(axis=1).astype(float), level


def _moved(rng: np.random.Generator, parents: Values, fresh: Values, count: int) -> Values:
    """Neighbours of parents, at distances of a thousandth of the domain's spread up to itself."""
    selected = rng.integers(len(next(iter(parents.values()))), size=count)
    size = 10 ** rng.uniform(-3, 0, count)
    moved = {}
    for name, value in parents.items():
        if value.dtype.kind != "f":
            moved[name] = value[selected]
            continue
        step = size.reshape(-1, *(1,) * (value.ndim - 1)) * rng.normal(size=fresh[name].shape)
        moved[name] = value[selected] + step * fresh[name].std(axis=0)
    return moved


def _confirmed(trials: _Trials, candidates: _Candidates, alpha: float) -> Verdict:
    """The verdict on fresh trials at the worst candidates, the first that violates or the worst."""
    verdicts = []
    for place in candidates.order()[:_RIVALS]:
        values = candidates.at(np.array([place]))
        verdicts.append(_looked(trials, values, alpha / _RIVALS))
        if verdicts[-1].outcome is Outcome.VIOLATED:
            return verdicts[-1]
    return verdicts[0]


def _looked(trials: _Trials, values: Values, alpha: float) -> Verdict:
    """The verdict at one parameter, on four times the trials at each look until it is decided."""
    for k in range(_LOOKS):
        looked = [trials.at(values) for _ in range(4**k)]
        evidence = _joined(looked)
        verdict = decide(trials.claim, evidence, alpha=alpha / 2 ** (k + 1), seed=trials.seed)
        if verdict.outcome is not Outcome.INCONCLUSIVE or "low" not in verdict.statistics:
            break
    witness = {name: np.asarray(value[0]) for name, value in values.items()}
    text = ", ".join(f"{k} = {np.array2string(v, precision=4)}" for k, v in witness.items())
    reason = f"at {text}: {verdict.reason}, on {verdict.applicable} fresh trials"
    return replace(verdict, reason=reason, witness=witness, index=None)


def _joined(looked: list[Evidence]) -> Evidence:
    """The evidence of several batches as one."""
    arrays = {
        name: np.concatenate([getattr(evidence, name) for evidence in looked])
        for name in ("left", "right", "magnitude", "error", "applicable")
    }
    distinct = sum(evidence.distinct or 0 for evidence in looked)
    return replace(looked[0], **arrays, distinct=distinct)
