"""Numbers that a formula cannot take are refused by name; traced ones pass."""

import jax
import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.core.ranges import require_at_least, require_positive


@pytest.mark.parametrize(
    "value", [0, -1.0, float("nan"), float("inf"), np.float32(0), -(10**400), 10**400]
)
def test_numbers_out_of_range_are_named(value):
    with pytest.raises(UserError, match=r"^gamma = .*: it must be finite and above 0$"):
        require_positive(gamma=value)
    with pytest.raises(UserError, match=r"^k = .*: it must be finite and at least 1$"):
        require_at_least(1, k=value)


def test_numbers_in_range_and_traced_ones_pass():
    def traced(x):
        require_positive(x=x)
        require_at_least(9, x=x)
        return x

    assert require_positive(x=1e-300) is None
    assert require_at_least(2, x=2) is None
    assert jax.jit(traced)(1.0) == 1.0
