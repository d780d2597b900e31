"""Guarantees on the bits of a text follow their schema and hold where tokens depend on the past."""

import json

import jsonschema
import numpy as np
import pytest

from attlas.bounds.generalisation.token_bound import SMOOTHINGS, token_bound
from attlas.certificates.stream import (
    stream_guarantee,
    stream_json,
    stream_rows,
    stream_schema,
    stream_sentences,
)
from attlas.core.errors import UserError


def test_the_bound_is_that_of_a_code_of_no_bits_and_bytes_only_scale_it():
    p = np.random.default_rng(0).random(5000)
    found = stream_guarantee("mine", p, 64, 12_500, 0.05)
    assert found.bound.bound == token_bound(p, 64, 0, 0.05).bound
    assert found.bits_per_byte == found.bound.bound * 5000 / 12_500
    np.testing.assert_allclose(found.bits, -np.log2(p).sum())
    assert any("fixed before" in condition.text for condition in found.bound.conditions)


def test_it_holds_where_each_token_depends_on_those_before_it():
    """Coins of 0.9 after a 1 and of 0.5 after a 0, of which the model always says 0.9."""
    rng = np.random.default_rng(1)
    mixed = {a: ((1 - a) * 0.9 + a / 2, (1 - a) * 0.1 + a / 2) for a in (0.0, *SMOOTHINGS)}
    missed, below = 0, 0
    for _ in range(60):
        tokens = [1]
        for coin in rng.random(1000):
            tokens.append(int(coin < (0.9 if tokens[-1] else 0.5)))
        chance = np.where(np.array(tokens[:-1]) == 1, 0.9, 0.5)
        expected = {
            a: np.mean(-chance * np.log2(one) - (1 - chance) * np.log2(nought))
            for a, (one, nought) in mixed.items()
        }
        p = np.where(np.array(tokens[1:]) == 1, 0.9, 0.1)
        found = stream_guarantee("mine", p, 2, 1000, 0.1)
        missed += found.bound.bound < min(expected[a] for a in SMOOTHINGS)
        below += found.bits / 1000 < expected[0.0]
    assert missed <= 0.1 * 60
    assert below > 0.3 * 60  # bits as they are measured guarantee nothing


def test_documents_follow_the_schema():
    several = [
        stream_guarantee(name, np.full(4000, q), 512, 9000, 0.025, at_most=1.5)
        for name, q in (("a", 0.5), ("b", 0.1))
    ]
    document = json.loads(json.dumps(stream_json(several, 1.5), allow_nan=False))
    jsonschema.Draft202012Validator.check_schema(stream_schema())
    jsonschema.validate(document, stream_schema())
    assert (document["passes"], [m["passes"] for m in document["models"]]) == (True, [True, False])
    impossible = stream_guarantee("c", np.append(np.full(4000, 0.5), 0.0), 512, 9000, 0.05)
    document = json.loads(json.dumps(stream_json([impossible], None), allow_nan=False))
    jsonschema.validate(document, stream_schema())
    assert document["models"][0]["measured_per_token"] is None
    headings, rows = stream_rows(several)
    assert {len(row) for row in rows} == {len(headings)}
    assert all(line.endswith(".") for line in stream_sentences(several))


@pytest.mark.parametrize(
    ("arguments", "options", "said"),
    [
        (([0.5], 512, 0, 0.05), {}, "size = 0 bytes"),
        (([0.5], 512, 1, 1.0), {}, "delta = 1.0"),
        (([1.5], 512, 1, 0.05), {}, "probabilities"),
        (([0.5], 512, 1, 0.05), {"at_most": 0.0}, "at_most = 0.0"),
    ],
)
def test_bad_input_is_one_line(arguments, options, said):
    with pytest.raises(UserError, match=said):
        stream_guarantee("mine", *arguments, **options)
