import numpy as np
import xarray as xr

from attlas.experiments.panels.summary import mean_and_half_width, total
from attlas.experiments.panels.table import Column, Derived, Printed, Table, final


def test_a_table_has_a_row_for_each_combination_of_labels():
    data = xr.Dataset(
        {
            "D": (("p", "q", "member"), np.arange(8.0).reshape(2, 2, 2)),
            "solved": (("p", "member"), [[True, False], [True, True]]),
        },
        {"p": [2.0, 3.0], "q": [2.0, 3.0]},
    )
    table = Table(
        {"p": "p", "q": "SVM of q"},
        [
            Column("D", "D", mean_and_half_width),
            Column("solved", "solved", total, where=lambda row: row["p"] == row["q"]),
            Printed("paper", {(2.0, 3.0): 0.5}),
            Derived(("first", "last"), lambda at: at.D.values.tolist()),
            Column("missing", "no such variable"),
        ],
        where=lambda row: row["q"] >= row["p"],
    )(data)
    assert table["SVM of q"].tolist() == [2.0, 3.0, 3.0]
    assert table["D"].tolist() == ["0.5000 ± 6.3531", "2.5000 ± 6.3531", "6.5000 ± 6.3531"]
    np.testing.assert_array_equal(table["solved"], [1, np.nan, 2])
    np.testing.assert_array_equal(table["paper"], [np.nan, 0.5, np.nan])
    assert table["last"].tolist() == [1.0, 3.0, 7.0]
    assert np.isnan(table["missing"].to_numpy()).all()


def test_the_last_step_of_a_diverged_member_is_nan():
    y = [[[1.0, 2.0, np.nan], [5.0, np.nan, np.nan]], [[3.0, 4.0, 5.0], [3.0, 4.0, 6.0]]]
    data = xr.Dataset({"y": (("p", "member", "step"), y)}, {"p": [1, 2], "step": [0, 5, 9]})
    np.testing.assert_array_equal(final("y", by=["p"])(data), [[2, np.nan], [5, 6]])
    np.testing.assert_array_equal(final("y")(data)[0], [np.nan, np.nan])


def test_an_axis_without_data_has_no_rows():
    data = xr.Dataset({"y": ("p", [1.0])}, {"p": [2.0]})
    assert Table(["setting"], [Column("y", "y")])(data).empty


def test_the_beginning_of_a_table_is_its_first_rows():
    data = xr.Dataset({"D": ("p", [1.0, 2.0, 3.0])}, {"p": [5, 6, 7]})
    table = Table(["p"], [Column("D", "D")], where=lambda row: row["p"] != 5)
    assert table.beginning(data, 1)["p"].tolist() == [6]
    assert table.beginning(data, None).equals(table(data))
