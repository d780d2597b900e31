"""What contradicts names of axes in the shapes of several arrays; it refuses nothing itself."""

from collections.abc import Mapping
from functools import cache

Shape = tuple[int, ...]


@cache
def _parsed(axes: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(part.split()) for part in axes.split(","))


def contradicted_axes(axes: str, shapes: Mapping[str, Shape]) -> str:
    """The first shape that has a wrong rank, no entries, or another size for a known axis.

    Args:
        axes: the axes of each array, arrays separated by commas. A letter stands for one size in
            all arrays, a number for itself, and "*s" for any number of axes, none included.
        shapes: shapes by the names of a message, in the order of `axes`.

    Returns:
        A line that names the array, its shape and what it should be; empty where all shapes fit.

    Examples:
        >>> contradicted_axes("n T d, n d", {"X": (2, 3, 4), "z": (2, 4)})
        ''
        >>> contradicted_axes("n T d, n d", {"X": (2, 3, 4), "z": (5, 4)})
        'z has shape (5, 4): give [n d] with n = 2, as X has'
    """
    sizes_by_axis: dict[str, tuple[int | Shape, str]] = {}
    for wanted, (name, shape) in zip(_parsed(axes), shapes.items(), strict=True):
        sizes = _named(wanted, shape)
        if not sizes and wanted:
            return f"{name} has shape {shape}: expected axes [{' '.join(wanted)}]"
        if 0 in shape:
            entries = f"give at least one entry along each of [{' '.join(wanted)}]"
            return f"{name} has shape {shape}: {entries}"
        for axis, size in sizes:
            expected, owner = sizes_by_axis.setdefault(axis, (size, name))
            if axis.isdigit():
                expected, owner = int(axis), ""
            if size != expected:
                label = axis.lstrip("*")
                if owner == name:
                    source = f" with one size for {label}"
                else:
                    source = f" with {label} = {expected}, as {owner} has" if owner else ""
                return f"{name} has shape {shape}: give [{' '.join(wanted)}]{source}"
    return ""


def _named(wanted: tuple[str, ...], shape: Shape) -> list[tuple[str, int | Shape]]:
    """Each axis with its size, those of a star together; empty where the rank does not fit."""
    stars = [place for place, axis in enumerate(wanted) if axis.startswith("*")]
    if not stars:
        return list(zip(wanted, shape, strict=True)) if len(wanted) == len(shape) else []
    (star,) = stars
    end = len(shape) - (len(wanted) - star - 1)
    if end < star:
        return []
    return list(zip(wanted, (*shape[:star], shape[star:end], *shape[end:]), strict=True))
