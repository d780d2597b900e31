"""The published records: what is copied, what is said to be missing, and that they are small."""

import json
from dataclasses import replace

import pytest
from arrays_of import arrays_of

from attlas.core.errors import UserError
from attlas.experiments import published, store
from attlas.experiments.cell import LONG, Scale
from attlas.experiments.execute import execute
from attlas.experiments.find import find_experiments
from attlas.experiments.load import load, of_scale
from attlas.experiments.proofs import FOLDER as PROOFS
from attlas.experiments.published import LARGEST, lines_of, not_run, publish
from attlas.experiments.store import Store, results_folder
from attlas.site.atlas import gather, write_atlas
from attlas.site.pages import render_single


@pytest.fixture
def both(squares, descent, monkeypatch):
    monkeypatch.setattr(published, "find_experiments", lambda: (squares, descent))
    return squares, descent


@pytest.fixture
def computed(both, tmp_path, monkeypatch, serial):
    """Some cells of paper scale of one experiment, and smaller ones of another."""
    monkeypatch.setenv("DESCENT_STEPS", str(tmp_path / "steps"))
    squares, descent = both
    execute([squares], "quick", store=Store(tmp_path / "results"))
    execute([descent], "smoke", store=Store(tmp_path / "results"))
    return tmp_path / "results"


def test_records_of_paper_scale_are_copied_and_the_others_estimated(
    both, computed, tmp_path, monkeypatch
):
    squares, descent = both
    size = publish(computed, tmp_path / "out")
    target = Store(tmp_path / "out")
    files = [path for path in target.root.rglob("*") if path.is_file()]
    assert size == sum(path.stat().st_size for path in files)
    # Cells of the quick grid of squares are cells of its grid at paper scale; those of descent not.
    assert len(target.records("squares")) == 6
    assert target.records("descent") == ()
    told = not_run(target)
    assert told["squares"].startswith("Paper scale: 6 of 12 cells were not run, estimated ")
    assert "in one process on " in told["squares"]
    # 3000 steps against 60: 50 times the work of the one measured cell, beyond what is estimated.
    assert "not run, no estimate, as its largest cell has 50 times the work" in told["descent"]
    made = json.loads((tmp_path / "out" / "estimates.json").read_text())
    assert {"commit", "device", "platform", "finished"} <= made.keys()
    cells, whence = lines_of(target, squares)
    assert cells == "6 of 12"
    assert f"commit {str(made['commit'])[:12]}, {made['platform']}" in whence
    assert lines_of(target, descent) == ("0 of 1", "-")
    # What is of no cell any more goes, the rest stays as it is.
    (stale,) = [r for r in target.records("squares") if r.cell.settings["x"] == 5]
    target.write(replace(stale, key="0" * 64))
    # A grid may be another one where data are absent.
    monkeypatch.setattr(published, "is_present", lambda data: data.name != "mnist")
    with pytest.raises(UserError, match=r"squares would be deleted, .* \(mnist\): .* ATTLAS_DATA"):
        publish(computed, tmp_path / "out")
    monkeypatch.setattr(published, "is_present", lambda data: True)
    assert publish(computed, tmp_path / "out") == size
    assert len(target.keys("squares")) == 6


def test_records_of_small_scale_are_copied_and_shown_where_paper_scale_is_incomplete(
    squares, computed, tmp_path, monkeypatch
):
    small = replace(squares.grid, small={"x": [1, 2]})
    squares = replace(squares, grid=small)
    monkeypatch.setattr(published, "find_experiments", lambda: (squares,))
    publish(computed, tmp_path / "out")
    by_key = {record.key: record for record in Store(tmp_path / "out").records("squares")}
    assert len(by_key) == 6
    assert of_scale(squares, Scale.SMALL, by_key).complete
    assert not of_scale(squares, Scale.PAPER, by_key).complete
    assert set(load(squares, results=tmp_path / "out").x.values) == {1, 2}


def test_published_records_of_earlier_versions_stay_as_they_are(both, computed, tmp_path):
    publish(computed, tmp_path / "out")
    folder = tmp_path / "out" / "squares"
    for path in folder.glob("*.json"):
        arrays_of(path).rename(path.with_suffix(".npz"))
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert len(before) == 12
    publish(computed, tmp_path / "out")
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert len(Store(tmp_path / "out").records("squares")) == 6


