"""Level data of a captured model: the statistics of its maps, reduced attention by attention."""

from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Float

from attlas.audit.captured.image_patches import repeated_patch, shuffled_patches
from attlas.audit.captured.map_observation import (
    MapObservation,
    observe_maps,
    positional_heads,
)
from attlas.audit.data_level.data_quantities import HEAD_QUANTITIES, ROW_QUANTITIES, SINK, SINKS
from attlas.audit.data_level.data_settings import DataSettings
from attlas.audit.data_level.sequence_blocks import repeated, shuffled
from attlas.audit.quantity import labelled
from attlas.bounds.attention.sink_gain import sink_gain
from attlas.capture.captured_model import CapturedModel, patch_sides
from attlas.capture.captured_run import CapturedAttention
from attlas.capture.linear_maps import array_of
from attlas.core.errors import UserError
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

_TOKENS = 2**13
"""Tokens of the sequences that run together."""


class CapturedData:
    """Statistics of the maps of every attention of a run, on the user's sequences.

    Args:
        model: the model that runs.
        sequences: vectors of token numbers, or images (C, H, W).
        special: token numbers that stand for no text; none of images.
        settings: protocol of sinks and intervals.
        progress: called with the sequences done, and of all.
    """

    def __init__(
        self,
        model: CapturedModel,
        sequences: Sequence[np.ndarray],
        special: Sequence[int],
        settings: DataSettings,
        progress: Callable[[int, int], None] = lambda done, all_: None,
    ) -> None:
        self.model, self.special, self.settings = model, list(special), settings
        self.natural = self._observed(sequences, progress)
        ways = self._image_ways(sequences) if model.reads_images else self._text_ways(sequences)
        self.sinks = [self._observed(way) for way in ways]

    def _text_ways(self, sequences: Sequence[np.ndarray]) -> tuple[list[np.ndarray], ...]:
        """The texts of the sink protocol, see `SINKS`."""
        settings = self.settings
        enough = min(settings.sink_sequences, -(-len(sequences) // 2))
        reached = int(np.sort([len(sequence) for sequence in sequences])[-enough])
        self.sink_length = min(settings.sink_tokens, reached)
        reaching = [k for k, each in enumerate(sequences) if len(each) >= self.sink_length]
        self.sink_places = np.array(reaching[: settings.sink_sequences])
        cut = [sequences[place][: self.sink_length] for place in self.sink_places]
        draw = np.random.default_rng(settings.seed)
        return (
            cut,
            [shuffled(each, self.special, draw) for each in cut],
            [repeated(each, self.special, draw) for each in cut],
        )

    def _image_ways(self, images: Sequence[np.ndarray]) -> tuple[list[np.ndarray], ...]:
        """The same of images, whose tokens are patches behind those of the model's own."""
        first = next((layer for layer in self.natural if layer is not None), None)
        self.sink_length = 1 if first is None else first.offsets.shape[2]
        sides = patch_sides(self.model.module)
        draw = np.random.default_rng(self.settings.seed)
        several = list(images[: self.settings.sink_sequences])
        self.sink_places = np.arange(len(several))
        return (
            several,
            [shuffled_patches(each, sides, draw) for each in several],
            [repeated_patch(each, sides, draw) for each in several],
        )

    def heads(self, held_out: Sequence[int] = ()) -> xr.Dataset:
        """Variables [layer, head]; what needs weights as well has no number.

        Args:
            held_out: places of sequences that are left out.
        """
        layers = [self._of_layer(index, held_out) for index in range(len(self.natural))]
        widest = max(column.size for layer in layers for column in layer.values())
        names = {name for layer in layers for name in layer}
        names |= {quantity.name for quantity in HEAD_QUANTITIES}
        values = {name: np.full((len(layers), widest), np.nan) for name in sorted(names)}
        for index, layer in enumerate(layers):
            for name, column in layer.items():
                values[name][index, : column.size] = column
        return labelled(HEAD_QUANTITIES, values, ("layer", "head"))

    def sink_shares(self) -> dict[str, float]:
        """Share of heads and sequences whose first token receives more than 0.3."""
        facts: dict[str, float] = {}
        for text, observed in zip(SINKS, self.sinks, strict=True):
            above = np.concatenate([layer.first > SINK for layer in observed if layer], axis=1)
            interval = self._interval(above.mean(axis=1))
            facts |= {f"sink_share_{text}{end}": float(value) for end, value in interval.items()}
        null = [np.mean(layer.uniform_first > SINK) for layer in self.sinks[0] if layer]
        return facts | {"sink_share_null": float(np.mean(null))}

    def protocol(self) -> dict[str, int | float | str | list[int]]:
        """What was done, for the reader of a table."""
        return {
            "special": [int(token) for token in self.special],
            "sink_tokens": self.sink_length,
            "sink_sequences": self.sink_places.size,
            "sink_threshold": SINK,
            "draws": self.settings.draws,
            "level": self.settings.level,
            "seed": self.settings.seed,
        }

    def _observed(
        self,
        sequences: Sequence[np.ndarray],
        progress: Callable[[int, int], None] = lambda done, all_: None,
    ) -> list[MapObservation | None]:
        """Observations of every attention, all sequences in their order."""
        batches: list[tuple[np.ndarray, list[MapObservation | None]]] = []
        done = 0
        for members in self.model.batches(sequences, _TOKENS):
            tokens = np.stack([sequences[member] for member in members])
            batches.append((members, self._batch(tokens)))
            done += len(members)
            progress(done, len(sequences))
        numbers = {len(observed) for _, observed in batches}
        if len(numbers) > 1:
            raise UserError(f"{self.model.name} runs different attentions for different lengths")
        return [
            _joined([(members, observed[index]) for members, observed in batches], len(sequences))
            for index in range(numbers.pop())
        ]

    def _batch(self, tokens: np.ndarray) -> list[MapObservation | None]:
        observed: list[MapObservation | None] = []

        def read(captured: CapturedAttention) -> None:
            seen = captured.seen
            if seen is None or len(seen.weights) != len(tokens):
                observed.append(None)
                return
            weights, logits = array_of(seen.weights), array_of(seen.logits)
            marked = self._special_columns(tokens, weights.shape[-1])
            own = weights.shape[-1] == marked.shape[1] == weights.shape[-2]
            allowed = np.broadcast_to(seen.allowed.cpu().numpy(), weights.shape)
            observed.append(observe_maps(weights, logits, allowed, marked if own else None))

        self.model.run(self.model.inputs(tokens), read)
        return observed

    def _special_columns(self, tokens: np.ndarray, columns: int) -> np.ndarray:
        """True for tokens that stand for no text, or for no patch of an image."""
        if not self.model.reads_images:
            return np.isin(tokens, self.special)
        ahead = np.arange(columns) < columns - self.model.length(tokens[0])
        return np.broadcast_to(ahead, (len(tokens), columns))

    def _of_layer(self, index: int, held_out: Sequence[int]) -> dict[str, np.ndarray]:
        natural = self.natural[index]
        if natural is None:
            return {"entropy": np.full(1, np.nan)}
        natural = _without(natural, np.arange(len(natural.rows)), held_out)
        values: dict[str, np.ndarray] = {}
        for place, quantity in enumerate(ROW_QUANTITIES):
            values |= self._named(quantity.name, natural.rows[:, place])
            values[quantity.null] = natural.uniform[:, place].mean(axis=0)
        share, values["positional_offset"] = positional_heads(natural.offsets, natural.choosing)
        values |= self._named("positional_share", share)
        values["positional_share_null"] = np.zeros(share.shape[1])
        values["largest_logit"] = natural.largest_logit.max(axis=0)
        for text, observed in zip(SINKS, self.sinks, strict=True):
            layer = observed[index]
            if layer is not None:
                values[f"sink_{text}_null"] = layer.uniform_first.mean(axis=0)
                layer = _without(layer, self.sink_places, held_out)
                values |= self._named(f"sink_{text}", layer.first)
        layer = self.sinks[0][index]
        if layer is not None:
            layer = _without(layer, self.sink_places, held_out)
            gains = np.asarray(sink_gain(jnp.asarray(layer.first), self.sink_length))
            values |= self._named("sink_gain", gains)
            values["sink_gain_null"] = np.asarray(
                sink_gain(jnp.asarray(values["sink_natural_null"]), self.sink_length)
            )
        return values

    def _named(self, name: str, values: Float[np.ndarray, "n H"]) -> dict[str, np.ndarray]:
        return {f"{name}{end}": array for end, array in self._interval(values).items()}

    def _interval(self, values: np.ndarray) -> dict[str, np.ndarray]:
        s = self.settings
        if len(values) == 0:  # all sequences are held out
            none = np.full(values.shape[1:], np.nan)
            return {"": none, "_low": none, "_high": none}
        interval = bootstrap_mean(values, draws=s.draws, level=s.level, seed=s.seed)
        return {"": interval.mean, "_low": interval.low, "_high": interval.high}


def _without(seen: MapObservation, places: np.ndarray, held_out: Sequence[int]) -> MapObservation:
    """What was seen of the sequences at some places, without those that are held out."""
    left = ~np.isin(places, np.asarray(held_out, int))
    return MapObservation(*(part[left] for part in seen))


def _joined(
    batches: list[tuple[np.ndarray, MapObservation | None]], number: int
) -> MapObservation | None:
    """The sequences of several batches in their order."""
    parts = [observed for _, observed in batches if observed is not None]
    if len(parts) < len(batches):
        return None
    order = np.argsort(np.concatenate([members for members, _ in batches]))
    assert order.size == number
    widest = max(part.offsets.shape[2] for part in parts)
    for place, part in enumerate(parts):
        lacking = ((0, 0), (0, 0), (0, widest - part.offsets.shape[2]))
        offsets = np.pad(part.offsets, lacking, constant_values=np.nan)
        parts[place] = part._replace(offsets=offsets)
    fields = zip(*parts, strict=True)
    return MapObservation(*(np.concatenate(field)[order] for field in fields))
