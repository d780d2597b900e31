"""One palette for all figures, distinct to the colour-blind and in print."""

from collections.abc import Sequence
from typing import Any

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#555555")
"""The colours of Okabe and Ito, in the order in which they are used."""
INK = "#333333"
"""Colour of everything that is not a series: references, measured values beside bounds."""
DASHES = ("-", "--", ":", "-.")
MARKERS = "os^Dvphx"


def colours(values: Sequence[Any]) -> dict[Any, str]:
    """One colour for each label of an axis: the palette, or shades if there are more labels.

    Examples:
        >>> colours(["zero", "Gaussian"])
        {'zero': '#0072b2', 'Gaussian': '#d55e00'}
        >>> len(set(colours(range(12)).values()))
        12
    """
    if len(values) <= len(PALETTE):
        return dict(zip(values, PALETTE, strict=False))
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    shades = mpl.colormaps["viridis"]
    # Neither so dark that a dark page hides it, nor so light that paper does.
    return {
        value: to_hex(shades(0.25 + 0.67 * k / (len(values) - 1))) for k, value in enumerate(values)
    }
