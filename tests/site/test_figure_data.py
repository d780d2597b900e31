"""The data of a figure are what it draws."""

import csv
import io

import numpy as np
from matplotlib.figure import Figure

from attlas.site.figure_data import COLUMNS, MOST_ROWS, figure_csv


def rows(figure):
    return list(csv.DictReader(io.StringIO(figure_csv(figure))))


def test_lines_points_bars_and_cells_are_rows_in_the_coordinates_of_their_panel():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.set_title("A, with a comma")
    left.plot([1, 2, np.nan], [10, 20, 30], label="line")
    left.scatter([3], [4], label="dots")
    left.axhline(7)  # a reference across the panel
    right.bar([0, 1], [5, 6])
    right.pcolormesh([0, 2, 4], [0, 2], [[8.0, 9.0]])
    found = rows(figure)
    assert {tuple(row) for row in found} == {COLUMNS}
    drawn = [(r["kind"], r["series"], r["x"], r["y"], r["value"]) for r in found]
    assert drawn == [
        ("line", "line", "1", "10", ""),
        ("line", "line", "2", "20", ""),
        ("point", "dots", "3", "4", ""),
        ("cell", "1", "1", "1", "8"),
        ("cell", "1", "3", "1", "9"),
        ("bar", "1", "0", "5", ""),
        ("bar", "1", "1", "6", ""),
    ]
    assert {r["panel"] for r in found} == {"1 A, with a comma", "2"}


def test_an_image_has_its_cells_and_a_large_figure_says_what_is_left_out():
    figure = Figure()
    figure.subplots().imshow(np.arange(6.0).reshape(2, 3))
    assert [r["value"] for r in rows(figure)] == list("012345")
    large = Figure()
    large.subplots().plot(np.arange(MOST_ROWS + 3))
    assert figure_csv(large).splitlines()[-1] == "3 more rows are left out"
