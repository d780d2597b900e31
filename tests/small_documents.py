"""A small document of each kind that tests of stored files write."""

ENVIRONMENT = {
    "code": "0" * 64,
    "commit": None,
    "versions": {},
    "device": "",
    "platform": "",
    "flags": "",
}
AUDIT = {
    "schema": "attlas/audit/1",
    "model": {
        "name": "/models/a b",
        "architecture": "gpt2",
        "layers": 1,
        "heads per layer": 1,
        "parameters": 9,
    },
    "level": "data",
    "notes": [],
    "quantities": {},
    "heads": [{"layer": 0, "head": 0, "entropy": None}],
    "depths": [],
    "bounds": [],
    "curves": [],
    "findings": [],
    "facts": {"loss": 2.5},
    "standings": {
        key: [] for key in ("proved", "checked on instances", "heuristic", "not claimed")
    },
}


def witness_document(x: float) -> dict[str, object]:
    """A witness of the claim `a/b` with one fact."""
    return {"kind": "witness", "claim": "a/b", "facts": {"x": x}, "metadata": ENVIRONMENT}
