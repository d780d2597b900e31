"""How often certificates of what was chosen, grouped or compared fail: 10,000 simulated sets each.

No time is compared here. Rows are as in `certificate_coverage.py`: groups that hold together, looks
that a ledger prices, thresholds in order, Brier scores, files chosen by their training errors, and
tests of a shift between samples of one law, which fail when they see one. The shares of groups,
looks and thresholds are those that `certify` and the ledger name. The last rows pay for nothing.
"""

import math
from collections.abc import Iterator

import numpy as np

from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit
from attlas.bounds.generalisation.compression_bound import Form, compression_bound
from attlas.bounds.generalisation.occam_code import encode
from attlas.certificates.certify import certify
from attlas.certificates.checks import SUSPICIOUS
from attlas.certificates.ledger import Ledger
from attlas.certificates.measures import Brier
from attlas.certificates.predictions import predictions_of
from attlas.certificates.shift import answer_shift, number_shift
from benchmarks.certificate_coverage import DELTA, RISK, Limits, Trial, simulate

GROUPS = {"a": (300, 0.05), "b": (120, 0.2), "c": (40, 0.4)}
"""Size and risk of each."""
LOOKS, EXAMPLES = 5, 500
CUTS = np.linspace(0.5, 0.9, 41)
"""Thresholds, from the best one on."""
ASKED = 0.3


def _group_share() -> float:
    """The share of each guarantee, as `certify` names it."""
    names = [name for name, (size, _) in GROUPS.items() for _ in range(size)]
    return certify(np.zeros(len(names)), delta=DELTA, groups=names).guarantees[0].bound.delta


def _groups(share: float) -> Trial:
    """Whether the certificate of all examples, or of a group, fails."""
    limit = Limits(binomial_upper_limit, share)
    total = sum(size for size, _ in GROUPS.values())
    mean = sum(size * risk for size, risk in GROUPS.values()) / total

    def misses(rng: np.random.Generator) -> bool:
        # The group of an example is drawn too, so that the mean risk is that of a new one.
        sizes = rng.multinomial(total, [size / total for size, _ in GROUPS.values()])
        risks = [risk for _, risk in GROUPS.values()]
        errors = rng.binomial(sizes, risks)
        each = zip(errors.tolist(), sizes.tolist(), risks, strict=True)
        return limit(int(errors.sum()), total) < mean or any(limit(k, n) < p for k, n, p in each)

    return misses


def _shares() -> list[float]:
    """The share of each look at a set, as the ledger prices it."""
    ledger, shares = Ledger(DELTA, EXAMPLES), []
    for place in range(LOOKS):
        losses = np.arange(EXAMPLES) == place
        ledger, share = ledger.look([predictions_of(str(place), losses * 1.0)])
        shares.append(DELTA * share)
    return shares


def _looks(shares: list[float]) -> Trial:
    """Whether the certificate of any look fails, each at a model of its own of one risk."""
    limits = [Limits(binomial_upper_limit, share) for share in shares]

    def misses(rng: np.random.Generator) -> bool:
        counts = rng.binomial(EXAMPLES, RISK, LOOKS).tolist()
        return any(limit(k, EXAMPLES) < RISK for limit, k in zip(limits, counts, strict=True))

    return misses


def _threshold_risk(cut: float) -> float:
    """Risk of the answer 1 from a score on that is the probability of 1, and uniform."""
    return (cut**2 + (1 - cut) ** 2) / 2


def _threshold_errors(rng: np.random.Generator) -> np.ndarray:
    """Counts of errors of all thresholds on one set."""
    score = rng.random(EXAMPLES)
    label = rng.random(EXAMPLES) < score
    return np.sum((score[:, None] >= CUTS) != label[:, None], axis=0)


def _in_order(rng: np.random.Generator) -> bool:
    """Whether a threshold of too large a risk is certified, tested from the best one on."""
    for cut, count in zip(CUTS, _threshold_errors(rng).tolist(), strict=True):
        if _EXACT(count, EXAMPLES) > ASKED:
            return False
        if _threshold_risk(float(cut)) > ASKED:
            return True
    return False


def _thresholds(limit: Limits) -> Trial:
    """Whether the certificate of any threshold fails."""
    risks = [_threshold_risk(float(cut)) for cut in CUTS]

    def misses(rng: np.random.Generator) -> bool:
        counts = _threshold_errors(rng).tolist()
        return any(limit(k, EXAMPLES) < p for k, p in zip(counts, risks, strict=True))

    return misses


