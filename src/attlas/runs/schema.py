"""The published JSON Schemas of what attlas writes, and validation against them."""

import json
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource

NAMES = ("record", "verdict", "witness", "check")


def schema(name: str) -> dict[str, Any]:
    """One schema as plain JSON.

    Args:
        name: "record", "verdict" or "witness" for files of a results folder, "check" for the
            output of `attlas check --json`.

    Returns:
        A JSON Schema, draft 2020-12.

    Examples:
        >>> schema("record")["$id"]
        'record.json'
    """
    text = resources.files("attlas.runs").joinpath("schemas", f"{name}.json").read_text("utf-8")
    return json.loads(text)


def violations(document: Any, name: str) -> tuple[str, ...]:
    """What a document breaks of a schema.

    Args:
        document: plain JSON.
        name: see `schema`.

    Returns:
        One line for each violation, with its place; empty when valid.

    Examples:
        >>> violations([], "check")
        ()
        >>> violations({}, "check")
        ("$: {} is not of type 'array'",)
    """
    found = Draft202012Validator(schema(name), registry=_registry()).iter_errors(document)
    return tuple(f"{error.json_path}: {error.message}" for error in found)


@cache
def _registry() -> Registry:
    """The schemas by name: they refer to one another, never to the network."""
    return Registry().with_resources(
        (f"{name}.json", Resource.from_contents(schema(name))) for name in NAMES
    )
