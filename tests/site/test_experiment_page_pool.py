from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace

import pytest

from attlas.core.errors import UserError
from attlas.experiments.cell import Scale
from attlas.experiments.find import one_named
from attlas.experiments.record import Record, record_key
from attlas.experiments.worker import Computed, Task, compute
from attlas.site import experiment_page_pool as exhibit_pool
from attlas.site.atlas import source_of
from attlas.site.experiment_page_pool import ExperimentRecords, experiment_entries
from attlas.site.experiment_pages import experiment_entry


@pytest.fixture(scope="module")
def separation() -> ExperimentRecords:
    """An experiment with the records of its smoke scale."""
    name = "separation"
    experiment = one_named(name)
    records = []
    for cell in experiment.cells(Scale.SMOKE):
        done = compute(Task(experiment.module, name, cell.json))
        assert isinstance(done, Computed), done
        key = record_key(name, experiment.revision, cell)
        records.append(Record(name, cell, done.arrays, done.metadata, key, done.layout))
    return ExperimentRecords(experiment, tuple(records), source_of(experiment.source))


@pytest.mark.thorough
def test_processes_draw_what_one_process_draws(monkeypatch, separation):
    empty = ExperimentRecords(one_named("heads"), (), source_of(("a.py", 1)))
    own = replace(separation.experiment, module="of_a_user")
    given = [separation, empty, separation._replace(experiment=own, records=())]
    monkeypatch.setattr(exhibit_pool, "FEWEST", 1)
    monkeypatch.setattr(exhibit_pool, "available_cores", lambda: 2)
    found = experiment_entries(given, "code")
    assert [entry.experiment for entry in found] == [each.experiment for each in given]
    for entry, each in zip(found, given, strict=True):
        assert entry == experiment_entry(*each, "code")


def test_few_experiments_are_drawn_here(monkeypatch):
    monkeypatch.setattr(exhibit_pool, "worker_pool", None)
    (entry,) = experiment_entries(
        [ExperimentRecords(one_named("heads"), (), source_of(("a.py", 1)))], "code"
    )
    assert entry.done == 0


def test_a_process_that_dies_is_one_line(monkeypatch, separation):
    def died(*args):
        raise BrokenProcessPool

    monkeypatch.setattr(exhibit_pool, "FEWEST", 1)
    monkeypatch.setattr(exhibit_pool, "available_cores", lambda: 2)
    monkeypatch.setattr("concurrent.futures.ProcessPoolExecutor.submit", died)
    with pytest.raises(UserError, match="process that draws figures died"):
        experiment_entries([separation], "code")
