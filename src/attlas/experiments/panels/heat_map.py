"""Heat maps."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.experiments.panels.image_strip import NO_VALUE
from attlas.experiments.panels.panel import Panel, Quantity, View, labels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class HeatMap(Panel):
    """A quantity over two axes as colours, averaged over all others; a cross stands for NaN.

    Attributes:
        x: horizontal axis of the data set.
        signed: whether colours diverge from zero.
        limits: ends of the colour scale.
        at: labels at which z is selected.
    """

    z: Quantity
    x: str
    y: str
    colour_label: str = field(default="", kw_only=True)
    signed: bool = field(default=False, kw_only=True)
    limits: tuple[float, float] | None = field(default=None, kw_only=True)
    at: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def draw(self, axes: "Axes", view: View) -> None:
        """Draw the map with its colour bar."""
        z = view.get(self.z, self.at)
        if z is None:
            return
        averaged = z.mean([dim for dim in z.dims if dim not in (self.x, self.y)])
        averaged = averaged.transpose(self.y, self.x)
        largest = float(abs(averaged).max())
        low, high = self.limits or ((-largest, largest) if self.signed else (None, None))
        image = axes.imshow(
            averaged.values, cmap="RdBu_r" if self.signed else "viridis", vmin=low, vmax=high,
            aspect="auto", origin="lower", interpolation="nearest",
        )  # fmt: skip
        for row, column in np.argwhere(~np.isfinite(averaged.values)):
            axes.text(column, row, NO_VALUE, ha="center", va="center", color="#777777")
        for name, set_ticks in ((self.x, axes.set_xticks), (self.y, axes.set_yticks)):
            labels = labels_of(averaged, name)
            step = max(1, len(labels) // 8)
            texts = [v if isinstance(v, str) else f"{v:g}" for v in labels]
            set_ticks(range(0, len(labels), step), texts[::step])
        axes.figure.colorbar(image, ax=axes, label=self.colour_label)
