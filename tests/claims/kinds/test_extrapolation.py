"""True statements that are slow are refuted at no scales; false ones at scales far apart are."""

import numpy as np
import pytest

from attlas.claims.kinds.extrapolation import keeps_growing, left_of_fall, stays_away, still_grows

SCALES = {
    "decades": 10.0 ** np.arange(1, 5),
    "doubling": 16 * 2.0 ** np.arange(4),
    "doubling late": 4096 * 2.0 ** np.arange(4),
    "fourfold": 10 * 4.0 ** np.arange(4),
    "closed forms": 10.0 ** (3 * np.arange(4, 8)),
}


def uniform(seed):
    """Forty numbers from 0.1 to 1 in a column."""
    return np.random.default_rng(seed).uniform(0.1, 1, (40, 1))


def rising(term):
    """Ratios that rise to a bound from below, as far below it at first as they please."""
    return 1 - 0.9 * uniform(1) * term / term[0]


def logs(n):
    """Slowly varying functions of the scale."""
    log = np.log(n)
    return {"log": log, "root": np.sqrt(log), "square": log**2, "loglog": np.log(1 + log)}


@pytest.mark.parametrize("scale", SCALES)
def test_a_rate_that_comes_slowly_is_not_refuted(scale):
    n = SCALES[scale]
    for slow in logs(n).values():
        bounded = [
            rising(1 / slow),
            rising(slow / n),
            rising(1 / slow + n**-0.5),
            1 + 1 / slow + 0 * n,
        ]
        bounded.append(rising(n**-0.1))
        for ratio in bounded:
            assert not keeps_growing(ratio, np.broadcast_to(n, ratio.shape)).any()


@pytest.mark.parametrize("scale", SCALES)
def test_a_limit_that_comes_slowly_is_not_refuted(scale):
    n = SCALES[scale]
    for slow in logs(n).values():
        for distance in (1 / slow, slow / n, 1 / slow + n**-0.5, 1 / slow + 1 / n, n**-0.05):
            assert not stays_away(uniform(2) * distance).any()
        shifted = uniform(2) / np.log(n + 100 * uniform(3)) + uniform(4) / n
        assert not stays_away(shifted).any()


@pytest.mark.parametrize("scale", SCALES)
def test_growth_like_a_power_and_settled_plateaus_are_seen(scale):
    n = SCALES[scale]
    rows = np.broadcast_to(n, (40, 4))
    for ratio in (uniform(5) * n ** uniform(6), 1 + uniform(5) * n, 1 + uniform(5) * np.sqrt(n)):
        assert keeps_growing(ratio, rows).all()
    assert stays_away(uniform(5) + 0 * n).all()
    assert stays_away(uniform(5) * n**0.1).all()
    assert stays_away(uniform(5) + 0.02 * uniform(6) * n[0] / n).all()


def test_growth_like_the_logarithm_is_seen_on_its_own_scale():
    n = SCALES["decades"]
    assert still_grows(np.log(n), n)
    assert not keeps_growing(np.log(n), n)
    exponents = np.array([1.0, 2.0, 4.0, 8.0])
    assert keeps_growing(exponents * np.log(10), exponents * np.log(10))


def test_what_is_left_of_a_fall_is_that_of_its_law():
    k = np.arange(3.0, 7.0)
    for distance in (0.3**k, 1 / k, 1 / (k + 20), 2.0 ** (-k / 3)):
        assert abs(left_of_fall(distance) - distance[-1]) < 1e-9 * distance[-1]
    assert np.isinf(left_of_fall(-np.log(k)))
    # A maximum between the scales is no plateau, and its rise is over soon.
    assert not stays_away(np.array([2.272, 3.003, 3.410, 3.597]))
