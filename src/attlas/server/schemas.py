"""The JSON Schemas of the tools: what each takes and what it returns."""

from typing import Any

from attlas.certificates.document import certification_schema
from attlas.experiments.schema import schema, violations_of

_SOURCE = {
    "type": "string",
    "maxLength": 1_000_000,
    "description": "text of a Python file with claims, as `attlas check FILE` reads it",
}
_TEXT = {"type": "string"}
_SEED = {"type": "integer", "minimum": 0, "maximum": 2**32 - 1, "default": 0}
_CLAIM = {
    "type": "string",
    "description": "a claim by its name, or by FILE.py:NAME; with a source its name there",
}
_ONE_CLAIM = {"claim": _CLAIM, "source": _SOURCE}
_WITNESS = {
    "type": "object",
    "additionalProperties": {"type": ["array", "number", "boolean", "string"]},
    "description": "arrays of one instance by name, as nested lists; infinity and NaN as text",
}

_ROUNDS = {
    "type": "integer",
    "minimum": 0,
    "maximum": 1000,
    "description": "searches for a counterexample of two processor seconds each; by default 1 "
    "for the user's own claims and 0 for those of installed papers",
}
_COLUMNS = {
    **dict.fromkeys(("loss", "correct", "label", "prediction", "example", "group"), _TEXT),
    "score": {**_TEXT, "description": "probability of the label 1, for threshold"},
    "threshold": {"type": "number", "description": "predict 1 from this score on; 0.5 by default"},
    "probability": {
        **_TEXT,
        "description": "probability that the answer is right, or the column of score: certify its "
        "calibration error and Brier score, too",
    },
    "f_score": {
        "type": "array",
        "items": _TEXT,
        "uniqueItems": True,
        "description": "classes whose F1 scores are certified, too",
    },
}
"""Columns of a file of predictions, and what is made of them."""

DESCRIPTIONS = {
    "check": "Test claims (theorems as Python functions) on random instances, and their "
    "controls, false variants that must fail. SUPPORTED is no proof. A claim whose report has "
    "defects did not come out as it should.",
    "challenge": "Search for a counterexample of one claim with a budget of seconds or "
    "evaluations. A violation is confirmed in 60 digits or withdrawn; the witness can be replayed.",
    "replay": "Evaluate one claim on one instance, such as the witness of a challenge.",
    "power": "Which wrong constants would the check of a claim detect? A claim that detects no "
    "factor of 2 says little about its constant.",
    "coverage": "For every statement of a paper that was read from LaTeX: proved, held, false "
    "as printed, executed in part, to do, or not executable with the reason.",
    "certify": "From files of a model's predictions on independent examples: how often it is wrong "
    "on new examples, at most, with probability 1 - delta.",
}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def input_schemas() -> dict[str, dict[str, Any]]:
    """What each tool takes, by its name.

    Examples:
        >>> sorted(input_schemas()["replay"]["properties"])
        ['claim', 'source', 'witness']
    """
    places = "names of claims or papers, or places: a file, a folder, FILE.py:NAME; with a source "
    claims = {"type": "array", "items": {"type": "string"}, "maxItems": 1000}
    factors = {"type": "array", "items": {"type": "number", "exclusiveMinimum": 1}, "minItems": 1}
    return {
        "check": _object({
            "claims": {**claims, "description": f"{places}names of its claims, by default all"},
            "source": _SOURCE,
            "seed": _SEED,
            "challenge": _ROUNDS,
        }),
        "challenge": _object({
            **_ONE_CLAIM,
            "seconds": {"type": "number", "minimum": 0, "description": "10 without evaluations"},
            "evaluations": {"type": "integer", "minimum": 1},
            "method": {"type": "string", "default": "auto"},
            "seed": _SEED,
        }),
        "replay": _object({**_ONE_CLAIM, "witness": _WITNESS}, "witness"),
        "power": _object({**_ONE_CLAIM, "factors": factors, "seed": _SEED}),
        "coverage": _object(
            {"folder": {"type": "string", "description": "folder of the paper's project"}},
            "folder",
        ),
        "certify": _object(
            {
                "files": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "columns": _object(_COLUMNS),
                "delta": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                "at_most": {"type": "number", "minimum": 0, "maximum": 1},
                "at_least": {
                    "type": "number",
                    "minimum": 0,
                    "maximum": 1,
                    "description": "F1 score that is asked for",
                },
                "baseline": {"type": "string", "description": "file that others are compared with"},
                "sequential": {
                    "type": "boolean",
                    "description": "hold after each example, in the order of the file",
                },
                "in_order": {
                    "type": "boolean",
                    "description": "test files in order at the whole delta, until one fails",
                },
            },
            "files",
        ),
    }  # fmt: skip


def output_schemas() -> dict[str, dict[str, Any]]:
    """What each tool returns, by its name; reports and verdicts as `attlas check --json` has them.

    Examples:
        >>> output_schemas()["check"]["properties"]["reports"]["type"]
        'array'
    """
    definitions = schema("check")["$defs"]
    items = schema("check")["items"]
    number = {"anyOf": [{"$ref": "#/$defs/number"}, {"type": "null"}]}
    verdict, text = {"$ref": "#/$defs/verdict"}, _TEXT
    count = {"type": "integer", "minimum": 0}
    witness = {"anyOf": [_WITNESS, {"type": "null"}]}
    cells = {"type": "array", "items": {"enum": ["drawn", "attack", "passes"]}}
    statement = _object(
        {
            **dict.fromkeys(("locator", "label", "state", "remark"), text),
            "claims": {"type": "array", "items": text},
        },
        "locator",
        "state",
    )
    outputs = {
        "check": {"reports": {"type": "array", "items": items}},
        "challenge": {
            **dict.fromkeys(("claim", "expect", "method", "certified"), text),
            "violated": {"type": "boolean"},
            "ratio": number,
            "evaluations": count,
            "seed": count,
            "verdict": verdict,
            "witness": witness,
            "shrunk": {"anyOf": [{"$ref": "#/$defs/shrunk"}, {"type": "null"}]},
        },
        "replay": {"claim": text, "verdict": verdict},
        "power": {
            "claim": text,
            "factors": {"type": "array", "items": {"type": "number"}},
            "detects_from": {"type": "array", "items": {"type": ["number", "null"]}},
            "components": {"type": "array", "items": cells},
            "exponents": {"type": "object", "additionalProperties": number},
        },
        "coverage": {
            "share": {"type": "number", "minimum": 0, "maximum": 1},
            "statements": {"type": "array", "items": statement},
            "changes": {"type": "array", "items": text},
            "unmatched": {"type": "array", "items": text},
        },
    }
    tools = {
        name: {**_object(properties, *properties), "$defs": definitions}
        for name, properties in outputs.items()
    }
    return {**tools, "certify": certification_schema()}


def first_error(document: Any, wanted: dict[str, Any]) -> str:
    """The first violation of a schema in one line, empty if there is none.

    Examples:
        >>> first_error({"claims": "lemma-12"}, input_schemas()["check"])
        '$.claims: "lemma-12" is not of type "array"'
    """
    return next(iter(violations_of(document, wanted)), "")