def _brier(rng: np.random.Generator) -> bool:
    """Whether the limit of a Brier score is below the true one: probabilities that are right."""
    chance = rng.beta(0.5, 0.5, 200)
    losses = (chance - (rng.random(200) < chance)) ** 2
    return Brier(losses).limit(np.arange(200), DELTA, False).limit < 0.125  # E p (1 - p)


def _guessing_file(*, paid: bool) -> Trial:
    """Whether the best of 256 files fails, each of which guesses, n = 200: 8 bits name one."""
    bounds: dict[int, float] = {}

    def misses(rng: np.random.Generator) -> bool:
        least = int(rng.binomial(200, 0.5, 256).min())
        if least not in bounds:
            bits = 8 if paid else 0
            bounds[least] = compression_bound(least / 200, 200, bits, DELTA, form="binomial").bound
        return bounds[least] < 0.5

    return misses


class _Subspace:
    """Whether a linear classifier in a random plane of 20 weights fails, n = 100.

    The pair of numbers with the least training errors is coded by `encode`; the true weights lie
    outside of the plane, and a tenth of the labels is flipped, so that its risk is known.
    """

    def __init__(self, form: Form) -> None:
        rng = np.random.default_rng(0)
        levels = np.arange(-7, 8)
        pairs = [(i, j) for i in levels.tolist() for j in levels.tolist() if (i, j) != (0, 0)]
        plane = np.linalg.qr(rng.normal(size=(20, 2)))[0]
        self.true = np.linalg.qr(rng.normal(size=(20, 1)))[0][:, 0] + 0.5 * plane[:, 0]
        self.weights = np.array(pairs, float) @ plane.T
        lengths = np.linalg.norm(self.weights, axis=1) * np.linalg.norm(self.true)
        angles = np.arccos(np.clip(self.weights @ self.true / lengths, -1, 1)) / np.pi
        self.risks = 0.1 + 0.8 * angles
        self.bits = [8 * len(encode([np.array(pair, float)], 7)) for pair in pairs]
        self.form: Form = form
        self.known: dict[tuple[int, int], float] = {}

    def __call__(self, rng: np.random.Generator) -> bool:
        X = rng.normal(size=(100, 20))
        label = (X @ self.true > 0) ^ (rng.random(100) < 0.1)
        errors = np.sum((X @ self.weights.T > 0) != label[:, None], axis=0)
        best = int(errors.argmin())
        key = int(errors[best]), self.bits[best]
        if key not in self.known:
            loss, bits = key[0] / 100, key[1]
            self.known[key] = compression_bound(loss, 100, bits, DELTA, form=self.form).bound
        return self.known[key] < self.risks[best]


def _number_shift(rng: np.random.Generator) -> bool:
    numbers = rng.integers(0, 20, 150)
    return number_shift(numbers[:100], numbers[100:]) <= SUSPICIOUS


def _answer_shift(rng: np.random.Generator) -> bool:
    answers = [("a", "b", "c", "c")[k] for k in rng.integers(0, 4, 150)]
    return answer_shift(answers[:100], answers[100:]) <= SUSPICIOUS


_EXACT = Limits(binomial_upper_limit, DELTA)


def trials() -> Iterator[tuple[str, float, bool, Trial]]:
    """Name, probability of failure, whether it is paid for, and the trial."""
    yield "three groups and all examples, n = 460", DELTA, True, _groups(_group_share())
    yield "five models that a ledger prices, n = 500", DELTA, True, _looks(_shares())
    yield "41 thresholds in order until one fails, n = 500", DELTA, True, _in_order
    share = Limits(binomial_upper_limit, math.nextafter(DELTA / CUTS.size, 0))
    yield "41 thresholds at once, n = 500", DELTA, True, _thresholds(share)
    yield "Brier score of right probabilities, n = 200", DELTA, True, _brier
    yield "the best of 256 files that guess, n = 200", DELTA, True, _guessing_file(paid=True)
    yield "coded weights of a plane, binomial, n = 100", DELTA, True, _Subspace("binomial")
    yield "coded weights of a plane, kl, n = 100", DELTA, True, _Subspace("kl")
    yield "shift of numbers of one law, 100 and 50", SUSPICIOUS, True, _number_shift
    yield "shift of answers of one law, 100 and 50", SUSPICIOUS, True, _answer_shift
    yield "three groups and all examples, not paid for", DELTA, False, _groups(DELTA)
    yield "five models, not paid for", DELTA, False, _looks([DELTA] * LOOKS)
    yield "41 thresholds at once, not paid for", DELTA, False, _thresholds(_EXACT)
    yield "the best of 256 files, not paid for", DELTA, False, _guessing_file(paid=False)


if __name__ == "__main__":
    raise SystemExit(simulate("choice_coverage", trials()))
