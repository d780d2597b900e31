"""Padded rows hold their sequences, and widths are few."""

import numpy as np
import pytest

from attlas.audit.padded_sequences import STEP, padded_tokens, padded_width


@pytest.mark.parametrize("context", [None, 70])
def test_a_width_holds_its_sequence_and_no_more_than_a_step(context):
    for length in range(1, 71):
        width = padded_width(length, context)
        assert length <= width < length + STEP
        assert width % STEP == 0 or width == context


def test_what_is_present_of_the_rows_are_the_sequences():
    sequences = [np.arange(1, n) for n in (4, 2, 9)]
    tokens, present = padded_tokens(sequences, 10)
    for row, here, sequence in zip(tokens, present, sequences, strict=True):
        np.testing.assert_array_equal(row[here], sequence)
        assert not row[~here].any()
