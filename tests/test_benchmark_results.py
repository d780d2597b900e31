"""What a benchmark measured is not given up for a run that failed."""

import pytest
from benchmarks.interleave import environment, read_cases, with_case

from attlas.experiments.environment import code_hash

WHOLE = {"name": "a", "seconds": 3.0, "extrapolated": False}
PART = {"name": "a", "seconds": 9.0, "extrapolated": True}
OTHER = {"name": "b", "seconds": 1.0}


@pytest.mark.parametrize(
    "poorer",
    [
        {"name": "a", "failed": "exit 1"},
        {"name": "a", "skipped": "not installed"},
        {"name": "a", "seconds": 1.0, "peers": {"x": {"failed": "ImportError"}}},
        PART,
    ],
)
def test_a_measured_case_stays_until_it_is_measured_again(poorer):
    assert with_case([WHOLE, OTHER], poorer) == [WHOLE, OTHER]
    assert with_case([OTHER, poorer], WHOLE) == [OTHER, WHOLE]
    assert with_case([OTHER], poorer) == [OTHER, poorer]
    again = {**WHOLE, "seconds": 2.0}
    assert with_case([WHOLE, OTHER], again) == [again, OTHER]


def test_results_name_the_sources_that_ran_whatever_becomes_of_their_commit():
    assert environment()["code"] == code_hash()


def test_cases_are_read_with_the_commit_they_were_measured_at():
    cases = read_cases("audit_speed")
    assert cases
    assert all(case["commit"] for case in cases)
    assert read_cases("never measured") == []
