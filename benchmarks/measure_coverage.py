"""How often limits of F1 scores and calibration errors fail: 10,000 simulated sets for each.

No time is compared here. Rows are as in `certificate_coverage.py`; the last ones take what is
measured for a guarantee.
"""

from collections.abc import Callable, Iterator

import numpy as np

from attlas.bounds.generalisation.calibration_limit import BINS, calibration_upper_limit
from attlas.bounds.generalisation.f_score_limit import f_score_lower_limit
from benchmarks.certificate_coverage import DELTA, Trial, simulate

HIT, WRONG = 0.04, 0.02
"""Probabilities of a true positive, and of a false positive or a miss: an F1 score of 0.8."""
F_SCORE = 2 * HIT / (2 * HIT + WRONG)


class _Scores:
    """Whether a limit of the F1 score of a rare class is above the true one, n = 2,000."""

    def __init__(self, limit: Callable[[int, int], float]):
        self._limit = limit
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, rng: np.random.Generator) -> bool:
        hits, errors, _ = rng.multinomial(2000, [HIT, WRONG, 1 - HIT - WRONG]).tolist()
        if (hits, errors) not in self._known:
            self._known[hits, errors] = self._limit(hits, errors)
        return self._known[hits, errors] > F_SCORE


def _calibration(tilt: float, *, measured: bool = False) -> Trial:
    """Whether the calibration error is above its limit: probabilities off by `tilt`, n = 1,000."""
    true = tilt * (BINS - 1) / BINS  # the middle bin is right

    def misses(rng: np.random.Generator) -> bool:
        S = (rng.integers(0, BINS, 1000) + 0.5) / BINS
        chance = S - tilt * np.sign(S - 0.5)
        limit = calibration_upper_limit(S, (rng.random(1000) < chance) * 1.0, DELTA)
        return (limit.measured if measured else limit.limit) < true

    return misses


def trials() -> Iterator[tuple[str, float, bool, Trial]]:
    """Name, probability of failure, whether it is paid for, and the trial."""
    exact = _Scores(lambda hits, errors: f_score_lower_limit(hits, errors, DELTA))
    yield "F1 score of 0.8 of a rare class, n = 2000", DELTA, True, exact
    for tilt in (0.03, 0.3):
        yield (
            f"probabilities off by {tilt:g} in 14 of 15 bins, n = 1000",
            DELTA,
            True,
            _calibration(tilt),
        )
    plain = _Scores(lambda hits, errors: 2 * hits / (2 * hits + errors) if hits else 0.0)
    yield "F1 score of 0.8, as measured", DELTA, False, plain
    yield "probabilities off by 0.3, as measured", DELTA, False, _calibration(0.3, measured=True)


if __name__ == "__main__":
    raise SystemExit(simulate("measure_coverage", trials()))
