"""A run with a limit of time: what may begin, and what is told of the rest."""

from pathlib import Path

import pytest

from attlas.cli.main import main
from attlas.experiments.execute import execute
from attlas.experiments.store import Store
from attlas.experiments.time_limit import Left, TimeLimit

SQUARES = Path(__file__).parent / "toys" / "squares.py"


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_cells_of_unknown_cost_come_last_and_begin_while_half_of_the_time_is_left():
    clock = Clock()
    limit = TimeLimit(1.0, [None, 1000.0, None, 10.0], clock)
    assert limit.order == (3, 1, 0, 2)
    labels = ["brief", "long", "first unknown", "second unknown"]
    assert limit.may_begin(0)
    clock.seconds = 1800.0
    assert limit.may_begin(1)
    assert limit.may_begin(2)
    clock.seconds = 1801.0
    assert not limit.may_begin(3)
    assert limit.left(labels) == (
        Left("of unknown cost, and less than half of the time was left", ("second unknown",)),
    )
    clock.seconds = 2600.0
    assert not limit.may_begin(1)
    assert limit.left(labels)[1] == Left(
        "estimated to take longer than was left", ("long (16.7 min)",)
    )


@pytest.mark.usefixtures("serial")
def test_cells_of_unknown_cost_do_not_overrun_without_bound(squares, tmp_path, monkeypatch):
    # No record of squares is there: each cell sleeps longer than half of the time.
    monkeypatch.setenv("SQUARES_SLEEP", "0.4")
    summary = execute([squares], "quick", store=Store(tmp_path), hours=0.5 / 3600)
    assert (summary.finished, len(summary.left[0].labels)) == (1, 5)
    assert summary.left[0].labels[0].startswith("squares sleep=0.4 x=1 ")


@pytest.mark.usefixtures("serial")
def test_the_command_says_what_was_left_out_and_why(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("SQUARES_SLEEP", "0.4")
    arguments = ["run", str(SQUARES), "--scale", "paper", "--hours", "1e-4"]
    with pytest.raises(SystemExit) as left:
        main(["--results", str(tmp_path), *arguments])
    assert not left.value.code
    said = capsys.readouterr().out
    assert "not started within 0.0001 h, of unknown cost, and less than half of the time" in said
    assert "squares sleep=0.4 x=1 " in said
    assert said.rstrip().endswith(", and 1 more")
