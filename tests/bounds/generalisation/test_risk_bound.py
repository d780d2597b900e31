"""What a bound on a risk says of itself, and what no bound is about."""

import math

import pytest

from attlas.bounds.generalisation.risk_bound import (
    CODE_BEFORE,
    UNIT_LOSS,
    RiskBound,
    require_sample,
    require_unit_loss,
)
from attlas.core.errors import UserError


def bound(value, trivial=1):
    return RiskBound(
        "root", value, 0.1, 50, 0.05, (("half", 0.02), ("rest", 0.03)), 3.0,
        (CODE_BEFORE, UNIT_LOSS), lambda m: 0.1 + 1 / math.sqrt(m), trivial,
    )  # fmt: skip


def test_gap_vacuity_and_text():
    found = bound(0.4)
    assert math.isclose(found.gap, 0.3)
    assert float(found) == 0.4
    assert (found.vacuous, bound(0.4, 0.4).vacuous, bound(math.nan).vacuous) == (False, True, True)
    text = repr(found)
    assert "root: risk at most 0.4 (non-vacuous), empirical 0.1 on n = 50" in text
    assert "complexity 3 nats; delta = 0.05: half 0.02, rest 0.03" in text
    assert "declared: the code and the architecture" in text
    assert "checked: losses lie in [0, 1]" in text


def test_samples_are_the_least_that_beat_the_trivial_risk():
    assert bound(0.4, 0.5).samples_until_nonvacuous == 7  # 1 / sqrt(7) < 0.4 <= 1 / sqrt(6)
    assert bound(0.4, 0.1).samples_until_nonvacuous == math.inf


def test_bad_input_is_one_line():
    with pytest.raises(UserError, match="loss = nan: scale or clip"):
        require_unit_loss(math.nan)
    with pytest.raises(UserError, match=r"n = 2\.5 examples"):
        require_sample(2.5, 0.1, 1)
    with pytest.raises(UserError, match=r"trivial = 1\.5"):
        require_sample(2, 0.1, 1.5)
