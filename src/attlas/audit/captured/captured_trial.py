"""Actions on a captured model: heads left out, weights rounded, attention maps changed."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attlas.audit.captured.captured_ablation import CapturedLoss, unchanged
from attlas.audit.captured.captured_answers import CapturedAnswers
from attlas.audit.head_cosines import HeadPair, Map, head_cosines
from attlas.audit.trial import SINK_TOKENS, MapObservation, sharing_heads
from attlas.capture.captured_heads import CapturedHeads, Projected
from attlas.capture.changed_context import with_rounded_logits, with_shared_map, without_token
from attlas.capture.measured_maps import measured_maps
from attlas.capture.rounded_blocks import blocks_of, rounded_blocks
from attlas.torch.attention_trace import Attended


class CapturedTrial:
    """Actions on a captured model, see `attlas.audit.trial`.

    Args:
        loss: the model and its batch.
        layers: its attentions; heads of those without plain maps are not tried.
    """

    def __init__(self, loss: CapturedLoss, layers: Sequence[CapturedHeads | None]) -> None:
        self._loss, self._attentions = loss, layers
        self.unit, self.examples = loss.unit, loss.examples
        self.heads = tuple(
            (index, head)
            for index, layer in enumerate(layers)
            for head in range(0 if layer is None else layer.heads)
        )
        names = [layer.name for layer in layers if layer is not None]
        self.removable = sharing_heads(
            self.heads,
            [None if layer is None else layer.name for layer in layers],
            [None if layer is None else layer.W_O for layer in layers],
        )
        self._blocks = blocks_of(names)
        self.layers = len(self._blocks)

    @property
    def errors(self) -> "CapturedTrial | None":
        """The same actions with errors, 0 or 1, in place of losses."""
        if not isinstance(self._loss, CapturedAnswers):
            return None
        return CapturedTrial(self._loss.errors(), self._attentions)

    def losses(self, heads: Sequence[tuple[int, int]] = ()) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with nothing in place of some heads."""
        return self._loss.losses(heads)

    def rounded(self, bits: Mapping[int, int]) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with the matrices of some blocks rounded."""
        named = {self._blocks[layer]: number for layer, number in bits.items()}
        with rounded_blocks(self._loss.model.module, named):
            return self._loss.losses_with(unchanged, ("rounded", frozenset(named.items())))

    def observed(self) -> MapObservation:
        """What the maps and products of the unchanged model are."""
        parts = np.zeros((4, self._loss.number, len(self.heads)))
        places = {head: place for place, head in enumerate(self.heads)}
        model = self._loss.model
        for members, tokens, hidden, _ in self._loss.batches:

            def note(number: int, seen: Attended, members: np.ndarray = members) -> None:
                columns = [places[number, head] for head in range(seen.weights.shape[1])]
                parts[:, members[:, None], columns] = measured_maps(seen, SINK_TOKENS)

            model.run_with(model.inputs(tokens, hidden), note)
        return MapObservation(*self._loss.of_examples(parts))

    def hidden(self, heads: Sequence[tuple[int, int]], place: int) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with the token at a place hidden from some heads."""

        def change(number: int, seen: Attended) -> Any:
            members = [head for layer, head in heads if layer == number]
            return without_token(seen, members, place) if members else None

        return self._loss.losses_with(change, ("hidden", frozenset(heads), place))

    def in_type(self, name: str) -> Float[np.ndarray, " n"]:
        """Loss of each sequence with all logits rounded to a type of numbers."""
        return self._loss.losses_with(
            lambda _, seen: with_rounded_logits(seen, name), ("in type", name)
        )

    def sharing(self, pair: HeadPair) -> Float[np.ndarray, " n"]:
        """Loss of each sequence when the second head of a pair has the map of the first."""

        def change(number: int, seen: Attended) -> Any:
            return with_shared_map(seen, pair.first, pair.second) if number == pair.layer else None

        return self._loss.losses_with(change, ("sharing", *pair[:3]))

    def pairs(self) -> tuple[HeadPair, ...]:
        """Pairs of heads of a layer whose matrices were recognised, with cosines of weights."""
        pairs: list[HeadPair] = []
        for index, layer in enumerate(self._attentions):
            if layer is None or layer.query is None or layer.key is None:
                continue
            value = None if layer.value is None else _per_head(layer.value)
            pairs += head_cosines(
                index, _per_head(layer.query), _per_head(layer.key), value, layer.W_O
            )
        return tuple(pairs)


def _per_head(part: Projected) -> Map:
    group = np.array(part.group)
    return part.W[group], part.b[group]