def test_the_page_shows_published_records_and_says_what_was_not_run(both, computed, tmp_path):
    publish(computed, tmp_path / "out")
    empty, out = Store(tmp_path / "nothing"), Store(tmp_path / "out")
    alone = gather(empty, (), (), both)
    assert [(entry.done, entry.missing) for entry in alone.experiments] == [(0, ""), (0, "")]
    atlas = gather(empty, (), (), both, published=out)
    entries = {entry.experiment.name: entry for entry in atlas.experiments}
    assert (entries["squares"].done, entries["squares"].scale) == (6, "quick")
    assert entries["squares"].missing.startswith("Paper scale: 6 of 12")
    assert entries["descent"].unanswered.startswith("Paper scale: not run, no estimate")
    assert {"commit of attlas", "platform", "computed", "jax"} <= atlas.environment.keys()
    # Own records are shown beside them, each cell once.
    more = gather(Store(computed), (), (), both, published=out)
    assert {e.experiment.name: e.done for e in more.experiments} == {"squares": 6, "descent": 1}


def test_a_whole_grid_has_nothing_missing(both, tmp_path, serial):
    squares, _ = both
    execute([squares], "paper", store=Store(tmp_path / "results"))
    publish(tmp_path / "results", tmp_path / "out")
    atlas = gather(Store(tmp_path / "no"), (), (), both, published=Store(tmp_path / "out"))
    (entry,) = (e for e in atlas.experiments if e.experiment is squares)
    assert (entry.scale, entry.done, entry.missing) == ("paper", 12, "")


def test_too_much_is_refused(both, computed, tmp_path, monkeypatch):
    monkeypatch.setattr(published, "LARGEST", 1000)
    with pytest.raises(UserError, match="of at most 1000"):
        publish(computed, tmp_path / "out")


@pytest.mark.parametrize("text", ["{", "[]", '{"experiments": {"a": {}}}', '{"experiments": 3}'])
def test_estimates_that_cannot_be_read_are_named(tmp_path, text):
    (tmp_path / "estimates.json").write_text(text)
    folder = Store(tmp_path)
    assert not_run(folder) == {}
    assert "is not a file of estimates" in folder.notes[0]


def test_an_installed_attlas_without_the_folder_says_so_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_CHECKOUT", tmp_path / "site-packages")
    with pytest.raises(UserError, match="in the repository of attlas") as refused:
        write_atlas(tmp_path / "results", tmp_path / "atlas.html", published="published")
    assert "\n" not in str(refused.value)


def test_what_is_committed_is_whole_and_of_small_or_paper_scale():
    folder = results_folder("published")
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert 0 < sum(path.stat().st_size for path in files) <= LARGEST
    here = Store("published")
    known = {experiment.name: experiment for experiment in find_experiments()}
    told = not_run(here)
    assert here.notes == []
    complete = []
    for name in {path.name for path in folder.iterdir() if path.is_dir()} - {PROOFS}:
        done, total = map(int, lines_of(here, known[name])[0].split(" of "))
        by_key = {record.key: record for record in here.records(name)}
        large = {r.key for s in LONG for r in of_scale(known[name], s, by_key).records}
        assert by_key.keys() == large != set()
        assert done <= len(large)
        assert (done < total) == (name in told)
        complete += [name] if done == total else []
        for record in here.records(name):
            names = {"commit", "platform", "device", "versions", "finished", "seconds"}
            assert names <= record.metadata.keys()
    assert here.notes == []
    assert {"joint", "factored", "direction", "winning_bound"} <= set(complete)
    assert load("joint", scale=Scale.PAPER, results="published").sizes["p"] == 3
    missing = known.keys() - set(complete)
    assert missing == told.keys()


def test_a_page_says_when_and_where_its_numbers_were_computed(both, computed, tmp_path):
    publish(computed, tmp_path / "out")
    atlas = gather(Store(tmp_path / "no"), (), (), both, published=Store(tmp_path / "out"))
    (entry,) = (e for e in atlas.experiments if e.done)
    told = entry.whence
    page = render_single(atlas)
    assert told.startswith("20")
    assert f"s of computation, {told}" in page
    assert "Paper scale: 6 of 12 cells were not run" in page
