import numpy as np
import pytest
import xarray as xr

from attlas.core.errors import UserError
from attlas.experiments.join import Part, join, join_parts


def test_what_is_missing_is_nan_and_the_rest_keeps_its_type():
    parts = [
        xr.Dataset({"y": (("p", "x"), [[1, 2]]), "ok": ("p", [True])}, {"p": [2.0], "x": [1, 3]}),
        xr.Dataset({"y": (("p", "x"), [[5]]), "ok": ("p", [False])}, {"p": [1.0], "x": [2]}),
    ]
    found = join(parts)
    np.testing.assert_array_equal(found.y, [[np.nan, 5, np.nan], [1, np.nan, 2]])
    assert found.ok.dtype == bool
    assert found.ok.values.tolist() == [False, True]


def test_axes_without_labels_are_as_long_as_the_longest():
    parts = [xr.Dataset({"y": (("k", "s"), [[1.0] * n])}, {"k": [str(n)]}) for n in (2, 1)]
    found = join(parts)
    assert found.k.values.tolist() == ["2", "1"]
    np.testing.assert_array_equal(found.y, [[1, 1], [1, np.nan]])


def test_what_all_parts_share_must_agree():
    parts = [xr.Dataset({"y": ("k", [1.0]), "z": 3}, {"k": [k]}) for k in (0, 1)]
    assert int(join(parts).z) == 3
    with pytest.raises(ValueError, match="disagree about 'z'"):
        join([parts[0], parts[1].assign(z=4)])


def test_labels_that_are_missing_are_named():
    unlabelled = Part({"y": (("x",), np.ones(2))}, frozenset({"x"}))
    with pytest.raises(UserError, match="x labels an axis and is no variable"):
        join_parts([unlabelled, unlabelled])
