"""How often certificates of bits per token fail: 10,000 simulated texts for each.

No time is compared here. Rows are as in `certificate_coverage.py`. Texts are chains of 2,000 bits
whose next one follows the last one, so that the expected bits given those before are known; the
model says 0.9 for the last bit again. The last row takes what is measured for a guarantee.
"""

from collections.abc import Iterator

import numpy as np

from attlas.bounds.generalisation.token_bound import SMOOTHINGS, smoothed_losses
from attlas.certificates.stream import stream_guarantee
from benchmarks.certificate_coverage import DELTA, Trial, simulate

TOKENS, SAID = 2000, 0.9


def _expected(stay: np.ndarray, smoothing: float) -> float:
    """Mean over a text of the expected bits of the smoothed prediction."""
    Z, least, width = smoothed_losses(np.array([SAID, 1 - SAID]), 2, smoothing)
    return float(np.mean(least + width * (stay * Z[0] + (1 - stay) * Z[1])))


def _text(rng: np.random.Generator, drift: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities to stay, which change by up to `drift`, and those of the model."""
    middle = rng.uniform(0.6, 0.95 - drift)
    stay = middle + drift * np.sin(np.arange(TOKENS) / 100)
    return stay, np.where(rng.random(TOKENS) < stay, SAID, 1 - SAID)


def _bound(drift: float) -> Trial:
    def misses(rng: np.random.Generator) -> bool:
        stay, p = _text(rng, drift)
        bound = stream_guarantee("model", p, 2, TOKENS, DELTA).bound
        # The certificate is of the smoothing that was chosen, which its measured bits tell.
        measured = {a: _measured(p, a) for a in SMOOTHINGS}
        chosen = min(measured, key=lambda a: abs(measured[a] - bound.empirical))
        return _expected(stay, chosen) > bound.bound

    return misses


def _measured(p: np.ndarray, smoothing: float) -> float:
    Z, least, width = smoothed_losses(p, 2, smoothing)
    return least + width * float(np.mean(Z))


def _as_measured(rng: np.random.Generator) -> bool:
    stay, p = _text(rng, 0.0)
    return _measured(p, SMOOTHINGS[-1]) < _expected(stay, SMOOTHINGS[-1])


def trials() -> Iterator[tuple[str, float, bool, Trial]]:
    """Name, probability of failure, whether it is paid for, and the trial."""
    for drift in (0.0, 0.2):
        yield f"bits per token of a chain, drift {drift:g}", DELTA, True, _bound(drift)
    yield "bits per token of a chain, as measured", DELTA, False, _as_measured


if __name__ == "__main__":
    raise SystemExit(simulate("stream_coverage", trials()))
