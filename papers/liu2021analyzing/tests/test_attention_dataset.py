import numpy as np
import pytest
import xarray as xr

from liu2021analyzing.library.measures.attention_dataset import (
    mean_over_all_rows,
    means_of_short_and_long,
    means_over_rows,
)


def test_means_weigh_every_row_alike():
    rows = np.arange(1.0, 7.0).reshape(3, 1, 2)
    values = np.arange(6.0).reshape(1, 3, 1, 2, 1)
    data = xr.Dataset(
        {
            "mean": (("variant", "kind", "layer", "head", "measure"), values),
            "s0_root": (("variant", "kind", "layer", "head", "norm"), values),
            "unreached": (("variant", "kind"), [[0.0, 0.0, 1.0]]),
            "rows": (("kind", "layer", "head"), rows),
        },
        {"kind": ["encoder", "decoder", "cross"]},
    )
    found = means_over_rows(data)
    whole = found.sel(attention="all")
    assert float(whole["mean"].squeeze()) == pytest.approx(
        np.average(np.arange(6), weights=rows.ravel())
    )
    for name in ("mean", "s0_root", "unreached"):
        assert mean_over_all_rows(data, name).equals(whole[name].drop_vars("attention"))
    assert int(whole.rows) == 21
    assert float(whole.unreached.squeeze()) == pytest.approx(11 / 21)
    assert float(found["mean"].sel(attention="decoder").squeeze()) == pytest.approx(
        (2 * 3 + 3 * 4) / 7
    )


def test_short_and_long_halves_share_no_row():
    counts = xr.DataArray([[0, 2, 4, 2]], dims=("kind", "length"), coords={"length": range(4)})
    masses = xr.DataArray([[[np.nan], [3.0], [2.0], [1.0]]], dims=("kind", "length", "mass"))
    data = xr.Dataset({"rows_by_length": counts, "by_length": masses}, {"mass": ["raw l2"]})
    middle, means = means_of_short_and_long(data, "raw l2")
    assert middle == 2
    np.testing.assert_allclose(means.sel(rows="short"), (2 * 3 + 4 * 2) / 6)
    np.testing.assert_allclose(means.sel(rows="long"), 1.0)
