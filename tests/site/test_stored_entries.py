"""A figure is drawn again where anything that it follows from has changed, and only there."""

from dataclasses import replace

import numpy as np
import pytest
from markupsafe import Markup

from attlas.core.errors import UserError
from attlas.experiments.cell import Cell
from attlas.experiments.find import one_named
from attlas.experiments.record import Layout, Record, record_key
from attlas.site import experiment_page_pool, stored_entries
from attlas.site.atlas import source_of
from attlas.site.content import Drawing, ExperimentEntry
from attlas.site.experiment_page_pool import ExperimentRecords, experiment_entries
from attlas.site.figure_terms import ReadingItem
from attlas.site.stored_entries import END, StoredEntries

HEADS = one_named("heads")


def records(value=1.0, finished="2026-11-30"):
    cell = Cell({"p": 2})
    arrays = {"x": np.array([value]), "name": np.array(["a"], dtype=object)}
    layout = Layout({"x": ("n",), "name": ("n",)})
    key = record_key("heads", 1, cell)
    return (Record("heads", cell, arrays, {"finished": finished}, key, layout),)


def inputs(**changes):
    given = ExperimentRecords(HEADS, records(), source_of(HEADS.source))
    return given._replace(**changes)


def entry(**fields):
    drawing = Drawing("Title", "Caption", Markup("<svg/>"), items=(ReadingItem("Up", "loss"),))
    given = {
        "scale": "paper",
        "done": 1,
        "total": 1,
        "drawings": (drawing,),
        "table": Markup("<table/>"),
        "settings": {"p": "2", "n": "3"},
        "problems": ("one",),
        "answer": "Yes.",
        "values": {"share": np.float64(0.1), "all": np.True_, "n": [1, float("nan")], "t": "x"},
        **fields,
    }
    return ExperimentEntry(HEADS, source_of(HEADS.source), **given)


def test_what_was_written_is_read_as_it_was(tmp_path):
    store, given = StoredEntries(tmp_path / "entries"), entry()
    digest = store.digest(inputs(), "code")
    assert store.read(digest) is None
    store.write(digest, given)
    fields = StoredEntries(tmp_path / "entries").read(digest)
    assert fields is not None
    again = ExperimentEntry(given.experiment, given.source, **fields)
    assert replace(again, values={}) == replace(given, values={})
    assert {n: str(v) for n, v in again.values.items()} == {
        n: str(v) for n, v in given.values.items()
    }
    assert isinstance(again.table, Markup)
    assert isinstance(again.drawings[0].picture, Markup)
    assert list(again.settings) == list(given.settings)


def test_arrays_and_names_of_an_answer_are_read_as_they_were(tmp_path):
    store = StoredEntries(tmp_path)
    given = {"n": np.array([64, 1024]), "x": np.array([[0.1, np.nan]], np.float32)}
    store.write("a", entry(values={**given, "words": {np.str_("m"): np.array(["a", "bc"])}}))
    fields = store.read("a")
    assert fields is not None
    found = fields["values"]
    for name, array in [*given.items(), ("words", np.array(["a", "bc"]))]:
        same = found[name]["m"] if name == "words" else found[name]
        np.testing.assert_array_equal(same, array)
        assert same.dtype == array.dtype


@pytest.mark.parametrize("value", [(1, 2), np.float32(0.1), {1: 2}, np.array([{}]), object()])
def test_an_answer_that_json_would_change_is_not_stored(tmp_path, value):
    store = StoredEntries(tmp_path)
    store.write("a", entry(values={"value": value}))
    assert list(tmp_path.iterdir()) == []


def test_each_thing_that_an_entry_follows_from_changes_its_digest(tmp_path, monkeypatch):
    store = StoredEntries(tmp_path)
    seen = [store.digest(inputs(), "code"), store.digest(inputs(), "other code")]
    assert store.digest(inputs(), "code") == seen[0]
    seen.append(store.digest(inputs(records=records(2.0)), "code"))
    seen.append(store.digest(inputs(records=records(finished="2026-12-01")), "code"))
    seen.append(store.digest(inputs(records=()), "code"))
    seen.append(store.digest(inputs(source=source_of(("a.py", 1))), "code"))
    for name in ("note", "answer_text", "title", "question"):
        seen.append(store.digest(inputs(experiment=replaced(**{name: "Another."})), "code"))
    seen.append(store.digest(inputs(experiment=replaced(captions={"a": "b"})), "code"))
    monkeypatch.setattr(stored_entries, "source_digest", lambda *place: "edited")
    seen.append(store.digest(inputs(), "code"))
    assert len(set(seen)) == len(seen)


def replaced(**fields):
    names = ("title", "question", "grid", "run", "table", "figures", "note", "captions")
    names += ("readings", "answer", "answer_text", "part", "revision", "name", "paper")
    given = {name: getattr(HEADS, name) for name in (*names, "module", "source", "home")}
    return type(HEADS)(**{**given, **fields})


@pytest.mark.parametrize(
    "place",
    [
        "attlas.experiments.unchanged.machine_digest",
        "attlas.experiments.unchanged.package_digest",
        "attlas.projects.bibliography.all_references",
        "attlas.data.sources.is_present",
    ],
)
def test_what_all_entries_follow_from_is_in_the_digest(tmp_path, monkeypatch, place):
    before = StoredEntries(tmp_path).machine
    given = {"all_references": {}, "is_present": False}
    monkeypatch.setattr(place, lambda *a, **k: given.get(place.rpartition(".")[2], "changed"))
    assert StoredEntries(tmp_path).machine != before


def test_a_setting_of_matplotlib_is_in_the_digest(tmp_path):
    import matplotlib as mpl

    before = StoredEntries(tmp_path).machine
    with mpl.rc_context({"axes.linewidth": 3.0}):
        assert StoredEntries(tmp_path).machine != before


def test_a_damaged_entry_is_drawn_again(tmp_path):
    store = StoredEntries(tmp_path)
    store.write("a", entry())
    (file,) = tmp_path.glob(f"*{END}")
    content = file.read_bytes()
    flipped = content[:40] + bytes([content[40] ^ 1]) + content[41:]
    for spoilt in (content[:-1], flipped, b"", b"{}"):
        file.write_bytes(spoilt)
        assert store.read("a") is None


def test_only_what_has_changed_is_drawn(tmp_path, monkeypatch):
    drawn = []

    def draw(experiment, given, *rest):
        drawn.append(given[0].arrays["x"][0])
        return entry(answer=f"{drawn[-1]}")

    monkeypatch.setattr(experiment_page_pool, "experiment_entry", draw)
    store = StoredEntries(tmp_path)
    steps: list[int] = []
    for value in (1.0, 1.0, 2.0, 1.0):
        given = [inputs(records=records(value)), inputs(records=records(3.0))]
        found = experiment_entries(given, "code", steps.append, stored=store)
        assert [each.answer for each in found] == [f"{value}", "3.0"]
    assert drawn == [1.0, 3.0, 2.0]
    assert steps == [2] * 8
    # Of users nothing is stored, whose figures may read any file.
    own = inputs(experiment=replaced(module="of_a_user"))
    for _ in range(2):
        experiment_entries([own], "code", stored=store)
    assert len(drawn) == 5


def test_the_folder_of_another_user_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(stored_entries, "is_theirs", lambda *given: False)
    with pytest.raises(UserError, match="belongs to another user"):
        StoredEntries(tmp_path)


def test_a_folder_that_cannot_be_written_is_said(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    StoredEntries(tmp_path / "file").write("a", entry())
    assert "draws all figures again" in capsys.readouterr().err
