"""What to do with a model, and what it did to the loss when it was tried."""

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from attlas.display.numbers import plain_number


class AccuracyChange(NamedTuple):
    """What an action did to the share of examples that are answered right.

    Attributes:
        name: of the share.
        before: of the unchanged model on the examples of the test.
        change: mean change by the action.
        low: lower end of an interval that holds with 95 % for every number of examples.
        high: its upper end.
    """

    name: str
    before: float
    change: float
    low: float
    high: float


@dataclass(frozen=True)
class Decision:
    """An action that was tried on the user's text.

    Attributes:
        kind: "step" of gradient descent, "heads" that are removed together, "rounding" of layers,
            "sinks", "precision" of logits, or "copies" of heads.
        what: what was seen, prose.
        meaning: what it means, prose.
        action: what to do, prose.
        loss: mean loss of the unchanged model on the sequences of the test.
        change: mean change of it by the action.
        low: lower end of its bootstrap interval over these sequences.
        high: its upper end.
        unit: unit of the four numbers.
        sequences: number of sequences of the test, none of which chose the action.
        advised: whether the test stays within what the action may cost.
        heads: layer and head of each that the action is about.
        layers: layers that it is about.
        examples: what the sequences are, in the plural.
        accuracy: what it did to the accuracy; None where examples have no right answer.
        saving: share of the heads, or of the bits of weights, that the action saves.
    """

    kind: str
    what: str
    meaning: str
    action: str
    loss: float
    change: float
    low: float
    high: float
    unit: str
    sequences: int
    advised: bool = True
    heads: tuple[tuple[int, int], ...] = ()
    layers: tuple[int, ...] = ()
    examples: str = "sequences"
    accuracy: AccuracyChange | None = None
    saving: float = 0.0

    @property
    def consequence(self) -> float:
        """What depends on the decision, a share; see `Finding`.

        Examples:
            >>> decision = Decision("heads", "", "", "", 2.0, 0.5, 0.4, 0.6, "nats", 8, False)
            >>> decision.consequence
            0.2
        """
        if self.kind == "step":
            return math.inf
        if self.advised:
            return self.saving
        return max(self.low, 0.0) / (self.loss if self.loss > 0 else 1.0)

    @property
    def effect(self) -> str:
        """The tested effect as a sentence.

        Examples:
            >>> Decision("heads", "", "", "", 2.0, 0.01, 0.002, 0.04, "nats", 8).effect
            'On 8 sequences that did not choose it the loss of 2 nats changes by 0.01 [0.002, 0.04]'
        """
        loss, change, low, high = (
            plain_number(value) for value in (self.loss, self.change, self.low, self.high)
        )
        effect = (
            f"On {self.sequences} {self.examples} that did not choose it the loss of {loss} "
            f"{self.unit} changes by {change} [{low}, {high}]"
        )
        if self.accuracy is None:
            return effect
        name, *numbers = self.accuracy
        before, change, low, high = (plain_number(value) for value in numbers)
        return f"{effect}, the {name} of {before} by {change} [{low}, {high}]"

    def to_json(self) -> dict[str, Any]:
        """The decision as plain data, with the sentence on its effect."""
        plain = asdict(self) | {"effect": self.effect}
        return plain | {
            "heads": [list(place) for place in self.heads],
            "layers": list(self.layers),
            "accuracy": None if self.accuracy is None else self.accuracy._asdict(),
        }
