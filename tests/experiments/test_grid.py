from dataclasses import replace

import pytest

from attlas.core.errors import UserError
from attlas.experiments.grid import Grid
from attlas.experiments.settings import Settings, checked, split_assignments

GRID = Grid(
    each={"start": ["gaussian", "zero"], "p": [1.5, 2.0]},
    fixed={"sizes": [6, 8], "steps": lambda s: int(100 * s.p), "rate": 0.1, "bias": False},
    smoke={"start": ["zero"], "members": 4},
    quick={"members": 5, "block": 2},
    paper={"members": lambda s: 2 if s.start == "zero" else 3, "rate": 0.2},
    where=lambda s: not (s.start == "gaussian" and s.p == 2.0),
    choices={"start": ["ones"]},
)


def labels(grid, scale):
    return [(c.settings["start"], c.settings["p"], c.settings["members"], c.seed)
            for c in grid.cells(scale)]  # fmt: skip


def test_cells_are_the_product_in_blocks_of_members():
    assert labels(GRID, "smoke") == [("zero", 1.5, 4, 0), ("zero", 2.0, 4, 0)]
    blocks = [(2, 0), (2, 2), (1, 4)]
    pairs = [("gaussian", 1.5), ("zero", 1.5), ("zero", 2.0)]
    assert labels(GRID, "quick") == [(*pair, *block) for pair in pairs for block in blocks]
    assert [c.settings["rate"] for c in GRID.cells("paper")] == [0.2] * 3
    assert labels(GRID, "paper")[0][2:] == (3, 0)
    assert labels(GRID, "paper")[1][2:] == (2, 0)


def test_small_scale_is_that_of_the_paper_where_no_other_is_named():
    assert GRID.cells("small") == GRID.cells("paper")
    smaller = replace(GRID, small={"members": 1, "rate": 0.3})
    assert [c.settings["rate"] for c in smaller.cells("small")] == [0.3] * 3
    assert smaller.cells("paper") == GRID.cells("paper")
    assert smaller.settings_values()["rate"] == [0.1, 0.3, 0.2]


def test_functions_follow_what_is_changed():
    changed = GRID.changed({"p": ["3"], "sizes": ["4", "5"], "bias": ["yes"], "seed": ["7"]})
    (cell,) = changed.cells("smoke")
    assert cell.settings == {
        "start": "zero", "p": 3.0, "sizes": [4, 5], "rate": 0.1, "bias": True, "members": 4,
        "steps": 300,
    }  # fmt: skip
    assert cell.seed == 7
    assert GRID.changed({"steps": 5}).cells("smoke")[0].settings["steps"] == 5
    assert len(GRID.cells("smoke")) == 2


def test_the_values_of_a_setting_are_known_once_each_and_in_order():
    known = GRID.settings_values()
    assert known["start"] == ["gaussian", "zero"]
    assert known["sizes"] == [[6, 8]]
    assert known["rate"] == [0.1, 0.2]
    assert known["steps"] == [150, 200]
    assert known["members"] == [4, 2, 1, 3]
    assert GRID.changed({}) is GRID


def test_several_values_of_one_setting_become_an_axis():
    changed = GRID.changed({"rate": [1, 0.5]})
    assert changed.axes == ("start", "p", "rate")
    assert [c.settings["rate"] for c in changed.cells("smoke")] == [1.0, 0.5] * 2


def test_a_list_axis_has_one_cell_for_each_list():
    grid = Grid(each={"sizes": [[2, 4]]}, paper={"sizes": [[2], [4]]})
    assert [c.settings["sizes"] for c in grid.cells("paper")] == [[2], [4]]
    assert [c.settings["sizes"] for c in grid.changed({"sizes": ["8", "9"]}).cells("paper")] == [
        [8, 9]
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"stat": "zero"}, r"toy has no setting 'stat': did you mean start \(gaussian, zero\)"),
        ({"xyzzy": 1}, "toy has no setting 'xyzzy', but start .*members .whole numbers, such as 4"),
        ({"start": "zeros"}, "start = zeros: did you mean zero. It takes gaussian, zero, ones"),
        ({"p": "two"}, "p = two: it takes numbers, such as 1.5"),
        ({"p": "nan"}, "p = nan: it takes numbers"),
        ({"p": []}, "p is empty"),
        ({"members": "2.5"}, "members = 2.5: it takes whole numbers"),
        ({"members": True}, "members = True: it takes whole numbers"),
        ({"members": [2, 3]}, "members takes one value, not 2"),
        ({"bias": "maybe"}, "bias = maybe: it takes yes or no, such as no"),
        ({"dtype": "float16"}, "dtype = float16: .*float64, float32"),
    ],
)
def test_a_wrong_setting_is_one_line(change, message):
    with pytest.raises(UserError, match=message) as error:
        GRID.changed(change, of="toy")
    assert "\n" not in str(error.value)


def test_a_grid_without_cells_is_refused():
    with pytest.raises(UserError, match="members = 0"):
        GRID.changed({"members": 0}).cells("smoke")
    with pytest.raises(UserError, match="no cell"):
        GRID.changed({"start": "gaussian", "p": 2}).cells("smoke")


def test_assignments_are_split_or_refused():
    assert split_assignments(["p=1.5, 2"]) == {"p": ["1.5", "2"]}
    for texts in (["p"], ["=1"], ["p="], ["p=1", "p=2"]):
        with pytest.raises(UserError):
            split_assignments(texts)
    assert checked("rate", 1, 0.1) == 1.0


def test_names_with_commas_can_be_set():
    grid = Grid(each={"ball": ["1,1", "2,1", "1,inf"]})
    texts = split_assignments(["ball=2,1, 1,inf"])
    assert [cell.settings["ball"] for cell in grid.changed(texts).cells("paper")] == [
        "2,1",
        "1,inf",
    ]
    with pytest.raises(UserError, match="ball = 2: it takes 1,1; 2,1; 1,inf"):
        grid.changed({"ball": ["2", "3"]})
    words = Grid(each={"student": ["attention", "no attention, wider"]})
    changed = words.changed(split_assignments(["student=no attention, wider"]))
    assert [cell.settings["student"] for cell in changed.cells("paper")] == ["no attention, wider"]


def test_settings_are_read_only_in_effect():
    s = Settings({"sizes": [[1, 2]]}, seed=3)
    assert s.sizes == ((1, 2),)
    assert dict(s) == {"sizes": ((1, 2),), "seed": 3}
    with pytest.raises(KeyError):
        s["q"]
