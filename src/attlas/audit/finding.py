r"""One thing that stands out in a model, against a reference, with an intervention that was run."""

import math
from typing import Any, NamedTuple


class Finding(NamedTuple):
    """What an audit reports first.

    Attributes:
        sentence: the finding, prose.
        evidence: the reference, and the effect of an ablation or attack, prose.
        layer: where, None for the whole model.
        head: where, None for a layer or the whole model.
        quantity: name of the variable it rests on.
        strength: how far it stands out, for the order: larger is further.
        action: what to do, prose.
    """

    sentence: str
    evidence: str
    layer: int | None
    head: int | None
    quantity: str
    strength: float
    action: str = ""

    def to_json(self) -> dict[str, Any]:
        """The finding as plain data; an infinite strength, of a head among equal ones, is null."""
        strength = self.strength if math.isfinite(self.strength) else None
        return {**self._asdict(), "strength": strength}
