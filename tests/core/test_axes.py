"""Axes by name."""

import pytest

from attlas.core.axes import require_axes
from attlas.core.errors import UserError

FITS = [
    ("n T d, n d, d d", [(2, 3, 4), (2, 4), (4, 4)]),
    ("*s, *s", [(2, 3), (2, 3)]),
    ("*s", [()]),
    ("n *s, n", [(2, 3, 4), (2,)]),
    ("H *t d, H d d", [(2, 4), (2, 4, 4)]),
    ("n 2", [(5, 2)]),
]
FAULTS = [
    ("n d", [(2,)], r"^a has shape \(2,\): expected axes \[n d\]$"),
    ("n d", [(0, 3)], r"^a has shape \(0, 3\): give at least one entry along each of \[n d\]$"),
    ("n d, n", [(2, 3), (4,)], r"^b has shape \(4,\): give \[n\] with n = 2, as a has$"),
    ("d d", [(2, 3)], r"^a has shape \(2, 3\): give \[d d\] with one size for d$"),
    ("n 2", [(5, 3)], r"^a has shape \(5, 3\): give \[n 2\]$"),
    ("*s, *s", [(2, 3), (3, 2)], r"with s = \(2, 3\), as a has$"),
    ("n *s d", [(2,)], r"expected axes \[n \*s d\]$"),
    ("*s d, n", [(2, 3), (2, 2)], r"^b has shape \(2, 2\): expected axes \[n\]$"),
]


@pytest.mark.parametrize(("axes", "shapes"), FITS)
def test_what_fits_passes(axes, shapes):
    assert require_axes(axes, dict(zip("abc", shapes, strict=False))) is None


@pytest.mark.parametrize(("axes", "shapes", "said"), FAULTS)
def test_what_does_not_fit_is_named(axes, shapes, said):
    with pytest.raises(UserError, match=said):
        require_axes(axes, dict(zip("abc", shapes, strict=False)))


def test_arrays_and_axes_are_as_many():
    with pytest.raises(ValueError, match="shorter"):
        require_axes("n, n", {"a": (1,)})
