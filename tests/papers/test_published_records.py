"""What is published of every experiment: an answer in a few words, and no page that breaks."""

import warnings

import matplotlib.pyplot as plt
import pytest
from answer_length import assert_few_words
from perturbed_records import WITHOUT_RECORD, recorded

from attlas.experiments.cell import Scale
from attlas.experiments.find import find_experiments
from attlas.experiments.join import MISSING_CELLS
from attlas.experiments.load import ScaleRecords, load_records, of_scale

EXPERIMENTS = [pytest.param(e, id=e.name) for e in recorded().values()]


def published(experiment) -> ScaleRecords:
    """The records of the most complete scale."""
    records = load_records(experiment, results="published")
    assert records
    by_key = {record.key: record for record in records}
    return max((of_scale(experiment, scale, by_key) for scale in Scale), key=lambda s: s.share)


def test_what_counts_as_without_a_record_has_none():
    (experiment,) = (e for e in find_experiments() if e.name in WITHOUT_RECORD)
    assert not load_records(experiment, results="published")


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_what_is_published_answers_the_question_in_a_few_words(experiment):
    layout = published(experiment)
    answer = experiment.answered(experiment.dataset(*layout))
    assert_few_words(answer)
    assert answer.endswith(".") == layout.complete  # a part of the cells answers nothing
    assert "nan" not in answer
    assert "None" not in answer.split()


@pytest.mark.thorough
@pytest.mark.parametrize("lacking", ["nothing", "the first cell", "the last cell"])
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_figures_and_table_show_the_cells_that_are_there(experiment, lacking):
    records, cells = published(experiment)
    there = {"nothing": records, "the first cell": records[1:], "the last cell": records[:-1]}
    if not there[lacking]:
        pytest.skip("one cell is all there is")
    data = experiment.dataset(there[lacking], cells)
    if lacking != "nothing":
        assert data.attrs[MISSING_CELLS] == len(cells) - len(there[lacking])
        assert experiment.answered(data) == ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # means of no number are NaN
        assert len(experiment.tabulated(data)) > 0
        for captioned in experiment.drawn(data):
            assert captioned.caption.endswith(".")
            plt.close(captioned.figure)
