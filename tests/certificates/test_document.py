"""The document follows its schema, and percentages are rounded to the safe side."""

import json

import jsonschema
import numpy as np
import pytest

from attlas.certificates.certify import certify
from attlas.certificates.document import (
    certification_json,
    certification_schema,
    comparison_rows,
    guarantee_rows,
    percent,
    sentences,
)

LOSSES = {"old": [0.0, 1.0] * 20, "new": [0.0, 0.5] * 20, "same": [0.0, 1.0] * 20}


@pytest.mark.parametrize(
    "options",
    [{}, {"at_most": 0.4}, {"sequential": True}, {"in_order": True, "at_most": 0.9},
     {"groups": ["a", "b"] * 20}],
)  # fmt: skip
def test_every_document_follows_the_schema(options):
    result = certify(LOSSES, **options)
    document = json.loads(json.dumps(certification_json(result), allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(certification_schema())
    jsonschema.validate(document, certification_schema())
    for headings, rows in (guarantee_rows(result), comparison_rows(result)):
        assert {len(row) for row in rows} == {len(headings)}
    assert all(line.endswith(".") for line in sentences(result))


def test_percentages_never_flatter():
    rng = np.random.default_rng(0)
    for share in [*rng.random(200), *10 ** rng.uniform(-8, 0, 200)]:
        up, down = (float(percent(share, up=way)[:-2]) / 100 for way in (True, False))
        assert down <= share * (1 + 1e-12)
        assert share <= up * (1 + 1e-12)
        assert up - down <= 1.01e-2 * share + 1e-11
