"""Probabilities of failure and lengths of codes that no bound can take are refused by name."""

import pytest

from attlas.bounds.generalisation.conditions import require_bits, require_delta
from attlas.core.errors import UserError

NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, NAN, INFINITY])
def test_what_is_no_probability_of_failure_is_refused(delta):
    with pytest.raises(UserError, match=r"^level = .*: the probability of failure must lie in"):
        require_delta(delta, "level")
    assert require_delta(0.5) is None


@pytest.mark.parametrize("bits", [-1, NAN, INFINITY, 10**400])
def test_what_is_no_length_of_a_code_is_refused(bits):
    with pytest.raises(UserError, match=r"^bits = .*: the length of a code must be finite"):
        require_bits(bits)
    assert require_bits(0) is None
