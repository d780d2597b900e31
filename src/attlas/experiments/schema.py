"""The published JSON Schemas of the files that attlas writes, and validation against them."""

import json
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from attlas.core.errors import refuse_misfits

if TYPE_CHECKING:  # the import takes 0.1 s, which a run with nothing to read can save
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator


NAMES = ("record", "verdict", "witness", "proof", "check", "audit")


def schema(name: str) -> dict[str, Any]:
    """One JSON Schema (draft 2020-12) as plain JSON.

    Args:
        name: "record", "verdict", "witness", "proof" or "audit" for files of a results folder,
            "check" for the output of `attlas check --json`. `attlas audit --json` writes "audit".

    Examples:
        >>> schema("record")["$id"]
        'record.json'
    """
    text = (
        resources.files("attlas.experiments").joinpath("schemas", f"{name}.json").read_text("utf-8")
    )
    return json.loads(text)


def violations(document: Any, name: str) -> tuple[str, ...]:
    """All violations of a schema, one line each with its place; empty if valid.

    Examples:
        >>> violations([], "check")
        ()
        >>> violations({}, "check")
        ("$: {} is not of type 'array'",)
    """
    return tuple(map(_line, _validator(name).iter_errors(document)))


@refuse_misfits
def violations_of(document: Any, wanted: dict[str, Any]) -> Iterator[str]:
    """The violations of a schema at hand, one line each with its place.

    Args:
        wanted: the schema, whose references stay inside it.

    Examples:
        >>> list(violations_of(1.5, {"type": "integer"}))
        ["$: 1.5 is not of type 'integer'"]
    """
    return map(_line, _strict_validator(wanted).iter_errors(document))


def first_violation(document: Any, name: str) -> str:
    """The first violation of a schema in a short line with its place; empty if valid.

    Examples:
        >>> first_violation([{}], "check")
        "$[0]: 'claim' is a required property"
    """
    error = next(_validator(name).iter_errors(document), None)
    return "" if error is None else textwrap.shorten(_line(error), 120, placeholder=" ...")


def _line(error: "ValidationError") -> str:
    return f"{error.json_path}: {error.message}"


@cache
def _validator(name: str) -> "Validator":
    return _strict_validator(_inlined(schema(name), name))


def _strict_validator(wanted: dict[str, Any]) -> "Validator":
    """A validator of one schema, in which 2.0 is a number and not an integer."""
    from jsonschema import Draft202012Validator, validators

    numbers = Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    )
    strict = validators.extend(Draft202012Validator, type_checker=numbers)
    return strict(wanted)


def _inlined(part: Any, name: str) -> Any:
    """A schema with its references replaced by the definitions; ours have no cycles."""
    if isinstance(part, list):
        return [_inlined(item, name) for item in part]
    if not isinstance(part, dict):
        return part
    inlined = {key: _inlined(value, name) for key, value in part.items() if key != "$ref"}
    if "$ref" not in part:
        return inlined
    file, _, definition = part["$ref"].partition("#/$defs/")
    file = file.removesuffix(".json") or name
    return {**_inlined(schema(file)["$defs"][definition], file), **inlined}
