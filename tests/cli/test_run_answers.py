"""What `attlas run` says at its end: the answer, or what it lacks, and where to look."""

from types import SimpleNamespace

import pytest

from attlas.cli.run_answers import MOST, show_answers
from attlas.experiments.load import ScaleRecords
from attlas.experiments.store import Store

QUESTION = r"Does $\eta$ matter?"


def experiment(
    name: str = "steps", answer: str = r"No, $\eta \le 1$ is as good."
) -> SimpleNamespace:
    return SimpleNamespace(
        name=name,
        question=QUESTION,
        revision=1,
        dataset=lambda records, cells: (records, cells),
        answered=lambda data: answer,
    )


@pytest.fixture
def said(monkeypatch, tmp_path, capsys):
    """The lines for some experiments, of which so many of two cells have a record."""

    def run(*experiments: SimpleNamespace, computed: int = 2) -> list[str]:
        there = ScaleRecords(tuple(range(computed)), (0, 1))
        monkeypatch.setattr("attlas.experiments.load.of_scale", lambda *_: there)
        show_answers(experiments, "quick", Store(tmp_path))
        return capsys.readouterr().out.splitlines()

    monkeypatch.setenv("COLUMNS", "400")
    return run


def test_the_question_its_answer_and_the_command_that_shows_more(said, tmp_path):
    assert said(experiment()) == [
        "steps: Does eta matter?",
        "  No, eta <= 1 is as good.",
        f"figures and tables: `attlas --results {tmp_path} report steps` writes atlas.html",
    ]


def test_an_experiment_that_lacks_cells_or_an_answer_says_so(said):
    assert said(experiment(), computed=1)[1] == "  no answer yet: 1 cell of 2 not computed"
    assert said(experiment(answer=""))[1] == "  see its figures and tables"
    assert len(said(experiment(), computed=0)) == 1


def test_many_experiments_have_the_report_alone(said, tmp_path):
    (line,) = said(*(experiment(f"e{k}") for k in range(MOST + 1)))
    assert f"`attlas --results {tmp_path} report`" in line
    assert said() == []
