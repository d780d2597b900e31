"""Which layers see every token."""

import pytest

from attlas.core.errors import UserError
from attlas.transformers._readers.layer_kinds import FULL, SLIDING, layer_kinds
from attlas.transformers.configuration import Configuration


def test_the_configuration_goes_before_the_default():
    values = Configuration({"layer_types": [FULL, SLIDING]})
    assert layer_kinds(values, 2, (FULL,)) == (FULL, SLIDING)
    assert layer_kinds(Configuration({"layer_types": None}), 2, (FULL,)) == (FULL, FULL)


@pytest.mark.parametrize("kinds", [[FULL], [FULL, "chunked"], "full", [FULL, 3], {FULL: SLIDING}])
def test_another_kind_or_number_is_refused(kinds):
    with pytest.raises(UserError, match=r"^layer_types = .* for each of the 2 layers is$"):
        layer_kinds(Configuration({"layer_types": kinds}), 2, (FULL,))
