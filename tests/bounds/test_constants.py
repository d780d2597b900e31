import pytest

from attlas.bounds.constants import refuse_unknown
from attlas.core.errors import UserError


def test_constants_that_a_bound_does_not_have_are_refused_with_those_it_has():
    for name in ("printed", "sharp"):
        assert refuse_unknown(name, "printed", "sharp") is None
    with pytest.raises(UserError, match="constants='corrected': choose 'printed' or 'sharp'"):
        refuse_unknown("corrected", "printed", "sharp")
