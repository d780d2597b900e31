"""The tasks in this process: what they read, and what they refuse."""

import numpy as np
import pytest

from attlas.core.errors import UserError
from attlas.server.schemas import first_error, input_schemas, output_schemas
from attlas.server.task import limit_this_process
from attlas.server.tasks import TASKS

SOURCE = '''
import numpy as np
import attlas as at


@at.inequality(
    sample=lambda rng, n: {"x": rng.normal(size=(n, 2)), "k": rng.integers(1, 4, size=n)},
    controls=[at.Control("negative", factor=-1.0)],
    backend="numpy",
)
def powers(x, k, *, factor=1.0):
    r"""$$0 \\le |x|^k$$"""
    return 0 * x[0], factor * np.sum(np.abs(x) ** k)
'''


@pytest.fixture(autouse=True)
def temporary(monkeypatch, tmp_path):
    """Where the tasks write sources; a child's own folder is deleted with it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def test_every_tool_has_a_task_and_both_schemas():
    assert set(TASKS) == set(input_schemas()) == set(output_schemas())


def test_a_witness_is_read_with_the_types_of_the_claim(tmp_path):
    replay = {"source": SOURCE, "witness": {"x": [1, "nan"], "k": 2}}
    assert first_error(replay, input_schemas()["replay"]) == ""
    answer = TASKS["replay"](replay, tmp_path)
    assert first_error(answer, output_schemas()["replay"]) == ""
    assert "not finite" in answer["verdict"]["reason"]


@pytest.mark.parametrize(
    ("witness", "said"),
    [
        ({"x": [1, 2]}, "has the arrays"),
        ({"x": [[1, 2]], "k": 1}, "has 2 axes instead of 1"),
        ({"x": [1, "two"], "k": 1}, "is no array of float64"),
        ({"x": [[1], [1, 2]], "k": 1}, "is no array of float64"),
        ({"x": [1, 2], "k": "one"}, "is no array of int64"),
    ],
)
def test_a_wrong_witness_is_one_line(witness, said, tmp_path):
    with pytest.raises(UserError, match=said):
        TASKS["replay"]({"source": SOURCE, "witness": witness}, tmp_path)


def test_a_source_without_claims_and_a_missing_claim_are_refused(tmp_path):
    with pytest.raises(UserError, match="defines no claim"):
        TASKS["check"]({"source": "x = 1"}, tmp_path)
    with pytest.raises(UserError, match="give a claim"):
        TASKS["power"]({}, tmp_path)


def test_a_limit_is_never_raised(monkeypatch):
    limits = {}
    monkeypatch.setattr("resource.getrlimit", lambda kind: (10, 10))
    monkeypatch.setattr("resource.setrlimit", lambda kind, pair: limits.update({kind: pair}))
    limit_this_process({"seconds": 100, "memory": 2**30, "file": 2**20})
    assert set(limits.values()) == {(10, 10), (0, 0)}


def test_lists_keep_their_numbers(tmp_path):
    search = TASKS["challenge"]({"source": SOURCE, "evaluations": 64}, tmp_path)
    assert first_error(search, output_schemas()["challenge"]) == ""
    assert np.shape(search["witness"]["x"]) == (2,)
    assert isinstance(search["witness"]["k"], int)
