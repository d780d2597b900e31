"""The example of the guide to audits: the parts of one audit that its page shows.

`attlas audit stories260k --level deep --no-curvature --json FILE` writes all numbers, and
`python docs/example_audit.py FILE` takes these parts from them.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "example_audit.json"
SHOWN = ("model", "protocol", "decisions", "findings", "bounds")
COST = "removal_mean"
"""What the loss changes by when a head's output is replaced by its mean."""


def shown(document: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of an audit that the page shows, with the cost of each head by layer.

    Examples:
        >>> head = {"layer": 0, "head": 0, "removal_mean": 0.5}
        >>> shown({"heads": [head], **dict.fromkeys(SHOWN)})["costs"]
        [[0.5]]
    """
    costs: dict[int, list[float]] = {}
    for head in document["heads"]:
        costs.setdefault(head["layer"], []).append(head[COST])
    return {name: document[name] for name in SHOWN} | {"costs": list(costs.values())}


def example() -> dict[str, Any]:
    """The stored parts."""
    return json.loads(FILE.read_text(encoding="utf-8"))


if __name__ == "__main__":
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    text = json.dumps(shown(document), indent=1, sort_keys=True)
    FILE.write_text(f"{text}\n", encoding="utf-8")
