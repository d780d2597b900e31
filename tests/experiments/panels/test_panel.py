"""What a panel sees of a data set: cuts, labels, small multiples, layers, axes."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from attlas.experiments.panels.lines import Lines
from attlas.experiments.panels.panel import Panel, View, along, labels_of, named, places, series
from attlas.experiments.panels.reference import Reference


@pytest.fixture
def data():
    return xr.Dataset(
        {
            "y": (("p", "start", "step"), np.arange(12.0).reshape(2, 3, 2)),
            "level": ("p", np.array([5.0, 6.0])),
        },
        {"p": [1.5, 3.0], "start": ["zero", "one", "two"]},
    )


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def test_a_view_cuts_at_its_labels_where_a_quantity_has_the_axis(data):
    view = View(data, {"p": 3.0, "start": "two"})
    assert view.get("y").values.tolist() == [10, 11]
    assert float(view.get("level")) == 6
    assert view.get("y", {"start": "zero"}).values.tolist() == [6, 7]
    assert view.get(lambda d: d.y - d.level).values.tolist() == [4, 5]


def test_what_has_no_data_yet_is_none(data):
    assert View(data).get("z") is None
    assert View(data, {"p": 2.0}).get("y") is None
    assert View(data).get(lambda d: d["z"] + d["y"]) is None


def test_labels_are_those_of_the_data_set_or_positions(data):
    assert labels_of(data, "start") == ["zero", "one", "two"]
    assert labels_of(data, "step") == [0, 1]
    part = data.y.sel(start=["one"])
    # Each label keeps its colour, drawn or not.
    assert View(data).labels_of(part, "start") == ["zero", "one", "two"]


def test_small_multiples_are_rows_by_columns(data):
    ((only,),) = Lines("y", "step").views(data)
    assert only.labels == {}
    rows = Lines("y", "step", panel="start", row="p").views(data)
    found = [[(view.labels["p"], view.labels["start"]) for view in row] for row in rows]
    assert found == [[(p, s) for s in ("zero", "one", "two")] for p in (1.5, 3.0)]


def test_layers_add_up_on_the_axes_of_the_first():
    first = Lines("y", "step", title="first")
    both = first + Reference(y=1.0) + Reference(x=0.0)
    assert both.title == "first"
    assert [type(layer) for layer in both.added] == [Reference, Reference]
    assert first.added == ()


def test_all_layers_are_drawn_and_then_the_axes_set(data, axes):
    panel = Lines(
        "y", "step", colour="start", title="$p = {p:g}$", yscale="log", ylim=(1, 20), xticks=(0, 1)
    ) + Reference(y=4.0)
    panel.draw_all(axes, View(data, {"p": 3.0}))
    panel.limit(axes)
    drawn = [line for line in axes.lines if len(line.get_xdata())]
    assert len(drawn) == 4
    assert (axes.get_title(), axes.get_yscale()) == ("$p = 3$", "log")
    assert axes.get_ylim() == (1, 20)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "1"]


def test_titles_by_label_and_powers_of_two(data, axes):
    panel = Lines("y", "step", panel="p", title={1.5: "below", 3.0: "above"}, yscale="log2")
    panel.draw_all(axes, View(data, {"p": 3.0}))
    assert axes.get_title() == "above"
    assert axes.yaxis.get_transform().base == 2


def test_a_kind_of_panel_owes_its_drawing():
    with pytest.raises(TypeError, match=r"abstract method '?draw"):
        type("Incomplete", (Panel,), {})()


def test_the_first_positional_field_of_a_panel_is_its_main_quantity():
    assert Lines("y", "step", ylabel="loss").main_quantity == "y"
    assert Reference(2.0).main_quantity == ""  # it is drawn on the axes of another layer


def test_text_stands_at_ticks_of_its_own(data, axes):
    assert places(axes, data.p).tolist() == [1.5, 3.0]
    assert places(axes, data.start).tolist() == [0, 1, 2]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["zero", "one", "two"]
    assert places(axes, data.start, across=True).tolist() == [0, -1, -2]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["zero", "one", "two"]


def test_series_are_the_parts_by_label(data):
    found = list(series(data.y, ["start", "", "absent"]))
    assert [labels for labels, _ in found] == [{"start": s} for s in ("zero", "one", "two")]
    for k, (_, part) in enumerate(found):
        np.testing.assert_array_equal(part, data.y.values[:, k])
    ((labels, whole),) = series(data.y, [])
    assert labels == {}
    assert whole.identical(data.y)


def test_names_of_labels_and_coordinates(data):
    assert named({"zero": "from $0$"}, "start", "zero") == "from $0$"
    assert named({}, "p", 2.0) == "2.0"
    assert along(data.y, "p").values.tolist() == [1.5, 3.0]
    assert along(data.y, "step") is None
    assert along(data.y, lambda d: d.y) is None


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ({"p": 2.0}, [3, 4, 5]),
        ({"p": 1.5, "start": "zero"}, 0),
        ({"step": 1}, [1, 4]),  # an axis without labels
        ({"start": "twice"}, [[1, 2], [4, 5]]),
        ({"p": 7.0}, None),
        ({"p": [2.0, 1.5], "start": "zero"}, [3, 0]),
    ],
)
def test_a_quantity_is_cut_at_labels_as_xarray_does(labels, said):
    where = "step" if "step" in labels else "start"
    data = xr.Dataset({"y": (("p", where), np.arange(6).reshape(2, 3))}, {"p": [1.5, 2.0]})
    if where == "start":
        data = data.assign_coords(start=["zero", "twice", "twice"])
    found = View(data).get("y", labels)
    if said is None:
        assert found is None
        return
    xr.testing.assert_identical(found, data.y.sel(labels))
    np.testing.assert_array_equal(found, said)
