"""Search on growing instances: a constant that hides a size is tight only where it is large."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from attlas.claims.claim import Claim
from attlas.claims.verdict import ChallengeReport
from attlas.verify.attack import attack, better, granted_evaluations

FACTORS = (2, 4, 8)
"""Factors of the schedule, of all sizes together and of each alone."""


def schedule(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """Grown sizes, small ones first: for each factor all sizes together, then each alone.

    Examples:
        >>> grown = list(schedule({"n": 2, "d": 3}))
        >>> grown[:3]
        [{'n': 4, 'd': 6}, {'n': 4, 'd': 3}, {'n': 2, 'd': 6}]
        >>> len(grown)
        9
    """
    for factor in FACTORS:
        yield {name: factor * size for name, size in sizes.items()}
        if len(sizes) > 1:
            for name in sizes:
                yield {**sizes, name: factor * sizes[name]}


def grow(
    claim: Claim,
    *,
    evaluations: int | None = None,
    seed: int = 0,
    stop: Callable[[], bool] | None = None,
) -> ChallengeReport | None:
    """Attack a claim at each of the schedule's sizes, each with an equal share.

    Args:
        claim: an inequality that declares `sizes`.
        evaluations: number of evaluations of the sides on one instance, at all sizes together;
            those of a round of moves by default.
        stop: called after each move; the search ends where it is true.

    Returns:
        The tightest instance, the ratio at each size in its verdict's statistics; None where
        nothing moves.
    """
    sizes = list(schedule(claim.sizes))
    total = granted_evaluations(claim) if evaluations is None else evaluations
    share, best = total // max(1, len(sizes)), None
    ratios: dict[str, float] = {}
    for variant in sizes:
        grown = claim.sized(**variant)
        report = attack(grown, evaluations=share, seed=seed, stop=stop)
        if report is None:
            return best
        if report.ratio is not None:
            label = ", ".join(f"{name}={size}" for name, size in variant.items())
            ratios[f"ratio at {label}"] = report.ratio
        best = better(best, report)
        if best.violated or (stop is not None and stop()):
            break
    if best is None:
        return None
    return replace(best, method="sizes", verdict=replace(best.verdict, statistics=ratios))
