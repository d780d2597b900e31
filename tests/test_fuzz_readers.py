"""Readers of foreign files on spoilt inputs; `python tests/fuzz_readers.py` does it for longer."""

import pytest
from fuzz_readers import KINDS, findings, kept_inputs, read_kept

INPUTS = dict.fromkeys(KINDS, 5000) | {
    "config": 1500,
    "safetensors": 1000,
    "header": 1000,
    "record": 250,
}
"""Which inputs are read does not depend on the machine; about two minutes for all kinds."""
SECONDS = 60.0
"""Of the processor for one kind, on any machine."""


@pytest.mark.parametrize(
    ("kind", "path"), kept_inputs(), ids=lambda value: getattr(value, "name", value)
)
def test_what_was_found_before_is_answered_or_refused(kind, path, tmp_path):
    assert read_kept(kind, path, tmp_path) == ""


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_spoilt_inputs_are_answered_or_refused_in_one_line(kind):
    number, wrong = findings(kind, 0, SECONDS, INPUTS[kind])
    assert [(which, said) for which, said, _ in wrong] == []
    assert number == INPUTS[kind]
