"""Checkpoints are found by their step, and a row holds median and range."""

import numpy as np
import pytest
import xarray as xr

from attlas.audit import checkpoint_curves
from attlas.audit.checkpoint_curves import audit_checkpoints, checkpoints_of, curve_row
from attlas.audit.model_audit import ModelAudit
from attlas.core.errors import UserError


def folder(path, *names):
    for name in names:
        (path / name).mkdir()
        (path / name / "config.json").write_text("{}")
    return path


def audited(values):
    heads = xr.Dataset({"qk_norm": (("layer", "head"), np.array(values))})
    return ModelAudit({"name": "a"}, "weights", heads, xr.Dataset())


def test_steps_are_sorted_as_numbers(tmp_path):
    made = folder(tmp_path, "checkpoint-1000", "checkpoint-500", "step2", "best")
    (made / "checkpoint-7").mkdir()
    assert [step for step, _ in checkpoints_of(made)] == [2, 500, 1000]
    assert checkpoints_of(made / "best") == ()
    assert checkpoints_of(made / "best" / "config.json") == ()


def test_two_folders_of_one_step_are_refused(tmp_path):
    with pytest.raises(UserError, match="a-5 and b-05 are both of step 5"):
        checkpoints_of(folder(tmp_path, "a-5", "b-05"))


def test_rows_hold_median_and_range_of_what_was_measured():
    assert curve_row(3, audited([[1.0, 2.0, 6.0]])) == {
        "step": 3,
        "qk_norm_median": 2.0,
        "qk_norm_least": 1.0,
        "qk_norm_largest": 6.0,
    }


def test_the_last_checkpoint_is_audited_in_full(monkeypatch, tmp_path):
    levels, told = [], []

    def audit(model, sequences, *, level, options, progress):
        levels.append((model, level))
        return audited([[float(len(levels))]])

    monkeypatch.setattr(checkpoint_curves, "load_model", lambda path, name: name)
    monkeypatch.setattr(checkpoint_curves, "audit", audit)
    steps = checkpoints_of(folder(tmp_path, "run-1", "run-2"))
    found = audit_checkpoints(steps, [[1]], level="deep", progress=lambda *part: told.append(part))
    name = tmp_path.name
    assert levels == [(f"{name}/run-1", "data"), (f"{name}/run-2", "deep")]
    assert [row["qk_norm_median"] for row in found.curves] == [1.0, 2.0]
    assert told == [("checkpoints", 1, 2), ("checkpoints", 2, 2)]
