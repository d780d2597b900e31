"""Axes by name: "n T d, n d" says which axes of several arrays have one size, as in `einsum`."""

from collections.abc import Mapping

from attlas.core.axis_sizes import Shape, contradicted_axes
from attlas.core.errors import UserError


def require_axes(axes: str, shapes: Mapping[str, Shape]) -> None:
    """Refuse shapes of a wrong rank, without entries, or unequal where an axis has one name.

    Args:
        axes: the axes of each array, arrays separated by commas. A letter stands for one size in
            all arrays, a number for itself, and "*s" for any number of axes, none included.
        shapes: shapes by the names of a message, in the order of `axes`.

    Raises:
        UserError: naming the array, its shape and what it should be.

    Examples:
        >>> require_axes("n T d, n d", {"X": (2, 3, 4), "z": (2, 4)})
        >>> require_axes("n T d, n d", {"X": (2, 3, 4), "z": (5, 4)})
        Traceback (most recent call last):
            ...
        attlas.core.errors.UserError: z has shape (5, 4): give [n d] with n = 2, as X has
    """
    if line := contradicted_axes(axes, shapes):
        raise UserError(line)
