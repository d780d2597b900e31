"""The published JSON Schemas of the files that attlas writes, and validation against them."""

import json
import textwrap
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from attlas.core.errors import UserError, in_short, refuse_misfits

if TYPE_CHECKING:  # a run with nothing to read saves the import
    from jsonschema_rs import KeywordValidator, ValidationError, Validator


NAMES = ("record", "verdict", "witness", "proof", "check", "audit")
_WHOLE = "attlasWhole"


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
        ('$: {} is not of type "array"',)
    """
    return tuple(_lines(_validator(name), document))


@refuse_misfits
def violations_of(document: Any, wanted: dict[str, Any]) -> Iterator[str]:
    """The violations of a schema at hand, one line each with its place.

    Args:
        wanted: the schema, whose references stay inside it.

    Raises:
        UserError: if `wanted` is not a JSON Schema.

    Examples:
        >>> list(violations_of(1.5, {"type": "integer"}))
        ['$: 1.5 is not of type "integer"']
    """
    return _lines(_strict_validator(wanted), document)


def first_violation(document: Any, name: str) -> str:
    """The first violation of a schema in a short line with its place; empty if valid.

    Examples:
        >>> first_violation([{}], "check")
        '$[0]: "provenance" is a required property'
    """
    line = next(_lines(_validator(name), document), "")
    return textwrap.shorten(line, 120, placeholder=" ...")


def _lines(validator: "Validator", document: Any) -> Iterator[str]:
    """One line for each violation; that a document is not JSON is one too."""
    try:
        # Of a document that fits, the list of violations takes twice as long as this.
        if not validator.is_valid(document):
            yield from map(_line, validator.iter_errors(document))
    except ValueError as error:  # a key that is no text, a lone surrogate, endless nesting
        yield f"$: this is not JSON ({error})"


def _line(error: "ValidationError") -> str:
    return f"{_place(error.instance_path)}: {error.message}"


def _place(path: Iterable[str | int]) -> str:
    """The JSONPath of a part of a document."""
    place = "$"
    for step in path:
        is_plain = isinstance(step, str) and step.isascii() and step.isidentifier()
        place += f".{step}" if is_plain else f"[{step!r}]"
    return place


@cache
def _validator(name: str) -> "Validator":
    return _strict_validator(_inlined(schema(name), name))


def _strict_validator(wanted: dict[str, Any]) -> "Validator":
    """A validator of one schema, in which 2.0 is a number and not an integer."""
    from jsonschema_rs import Draft202012Validator

    keywords: dict[str, type[KeywordValidator]] = {_WHOLE: _Whole}
    try:
        return Draft202012Validator(_with_whole_integers(wanted), keywords=keywords)
    except ValueError as error:
        raise UserError(
            f"the schema is not one of draft 2020-12 ({in_short(error)}): correct it"
        ) from error


class _Whole:
    """The keyword that refuses 2.0, which JSON Schema counts as an integer."""

    def __init__(self, parent_schema: Any, value: Any, schema_path: Any) -> None:
        """Take what the library hands to each keyword; none of it matters here."""

    def validate(self, instance: Any) -> None:
        if isinstance(instance, float) and instance.is_integer():
            raise ValueError(f'{instance!r} is not of type "integer"')


def _with_whole_integers(part: Any) -> Any:
    """A schema with the keyword `_WHOLE` beside each type that admits integers, not numbers."""
    if isinstance(part, list):
        return [_with_whole_integers(item) for item in part]
    if not isinstance(part, dict):
        return part
    types = part.get("type")
    types = types if isinstance(types, list) else [types]
    whole = {_WHOLE: True} if "integer" in types and "number" not in types else {}
    return {key: _with_whole_integers(value) for key, value in part.items()} | whole


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
