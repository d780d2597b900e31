"""Strips of small pictures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from attlas.experiments.panels.panel import Panel, Quantity, View, labels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


NO_VALUE = "\N{MULTIPLICATION SIGN}"
"""The mark in a cell that has no value."""


@dataclass(frozen=True)
class ImageStrip(Panel):
    """Square pictures in rows, one row for each label of an axis; a cross for one with NaN.

    Attributes:
        images: the pictures; they share one grey scale.
        columns: axis with one picture for each label.
        pixels: axis of a picture's pixels, row by row.
        limits: the values that are white and black; the least and the largest when None.
        at: labels at which the pictures are selected.
    """

    images: Quantity
    rows: str = field(kw_only=True)
    columns: str = field(kw_only=True)
    pixels: str = field(kw_only=True)
    limits: tuple[float, float] | None = field(default=None, kw_only=True)
    most: int = field(default=12, kw_only=True)
    at: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    def draw(self, axes: "Axes", view: View) -> None:
        """Draw all rows as one picture, their labels beside them."""
        images = view.get(self.images, self.at)
        if images is None:
            return
        images = images.transpose(self.rows, self.columns, self.pixels)
        names = [str(label) for label in labels_of(images, self.rows)]
        images = images.values[:, : self.most]
        rows, columns, pixels = images.shape
        side = int(np.sqrt(pixels))
        absent = ~np.isfinite(images).all(axis=2)
        sheet = np.full((rows, side + 1, columns, side + 1), np.nan)
        sheet[:, :side, :, :side] = images.reshape(rows, columns, side, side).swapaxes(1, 2)
        sheet = sheet.reshape(rows * (side + 1), columns * (side + 1))[:-1, :-1]
        low, high = self.limits or (None, None)
        axes.imshow(sheet, cmap="gray_r", vmin=low, vmax=high, interpolation="nearest")
        for row, column in np.argwhere(absent):
            axes.text(
                column * (side + 1) + (side - 1) / 2,
                row * (side + 1) + (side - 1) / 2,
                NO_VALUE,
                ha="center",
                va="center",
                color="#777777",
            )
        axes.set_yticks(np.arange(rows) * (side + 1) + (side - 1) / 2, names)
        axes.set_xticks([])
        axes.tick_params(left=False)
        axes.spines[:].set_visible(False)
