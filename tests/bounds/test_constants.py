import pytest

from attlas.bounds.constants import require_constants
from attlas.core.errors import UserError


def test_constants_that_a_bound_does_not_have_are_refused_with_those_it_has():
    for name in ("printed", "sharp"):
        assert require_constants(name, "printed", "sharp") is None
    with pytest.raises(UserError, match=r"constants = 'corrected': choose one of printed, sharp"):
        require_constants("corrected", "printed", "sharp")
