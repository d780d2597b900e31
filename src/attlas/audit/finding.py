r"""One thing that stands out in a model, against a reference, with an intervention that was run."""

from typing import Any, NamedTuple


class Finding(NamedTuple):
    """What an audit tells first.

    Attributes:
        sentence: what was found, prose.
        evidence: against which reference, and what happened when it was acted on, prose.
        layer: where, None for the whole model.
        head: where, None for a layer or the whole model.
        quantity: name of the variable it rests on.
        strength: how far it stands out, for the order: larger is further.
    """

    sentence: str
    evidence: str
    layer: int | None
    head: int | None
    quantity: str
    strength: float

    def to_json(self) -> dict[str, Any]:
        """The finding as plain data."""
        return self._asdict()
