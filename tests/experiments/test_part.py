"""Parts of a run: together they are the run, at the same time too."""

import subprocess
import sys

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.experiments.execute import execute
from attlas.experiments.part import MOST_PARTS, WHOLE, Part, read_part
from attlas.experiments.store import Store


def keys(store: Store) -> set[str]:
    return {record.key for record in store.records("squares")}


def same_results(left: Store, right: Store) -> bool:
    """Whether two folders hold the same cells with the same numbers."""
    first, second = (
        {record.key: record for record in each.records("squares")} for each in (left, right)
    )
    return first.keys() == second.keys() and all(
        record.cell == second[key].cell
        and record.arrays.keys() == second[key].arrays.keys()
        and all(np.array_equal(a, second[key].arrays[name]) for name, a in record.arrays.items())
        for key, record in first.items()
    )


@pytest.mark.parametrize("of", [1, 2, 5, 12, 20])
def test_parts_divide_the_cells_evenly_whatever_their_order(of):
    cells = [f"{k * 7919 % 12:02}" for k in range(12)]
    parts = [Part(number + 1, of).of_keys(cells) for number in range(of)]
    assert sorted(key for part in parts for key in part) == sorted(cells)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert parts == [Part(number + 1, of).of_keys(reversed(cells)) for number in range(of)]


@pytest.mark.usefixtures("serial")
def test_parts_together_are_the_undivided_run(squares, tmp_path):
    whole, parts = Store(tmp_path / "whole"), Store(tmp_path / "parts")
    execute([squares], "paper", store=whole, part=WHOLE)
    seen: set[str] = set()
    for number in (2, 5, 1, 4, 3):
        summary = execute([squares], "paper", store=parts, part=Part(number, 5))
        assert (summary.reused, summary.failures) == (0, ())
        assert len(keys(parts) - seen) == summary.finished >= 2
        seen = keys(parts)
    assert same_results(whole, parts)
    again = execute([squares], "paper", store=parts, part=Part(2, 5))
    assert (again.finished, again.reused) == (0, 3)
    # A part of a run that is there already computes no other part.
    few = execute([squares], "paper", store=Store(tmp_path / "one"), part=Part(2, 5))
    assert few.finished == 3
    assert not same_results(whole, Store(tmp_path / "one"))


@pytest.mark.thorough
@pytest.mark.usefixtures("toys")
def test_parts_as_jobs_at_the_same_time(squares, tmp_path):
    def job(number):
        command = [sys.executable, "-m", "attlas", "--results", str(tmp_path / "jobs"), "run"]
        arguments = ["squares", "--scale", "quick", "--workers", "1", "--part", f"{number}/3"]
        return subprocess.Popen(
            command + arguments, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    jobs = [job(number) for number in (1, 2, 3)]
    said = [each.communicate(timeout=300)[0].decode() for each in jobs]
    assert [each.returncode for each in jobs] == [0, 0, 0], said
    assert all("2 cells finished, 0 already computed, 0 failed" in each for each in said)
    execute([squares], "quick", store=Store(tmp_path / "whole"), workers=1)
    assert same_results(Store(tmp_path / "whole"), Store(tmp_path / "jobs"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a part"),
        ("3", "is not a part"),
        ("1/2/3", "is not a part"),
        ("-1/2", "is not a part"),
        ("0/2", "no part 0/2: name one from 1/2 to 2/2"),
        ("3/2", "no part 3/2"),
        ("1/0", "0 parts are not from 1"),
        (f"1/{MOST_PARTS + 1}", "name fewer"),
    ],
)
def test_what_is_no_part_is_refused_in_one_line(text, said):
    with pytest.raises(UserError, match=said) as caught:
        read_part(text)
    assert "\n" not in str(caught.value)
