"""Monitor files are drawn; malformed lines are named, and nothing else is lost."""

import json

import numpy as np
import pytest

from attlas._files.sealed_json import sealed
from attlas.experiments.store import Store
from attlas.site.atlas import gather
from attlas.site.monitors import QUANTITIES, monitor_drawings, parse_monitor
from attlas.site.pages import render_single


def line(step, **changes):
    record = {
        "schema": "attlas.monitor/1",
        "step": step,
        "T": 7,
        "layers": ["first", "second"],
        **{name: [[1.0, None], [0.5, step / 10]] for name in QUANTITIES},
        "sink_share": 0.25,
    }
    return json.dumps({**record, **changes})


def test_a_changed_number_of_a_sealed_line_is_named(tmp_path):
    record = json.loads(line(0, schema="attlas.monitor/2"))
    whole = json.dumps(sealed(record))
    for content, lost in ((f"{whole}\n", ""), (whole.replace("0.25", "0.35") + "\n", "line 1 was")):
        (tmp_path / "a.monitor.jsonl").write_text(content)
        store = Store(tmp_path)
        assert bool(monitor_drawings(store)) is not lost.startswith("line")
        assert lost in "".join(store.notes)
    (tmp_path / "a.monitor.jsonl").write_text(f"{whole}\n{whole}")
    store = Store(tmp_path)
    monitor_drawings(store)
    assert "ends in an unfinished line" in store.notes[0]


def test_lines_become_arrays_in_the_order_of_steps():
    content = "\n".join([line(20), line(0), line(10), line(10, sink_share=0.5), ""]).encode()
    run, wrong = parse_monitor(content)
    assert wrong == []
    assert run.steps.tolist() == [0, 10, 20]
    assert run.sink_share.tolist() == [0.25, 0.5, 0.25]
    assert run.values["entropy"].shape == (3, 2, 2)
    assert np.isnan(run.values["gap"][:, 0, 1]).all()
    assert run.values["margin"][:, 1, 1].tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[1]", "has another schema"),
        (line(1, schema="x/2"), "has another schema"),
        (line(-1), "has no step or T"),
        (line(True), "has no step or T"),
        (line(1, T=0), "has no step or T"),
        (line(1, layers="ab"), "has no list of layers"),
        (line(1, layers=[]), "has no list of layers"),
        (line(1, sink_share="x"), "has no sink_share"),
        (line(1, entropy=[[1.0, 2.0]]), "has no entropy for each layer"),
        (line(1, gap=[[], [1.0]]), "has no gap for each head"),
        (line(1, gap=[["x", 1.0], [1.0, 1.0]]), "has a gap that is not a number"),
        (line(1, sink=[[float("nan"), 1.0], [1.0, 1.0]]), "has a sink that is not a number"),
        (line(1, sink=[[1.0], [1.0, 1.0]]), "has another number of heads in sink"),
        (line(1, T=9), "has other layers, heads or T than the first line"),
    ],
)
def test_a_malformed_line_is_named_and_the_others_stand(bad, reason):
    run, wrong = parse_monitor("\n".join([line(0), bad, line(5)]).encode())
    assert run.steps.tolist() == [0, 5]
    assert [number for number, _ in wrong] == [2]
    assert wrong[0][1].startswith(reason)


def test_the_atlas_draws_the_files_and_names_what_is_damaged(tmp_path):
    (tmp_path / "run.monitor.jsonl").write_text("\n".join([line(0), "no", line(5)]))
    (tmp_path / "empty.monitor.jsonl").write_text("")
    (tmp_path / "folder.monitor.jsonl").mkdir()
    (tmp_path / "binary.monitor.jsonl").write_bytes(bytes(range(256)))
    store = Store(tmp_path)
    atlas = gather(store, claims=(), errata=(), experiments=())
    assert [drawing.title for drawing in atlas.monitors] == ["run"]
    assert "T = 7" in atlas.monitors[0].caption
    notes = "\n".join(atlas.warnings)
    assert "run.monitor.jsonl, line 2 is not JSON: ignored" in notes
    assert "empty.monitor.jsonl has no valid line" in notes
    assert "folder.monitor.jsonl is not a regular file" in notes
    assert "binary.monitor.jsonl has no valid line" in notes
    page = render_single(atlas)
    assert "Training, monitored" in page
    assert str(tmp_path) not in page
    assert monitor_drawings(Store(tmp_path / "nowhere")) == ()
