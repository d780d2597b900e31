"""The levels of an audit."""

import pytest

from attlas.audit.level import LEVELS, default_level, require_level
from attlas.core.errors import UserError


def test_every_level_is_one_and_nothing_else():
    assert [require_level(level) for level in LEVELS] == [None, None, None]
    with pytest.raises(UserError, match="level = 'shallow' is unknown: choose weights, data or"):
        require_level("shallow")


def test_sequences_decide_where_no_level_is_named():
    assert (default_level(None), default_level([])) == ("weights", "data")
