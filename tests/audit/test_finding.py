"""A finding as plain data."""

import json

from attlas.audit.finding import Finding


def test_infinite_strengths_are_null_in_plain_data():
    found = Finding("what", "how", 1, None, "entropy", float("inf")).to_json()
    assert found["strength"] is None
    assert found["layer"] == 1
    assert found["head"] is None
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert Finding("what", "how", 1, 2, "entropy", 4.5).to_json()["strength"] == 4.5
