"""How often certificates from predictions fail: 10,000 simulated sets of examples for each.

No time is compared here. Every row draws examples whose mean loss is known, certifies as a user
would, and counts the certificates that were exceeded, beside the probability of failure that they
name. The last rows are what the same numbers give when nothing is paid: the least of 20 limits, and
a limit that is looked at after every 50 examples.
"""

import math
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from attlas.bounds.generalisation.betting_limit import betting_upper_limit
from attlas.bounds.generalisation.binomial_tail import binomial_upper_limit
from attlas.bounds.generalisation.error_sequence import error_sequence_limit
from attlas.bounds.generalisation.improvement_limit import improvement_limit
from attlas.bounds.generalisation.mean_bound import mean_bound
from attlas.certificates.certify import certify
from benchmarks.interleave import write_results

DELTA, SETS, RISK = 0.05, 10_000, 0.1
STANDARD_ERRORS = 4.0
"""Above delta by more than so many, a row fails."""
Trial = Callable[[np.random.Generator], bool]


def _errors(rng: np.random.Generator, n: int) -> np.ndarray:
    return (rng.random(n) < RISK) * 1.0


class Limits:
    """Limits of counts, each computed once.

    Args:
        limit: of a count, the number of examples and a probability of failure.
        delta: this probability.
    """

    def __init__(self, limit: Callable[[int, int, float], float], delta: float):
        self._limit, self._delta = limit, delta
        self._known: dict[tuple[int, int], float] = {}

    def __call__(self, k: int, n: int) -> float:
        """The limit of k errors of n examples."""
        if (k, n) not in self._known:
            self._known[k, n] = self._limit(k, n, self._delta)
        return self._known[k, n]


def _looks(limit: Limits) -> Trial:
    """Whether the limit fails at any of 40 looks, after every 50 of 2,000 examples."""

    def misses(rng: np.random.Generator) -> bool:
        counts = np.cumsum(_errors(rng, 2000)).astype(int)
        return any(limit(int(counts[n - 1]), n) < RISK for n in range(50, 2001, 50))

    return misses


def _least(limit: Limits) -> Trial:
    """Whether the least of the limits of 20 models of one risk, on one set of 500, fails."""
    return lambda rng: limit(int(rng.binomial(500, RISK, 20).min()), 500) < RISK


def _in_order(rng: np.random.Generator) -> bool:
    """Whether a model of too large a risk passes --in-order: 8, 10.1 and 12 % against 10 %."""
    models = {str(risk): (rng.random(500) < risk) * 1.0 for risk in (0.08, 0.101, 0.12)}
    result = certify(models, delta=DELTA, at_most=RISK, in_order=True)
    return any(model.passes and float(model.model) > RISK for model in result.models)


def trials() -> Iterator[tuple[str, float, bool, Trial]]:
    """Name, probability of failure, whether it is paid for, and the trial."""
    exact = Limits(binomial_upper_limit, DELTA)
    share = Limits(binomial_upper_limit, math.nextafter(DELTA / 20, 0))
    sequence = Limits(error_sequence_limit, DELTA)
    yield (
        "counted errors, n = 500",
        DELTA,
        True,
        lambda rng: exact(int(rng.binomial(500, RISK)), 500) < RISK,
    )
    for name, a, b in (("skewed", 1.0, 9.0), ("nearly 0 or 1", 0.02, 0.18)):
        draw = lambda rng, a=a, b=b: rng.beta(a, b, 200)  # noqa: E731
        yield (
            f"losses in [0, 1], {name}, betting, n = 200",
            DELTA,
            True,
            lambda rng, draw=draw: betting_upper_limit(draw(rng), DELTA) < RISK,
        )
        yield (
            f"losses in [0, 1], {name}, Bernstein, n = 200",
            DELTA,
            True,
            lambda rng, draw=draw: mean_bound(draw(rng), DELTA, method="bernstein").bound < RISK,
        )
        yield (
            f"losses in [0, 1], {name}, at any of 200 times",
            DELTA,
            True,
            lambda rng, draw=draw: betting_upper_limit(draw(rng), DELTA, anytime=True) < RISK,
        )
    yield "counted errors, 40 looks, --sequential", DELTA, True, _looks(sequence)
    yield (
        "improvement of an equal model, n = 200",
        DELTA,
        True,
        lambda rng: improvement_limit(_errors(rng, 200), _errors(rng, 200), DELTA) > 0,
    )
    yield "the least of 20 models, n = 500", DELTA, True, _least(share)
    yield "models in order until one fails, n = 500", DELTA, True, _in_order
    yield "the least of 20 models, not paid for", DELTA, False, _least(exact)
    yield "counted errors, 40 looks, exact limits", DELTA, False, _looks(exact)


def simulate(name: str, cases: Iterable[tuple[str, float, bool, Trial]]) -> int:
    """Simulate trials, write the results, and count those that fail otherwise than they should.

    Args:
        name: the benchmark, as the file of its results.
        cases: trials, such as `trials` yields.
    """
    rows, wrong = [], 0
    for place, (case, delta, paid, misses) in enumerate(cases):
        rng = np.random.default_rng(place)
        share = sum(misses(rng) for _ in range(SETS)) / SETS
        allowed = delta + STANDARD_ERRORS * math.sqrt(delta * (1 - delta) / SETS)
        wrong += (share > allowed) == paid
        rows.append({"case": case, "named": delta, "failed": share, "sets": SETS, "paid": paid})
        print(f"{case}: fails in {100 * share:.2f} % of {SETS} sets", flush=True)
    write_results(name, rows)
    return wrong


def main() -> int:
    """Simulate, write the results, and fail where a certificate fails too often."""
    return simulate("certificate_coverage", trials())


if __name__ == "__main__":
    raise SystemExit(main())
