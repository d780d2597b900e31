"""Logs of Inspect with several scorers, and grades that are no numbers."""

import json

import pytest

from attlas._files.plain_file import Damaged
from attlas.certificates.inspect_log import inspect_table, is_inspect_log


def _log(*scores):
    samples = [{"id": k, "epoch": 1, "scores": score} for k, score in enumerate(scores)]
    return json.dumps({"eval": {}, "status": "success", "samples": samples}).encode()


def test_several_scorers_are_several_columns():
    scores = {"match": {"value": "C"}, "judge": {"value": 0.25}}
    log = _log(scores, scores)
    assert is_inspect_log(log)
    assert inspect_table(log) == {"match": [1.0, 1.0], "judge": [0.25, 0.25], "id": ["0", "1"]}
    assert not is_inspect_log(b'[{"eval": 1}]')


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([{"m": {"value": "good"}}], "grade 'good' of 'm'"),
        ([{"m": {"value": 3}}], "grade '3' of 'm'"),
        ([{"m": {"value": "C"}}, {"n": {"value": "C"}}], "graded different samples"),
        ([], "no graded samples"),
        ([{"m": 1}], "grade 'None' of 'm'"),
    ],
)
def test_grades_that_cannot_be_read(scores, said):
    with pytest.raises(Damaged, match=said):
        inspect_table(_log(*scores))
