"""Means over sequences with their intervals, of all of them and of those that choose."""

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from attlas.audit.data_level.data_settings import DataSettings
from attlas.measures.statistics.bootstrap_mean import bootstrap_mean

Columns = Mapping[str, Float[np.ndarray, " n *H"]]
"""Values of each sequence by name."""


class SequenceMeans:
    """Means of a table, and beside them those without the sequences that test what it shows.

    Args:
        settings: draws, level and seed of the intervals.
        held_out: places of the sequences that test findings, and so have no part in choosing them.

    Attributes:
        choosing: one dictionary for each layer, of what the other sequences give; empty
            dictionaries where none is held out.
    """

    def __init__(self, settings: DataSettings, held_out: Sequence[int]) -> None:
        self._settings, self._held_out = settings, np.asarray(held_out, int)
        self.choosing: list[dict[str, np.ndarray]] = []

    def choosers(self, places: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"] | None:
        """Which of some sequences choose; None where none is held out."""
        return None if self._held_out.size == 0 else ~np.isin(places, self._held_out)

    def begin_layer(self) -> None:
        """Begin the dictionary of a layer."""
        self.choosing.append({})

    def note(self, values: Columns, places: Int[np.ndarray, " n"]) -> dict[str, np.ndarray]:
        """Means and intervals over all sequences; those of the sequences that choose are noted.

        Args:
            values: numbers of the sequences at some places.
            places: their places, a vector.
        """
        chooses = self.choosers(places)
        if chooses is not None:
            few = {name: array[chooses] for name, array in values.items()}
            self.choosing[-1] |= self.intervals(few)
        return self.intervals(values)

    def intervals(self, values: Columns) -> dict[str, np.ndarray]:
        """Means over sequences and their intervals, all from the same draws; NaN over none."""
        s = self._settings
        stacked = np.stack(list(values.values()), axis=1)
        if len(stacked) == 0:
            none = np.full(stacked.shape[2:], np.nan)
            return {f"{name}{end}": none for name in values for end in ("", "_low", "_high")}
        interval = bootstrap_mean(stacked, draws=s.draws, level=s.level, seed=s.seed)
        ends = {"": interval.mean, "_low": interval.low, "_high": interval.high}
        return {
            f"{name}{end}": np.asarray(array[place])
            for place, name in enumerate(values)
            for end, array in ends.items()
        }
