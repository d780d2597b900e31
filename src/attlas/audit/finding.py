r"""One thing that a reader should know of a model: what was seen, what to do, and its test."""

import math
from typing import Any, NamedTuple


class Finding(NamedTuple):
    """What an audit reports first.

    Attributes:
        sentence: the finding, prose.
        evidence: what it is compared with, or what it means, prose.
        layer: where, None for the whole model.
        head: where, None for a layer or the whole model.
        quantity: name of the variable it rests on; empty for a decision.
        strength: how far it stands out from other heads, infinite for a decision.
        action: what to do, prose.
        effect: what the action, or the ablation or attack that tests it, did, prose.
        consequence: what depends on it, the order of findings: the share of the model that the
            action saves where its test allows it, else the share of the loss that is certainly
            lost by acting otherwise; infinite for the learning rate, of which a user has asked.
        kind: kind of the decision; "observation" of what stands out among the heads.
    """

    sentence: str
    evidence: str
    layer: int | None
    head: int | None
    quantity: str
    strength: float
    action: str = ""
    effect: str = ""
    consequence: float = 0.0
    kind: str = "observation"

    def to_json(self) -> dict[str, Any]:
        """The finding as plain data; what is not finite is null."""
        plain = self._asdict()
        for name in ("strength", "consequence"):
            plain[name] = plain[name] if math.isfinite(plain[name]) else None
        return plain

    @property
    def text(self) -> str:
        """What was seen, what to do and what the test gave, as sentences without the last stop.

        Examples:
            >>> Finding("A head sinks", "", 0, 1, "", 1.0, "Keep it", "The loss rises").text
            'A head sinks. Keep it. The loss rises'
        """
        return ". ".join(filter(None, (self.sentence, self.action, self.effect)))
