"""Validation against the schemas, beside a second implementation of JSON Schema."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from attlas.core.errors import UserError
from attlas.experiments.schema import first_violation, schema, violations, violations_of

RECORDS = Path(__file__).parents[2] / "records"
RECORD = min(RECORDS.glob("direction/*.json"), key=lambda file: file.stat().st_size)
SPOILT = (None, True, -1, 2.5, 2.0, "", "spoilt", [], [0.5], {}, {"spoilt": 1})


def spoilt(document: Any) -> Iterator[Any]:
    """The document with one of its parts replaced by each of the spoilt values, or left out."""
    yield from (value for value in SPOILT if value != document or type(value) is not type(document))
    if isinstance(document, dict):
        for key, part in document.items():
            yield {other: value for other, value in document.items() if other != key}
            yield from ({**document, key: value} for value in spoilt(part))
    elif isinstance(document, list) and document:
        yield from ([value, *document[1:]] for value in spoilt(document[0]))


def peer() -> Any:
    """The other implementation, in which 2.0 is no integer either."""
    checker = jsonschema.Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    made = jsonschema.validators.extend(jsonschema.Draft202012Validator, type_checker=checker)
    return made(inlined(schema("record"), "record"))


def inlined(part: Any, file: str) -> Any:
    """A schema with each reference replaced by what it names."""
    if isinstance(part, list):
        return [inlined(item, file) for item in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        other, _, name = part["$ref"].partition("#/$defs/")
        other = other.removesuffix(".json") or file
        rest = {key: value for key, value in part.items() if key != "$ref"}
        return inlined(schema(other)["$defs"][name], other) | inlined(rest, file)
    return {key: inlined(value, file) for key, value in part.items()}


def test_two_implementations_refuse_the_same_records():
    record, other = json.loads(RECORD.read_text("utf-8")), peer()
    assert not first_violation(record, "record")
    assert other.is_valid(record)
    cases = list(spoilt(record))
    refused = [bool(first_violation(case, "record")) for case in cases]
    assert refused == [not other.is_valid(case) for case in cases]
    assert 0 < sum(refused) < len(cases)  # settings are free, other parts are not


@pytest.mark.parametrize(
    ("document", "line"),
    [
        ([{"a b": 2.0}], "$[0]['a b']: 2.0 is not of type \"integer\""),
        ([{"c": [True]}], '$[0].c: [true] is not of type "integer"'),
        ([{1: 2}], "$: this is not JSON (Dict key must be str or str enum. Got 'int')"),
        ([{"c": "\ud800"}], "$: this is not JSON ('utf-8' codec can't encode character"),
    ],
)
def test_a_violation_is_one_line_with_its_place(document, line):
    wanted = {"items": {"additionalProperties": {"type": "integer"}}}
    (found,) = violations_of(document, wanted)
    assert found.startswith(line)
    assert "\n" not in found


def test_endless_nesting_is_named():
    endless: list[Any] = []
    endless.append(endless)
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    for document in (endless, deep):
        assert violations(document, "check")[0].startswith("$")


def test_what_is_no_schema_is_refused():
    with pytest.raises(UserError, match=r"nosuch.*: correct it"):
        list(violations_of(1, {"type": "nosuch"}))
